"""What the node side of the sandbox asks of AWS: instances, their user data, hardware, roles and node groups.

One boto3 gateway, plain values out. Used by `sandbox.nodes.agent` and `sandbox.nodes.cloud_controller`; it
never changes anything in AWS.
"""

from __future__ import annotations

import base64
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import boto3
import botocore.config
from botocore.exceptions import ClientError

from sandbox.nodes.bootstrap import Taint
from sandbox.nodes.machine_shape import MachineShape

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import InstanceTypeDef
    from mypy_boto3_eks.type_defs import TaintTypeDef

__all__ = ["BootSettings", "Cloud", "Instance", "NodeGroup"]

CONNECTIONS = 24
PAGE = 1000
GIB = 1024**3
NODE_GROUP_TAG, CLUSTER_TAG = "eks:nodegroup-name", "eks:cluster-name"
EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule"}


@attrs.frozen(kw_only=True)
class Instance:
    """A running instance."""

    id: str
    type: str
    zone: str
    zone_id: str
    private_dns: str
    address: str
    image_id: str
    profile: str | None
    """ARN of its instance profile."""
    tags: Mapping[str, str]
    root_volume: str | None

    @property
    def node_group(self) -> tuple[str, str] | None:
        """(cluster, node group) when EKS manages the instance."""
        name = self.tags.get(NODE_GROUP_TAG)
        return None if name is None else (self.tags.get(CLUSTER_TAG, ""), name)


@attrs.frozen(kw_only=True)
class NodeGroup:
    """What EKS tells the nodes of a managed node group."""

    endpoint: str
    certificate_authority: str
    labels: Mapping[str, str]
    taints: Sequence[Taint]


@attrs.frozen(kw_only=True)
class BootSettings:
    """How instances become nodes; set through the sandbox's control endpoint."""

    boot_seconds: float = 5.0
    never_join: tuple[str, ...] = ()
    """Patterns (`fnmatch`) of instance id, type or zone whose instances never join."""


class Cloud:
    """AWS as the node side sees it."""

    def __init__(self, endpoint: str, region: str) -> None:
        """Prepare clients for the sandbox's AWS at `endpoint`; nothing is sent yet."""
        self.endpoint = endpoint
        self.region = region
        session = boto3.session.Session(
            aws_access_key_id="sandbox-nodes",
            aws_secret_access_key="sandbox",  # noqa: S106 - moto takes any
            region_name=region,
        )
        config = botocore.config.Config(
            max_pool_connections=CONNECTIONS, retries={"mode": "standard", "max_attempts": 4}, read_timeout=60
        )
        self._ec2 = session.client("ec2", endpoint_url=endpoint, config=config)
        self._eks = session.client("eks", endpoint_url=endpoint, config=config)
        self._iam = session.client("iam", endpoint_url=endpoint, config=config)
        self._shapes: dict[str, MachineShape] = {}
        self._roles: dict[str, str] = {}
        self._lock = threading.Lock()

    def running(self) -> tuple[Instance, ...]:
        """Return every running instance of the region."""
        pages = self._ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": "instance-state-name", "Values": ["running"]}],
            PaginationConfig={"PageSize": PAGE},
        )
        return tuple(_instance(i) for page in pages for r in page["Reservations"] for i in r["Instances"])

    def user_data(self, instance_id: str) -> str:
        """Return the user data, decoded; empty when there is none."""
        answer = self._ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")
        return base64.b64decode(answer["UserData"].get("Value", "")).decode(errors="replace")

    def shape(self, instance_type: str) -> MachineShape:
        """Return the hardware of an instance type, remembered."""
        with self._lock:
            if instance_type not in self._shapes:
                answer = self._ec2.describe_instance_types(InstanceTypes=[instance_type])  # type: ignore[list-item] # the stubs list the types of their day
                self._shapes[instance_type] = MachineShape.from_ec2(answer["InstanceTypes"][0])
            return self._shapes[instance_type]

    def volume_bytes(self, volume_id: str) -> int:
        """Return the size of a volume."""
        return int(self._ec2.describe_volumes(VolumeIds=[volume_id])["Volumes"][0]["Size"]) * GIB

    def role(self, profile: str) -> str | None:
        """Return the ARN of the role in an instance profile; None when there is none."""
        with self._lock:
            known = self._roles.get(profile)
        if known is not None:
            return known
        try:
            answer = self._iam.get_instance_profile(InstanceProfileName=profile.rpartition("/")[2])
        except ClientError as exc:
            if exc.response["Error"]["Code"] == "NoSuchEntity":
                return None
            raise
        roles = answer["InstanceProfile"]["Roles"]
        if not roles:
            return None
        with self._lock:
            self._roles[profile] = roles[0]["Arn"]
        return roles[0]["Arn"]

    def access_entry_type(self, cluster: str, role: str) -> str | None:
        """Return the type of a role's access entry in a cluster (`EC2_LINUX` …); None when there is none."""
        try:
            answer = self._eks.describe_access_entry(clusterName=cluster, principalArn=role)
        except ClientError as exc:
            if exc.response["Error"]["Code"] == "ResourceNotFoundException":
                return None
            raise
        return answer["accessEntry"]["type"]

    def node_group(self, cluster: str, name: str) -> NodeGroup:
        """Return what a managed node group's instances are told."""
        described = self._eks.describe_cluster(name=cluster)["cluster"]
        group = self._eks.describe_nodegroup(clusterName=cluster, nodegroupName=name)["nodegroup"]
        labels = {
            "eks.amazonaws.com/nodegroup": name,
            "eks.amazonaws.com/capacityType": group.get("capacityType", "ON_DEMAND"),
            **group.get("labels", {}),
        }
        return NodeGroup(
            endpoint=described["endpoint"],
            certificate_authority=described["certificateAuthority"]["data"],
            labels=labels,
            taints=[_taint(t) for t in group.get("taints", ())],
        )

    def boot_settings(self) -> BootSettings:
        """Return the settings of the control endpoint; the defaults where AWS is not the sandbox's."""
        try:
            with urllib.request.urlopen(f"{self.endpoint}/sandbox/nodes", timeout=5) as response:  # noqa: S310 - the sandbox's own address
                answer: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as exc:
            if exc.code == 404:
                return BootSettings()
            raise
        return BootSettings(
            boot_seconds=float(answer["bootSeconds"]), never_join=tuple(answer.get("neverJoin") or ())
        )


def _instance(found: InstanceTypeDef) -> Instance:
    volumes = {
        m["DeviceName"]: m["Ebs"]["VolumeId"] for m in found.get("BlockDeviceMappings", ()) if "Ebs" in m
    }
    root = volumes.get(found.get("RootDeviceName", ""))
    placement = found["Placement"]
    return Instance(
        id=found["InstanceId"],
        type=found["InstanceType"],
        zone=placement["AvailabilityZone"],
        zone_id=placement.get("AvailabilityZoneId", ""),
        private_dns=found["PrivateDnsName"],
        address=found["PrivateIpAddress"],
        image_id=found["ImageId"],
        profile=found.get("IamInstanceProfile", {}).get("Arn"),
        tags={t["Key"]: t["Value"] for t in found.get("Tags", ())},
        root_volume=root or next(iter(volumes.values()), None),
    )


def _taint(found: TaintTypeDef) -> Taint:
    return Taint(found.get("key", ""), found.get("value", ""), EFFECTS[found.get("effect", "NO_SCHEDULE")])

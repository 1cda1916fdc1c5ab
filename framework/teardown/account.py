"""The account's side of a teardown, by boto3.

Called by those that run `framework.teardown`. Owns how the cluster's own things are told from others: by the
tags that the controller's policies demand at creation, and by the path of instance profiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import boto3

from framework.api import labels
from framework.teardown.values import Instance, Interface, Leftover

_TEMPLATE, _PROFILE = "launch template", "instance profile"


@attrs.define(kw_only=True)
class AwsAccount:
    """One cluster's nodes in one region of an account."""

    session: boto3.Session
    region: str
    cluster: str

    @classmethod
    def connect(cls, *, region: str, cluster: str, profile: str | None) -> AwsAccount:
        """Use a named profile, else the credentials of the environment."""
        return cls(
            session=boto3.Session(region_name=region, profile_name=profile), region=region, cluster=cluster
        )

    def _client(self, service: str) -> Any:
        return self.session.client(service)  # type: ignore[call-overload]  # one of three literals

    def _pages(self, operation: str, key: str, **arguments: Any) -> list[dict[str, Any]]:
        pages = self._client("ec2").get_paginator(operation).paginate(**arguments)
        return [item for page in pages for item in page[key]]

    @property
    def _owned(self) -> list[dict[str, Any]]:
        """What the controller tags everything with that it makes."""
        return [
            {"Name": f"tag:{labels.CLUSTER_OWNED_TAG_PREFIX}{self.cluster}", "Values": ["owned"]},
            {"Name": "tag-key", "Values": [labels.NODEPOOL]},
        ]

    def _described_cluster(self) -> Mapping[str, Any] | None:
        eks = self._client("eks")
        try:
            return dict(eks.describe_cluster(name=self.cluster)["cluster"])
        except eks.exceptions.ResourceNotFoundException:
            return None

    def cluster_exists(self) -> bool:
        """Whether EKS knows the cluster."""
        return self._described_cluster() is not None

    def instances(self) -> Sequence[Instance]:
        """Instances of the cluster's pools."""
        found = self._pages("describe_instances", "Reservations", Filters=self._owned)
        return tuple(
            Instance(
                id=raw["InstanceId"],
                state=raw["State"]["Name"],
                claim=_tags(raw.get("Tags")).get(labels.NODECLAIM_TAG),
            )
            for reservation in found
            for raw in reservation["Instances"]
        )

    def terminate(self, ids: Sequence[str]) -> None:
        """Begin ending instances."""
        self._client("ec2").terminate_instances(InstanceIds=list(ids))

    def leftovers(self) -> Sequence[Leftover]:
        """Launch templates by tag, instance profiles by path."""
        templates = self._pages("describe_launch_templates", "LaunchTemplates", Filters=self._owned[:1])
        pages = self._client("iam").get_paginator("list_instance_profiles")
        path = f"/karpenter/{self.region}/{self.cluster}/"
        found = [each for page in pages.paginate(PathPrefix=path) for each in page["InstanceProfiles"]]
        # A server that ignores the prefix must not cost others their profiles.
        profiles = [each for each in found if each["Path"].startswith(path)]
        return (
            *(Leftover(kind=_TEMPLATE, id=raw["LaunchTemplateId"]) for raw in templates),
            *(Leftover(kind=_PROFILE, id=raw["InstanceProfileName"]) for raw in profiles),
        )

    def remove(self, leftover: Leftover) -> None:
        """Delete a launch template, or take the role out of an instance profile and delete it."""
        if leftover.kind == _TEMPLATE:
            ec2 = self._client("ec2")
            self._unless_missing(ec2, lambda: ec2.delete_launch_template(LaunchTemplateId=leftover.id))
            return
        iam = self._client("iam")
        found = self._unless_missing(iam, lambda: iam.get_instance_profile(InstanceProfileName=leftover.id))
        for role in (found or {"InstanceProfile": {"Roles": []}})["InstanceProfile"]["Roles"]:
            iam.remove_role_from_instance_profile(InstanceProfileName=leftover.id, RoleName=role["RoleName"])
        self._unless_missing(iam, lambda: iam.delete_instance_profile(InstanceProfileName=leftover.id))

    def node_groups(self) -> frozenset[str]:
        """The group that EKS made for the cluster, and those with its discovery tag."""
        filters = [{"Name": f"tag:{labels.DISCOVERY_TAG}", "Values": [self.cluster]}]
        tagged = self._pages("describe_security_groups", "SecurityGroups", Filters=filters)
        described = self._described_cluster() or {}
        own = (described.get("resourcesVpcConfig") or {}).get("clusterSecurityGroupId")
        return frozenset({group["GroupId"] for group in tagged} | ({own} if own else set()))

    def interfaces(self, groups: frozenset[str]) -> Sequence[Interface]:
        """Interfaces that use any of the groups."""
        if not groups:
            return ()
        filters = [{"Name": "group-id", "Values": sorted(groups)}]
        return tuple(
            Interface(
                id=raw["NetworkInterfaceId"],
                status=raw["Status"],
                groups=frozenset(group["GroupId"] for group in raw["Groups"]),
                tags=_tags(raw.get("TagSet")),
                description=raw.get("Description") or "",
                instance=(raw.get("Attachment") or {}).get("InstanceId"),
            )
            for raw in self._pages("describe_network_interfaces", "NetworkInterfaces", Filters=filters)
        )

    def delete_interface(self, identifier: str) -> None:
        """Delete a detached interface."""
        ec2 = self._client("ec2")
        self._unless_missing(ec2, lambda: ec2.delete_network_interface(NetworkInterfaceId=identifier))

    def _unless_missing(self, client: Any, call: Any) -> Any:
        try:
            return call()
        except client.exceptions.ClientError as error:
            code = error.response["Error"]["Code"]
            if code.endswith((".NotFound", "NoSuchEntity", "NotFoundException")):
                return None
            raise


def _tags(found: Sequence[Mapping[str, str]] | None) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in found or ()}

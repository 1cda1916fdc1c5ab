"""EKS clusters and node groups.

Called by the provider. Owns ForceNew and defaults of these types and the waiting for
the control plane's states; what hangs on a cluster is in `eks_access`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sandbox.pulumi_aws.resource import GONE, Resource, changed_tags, declared_tags, picked
from sandbox.pulumi_aws.session import Session
from sandbox.pulumi_aws.waiting import wait_until
from sandbox.pulumi_aws.wire import Properties, Value

_VPC_INPUTS = (
    "subnetIds",
    "securityGroupIds",
    "endpointPrivateAccess",
    "endpointPublicAccess",
    "publicAccessCidrs",
)
_READY = "ACTIVE"
_FAILED = frozenset({"FAILED", "CREATE_FAILED", "DEGRADED"})


def gone(error: Exception) -> bool:
    """Whether a client's error says that the object is not there."""
    response = getattr(error, "response", {})
    return response.get("Error", {}).get("Code") in GONE


def retag(session: Session, arn: str, old: Properties, new: Properties) -> None:
    """Bring the tags of an EKS object from the old to the new inputs."""
    client = session.client("eks", new.get("region"))
    removed, wanted = changed_tags(session.tags(old), session.tags(new))
    if removed:
        client.untag_resource(resourceArn=arn, tagKeys=removed)
    if wanted:
        client.tag_resource(resourceArn=arn, tags=wanted)


def tag_outputs(session: Session, inputs: Properties, found: Mapping[str, str] | None) -> Properties:
    """The outputs about tags and region that every EKS object has."""
    tags = dict(found or {})
    return {
        "tags": declared_tags(inputs, tags, session),
        "tagsAll": tags,
        "region": inputs.get("region") or session.region,
    }


def status_reached(describe: Any, wanted: str) -> bool:
    """Whether a described object has the wanted status. Raises ValueError when it failed instead."""
    found = describe()
    if found["status"] in _FAILED:
        raise ValueError(f"{found.get('name', 'object')} ended in status {found['status']}")
    return bool(found["status"] == wanted)


def is_gone(describe: Any) -> bool:
    """Whether describing the object fails because it is not there."""
    try:
        describe()
    except Exception as error:
        if gone(error):
            return True
        raise
    return False


class Cluster(Resource):
    """A control plane."""

    type = "aws:eks/cluster:Cluster"
    force_new = frozenset(
        {"name", "roleArn", "bootstrapSelfManagedAddons", "kubernetesNetworkConfig", "outpostConfig"}
    )
    defaults: ClassVar = {"bootstrapSelfManagedAddons": True}
    autoname = "name"

    def _describe(self, session: Session, name: str, inputs: Properties) -> dict[str, Any]:
        found: dict[str, Any] = session.client("eks", inputs.get("region")).describe_cluster(name=name)
        return dict(found["cluster"])

    def create(self, session: Session, inputs: Properties) -> str:
        """Ask for the cluster; its id is its name."""
        config = inputs["vpcConfig"]
        access = inputs.get("accessConfig") or {}
        session.client("eks", inputs.get("region")).create_cluster(
            name=inputs["name"],
            roleArn=inputs["roleArn"],
            resourcesVpcConfig={key: config[key] for key in _VPC_INPUTS if key in config},
            bootstrapSelfManagedAddons=inputs["bootstrapSelfManagedAddons"],
            tags=session.tags(inputs),
            **({"accessConfig": access} if access else {}),
            **({"logging": _logging(inputs)} if inputs.get("enabledClusterLogTypes") else {}),
            **({"encryptionConfig": [_encryption(inputs)]} if inputs.get("encryptionConfig") else {}),
            **picked(
                inputs,
                {
                    "version": "version",
                    "upgradePolicy": "upgradePolicy",
                    "kubernetesNetworkConfig": "kubernetesNetworkConfig",
                },
            ),
        )
        return str(inputs["name"])

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Wait until the control plane answers."""
        wait_until(
            f"cluster {identifier} is {_READY}",
            lambda: status_reached(lambda: self._describe(session, identifier, inputs), _READY),
        )

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The cluster, in the shape of the official provider's release 7."""
        found = self._describe(session, identifier, inputs)
        network = found.get("kubernetesNetworkConfig") or {}
        issuer = found.get("identity", {}).get("oidc", {}).get("issuer", "")
        return {
            "arn": found["arn"],
            "name": identifier,
            "endpoint": found["endpoint"],
            "status": found["status"],
            "version": found["version"],
            "platformVersion": found["platformVersion"],
            "createdAt": str(found["createdAt"]),
            "roleArn": found["roleArn"],
            "certificateAuthority": {"data": found["certificateAuthority"]["data"]},
            "identities": [{"oidcs": [{"issuer": issuer}]}],
            "vpcConfig": _vpc_config(found["resourcesVpcConfig"]),
            "accessConfig": {**(inputs.get("accessConfig") or {}), **(found.get("accessConfig") or {})}
            or None,
            "kubernetesNetworkConfig": network or None,
            "upgradePolicy": found.get("upgradePolicy"),
            "enabledClusterLogTypes": _enabled_logs(found.get("logging")),
            "encryptionConfig": inputs.get("encryptionConfig"),
            "bootstrapSelfManagedAddons": inputs.get("bootstrapSelfManagedAddons", True),
            **tag_outputs(session, inputs, found.get("tags")),
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Raise the version, change access to the endpoint and logging, and set tags."""
        client = session.client("eks", new.get("region"))
        if new.get("version") and new["version"] != old.get("version"):
            client.update_cluster_version(name=identifier, version=new["version"])
            self.configure(session, identifier, new)
        access = {key: new["vpcConfig"].get(key) for key in _VPC_INPUTS}
        if access != {key: old["vpcConfig"].get(key) for key in _VPC_INPUTS}:
            wanted = {key: value for key, value in access.items() if value is not None}
            client.update_cluster_config(name=identifier, resourcesVpcConfig=wanted)
            self.configure(session, identifier, new)
        if new.get("enabledClusterLogTypes") != old.get("enabledClusterLogTypes"):
            client.update_cluster_config(name=identifier, logging=_logging(new))
            self.configure(session, identifier, new)
        retag(session, self._describe(session, identifier, new)["arn"], old, new)

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the cluster and wait until it is gone."""
        session.client("eks", state.get("region")).delete_cluster(name=identifier)
        wait_until(
            f"cluster {identifier} is gone",
            lambda: is_gone(lambda: self._describe(session, identifier, state)),
        )


def _logging(inputs: Properties) -> dict[str, Any]:
    every = ("api", "audit", "authenticator", "controllerManager", "scheduler")
    wanted = set(inputs.get("enabledClusterLogTypes") or ())
    groups = (([t for t in every if t in wanted], True), ([t for t in every if t not in wanted], False))
    return {"clusterLogging": [{"types": types, "enabled": on} for types, on in groups if types]}


def _enabled_logs(logging: Mapping[str, Value] | None) -> list[str]:
    setups = (logging or {}).get("clusterLogging", [])
    return sorted(kind for setup in setups if setup.get("enabled") for kind in setup.get("types", []))


def _encryption(inputs: Properties) -> dict[str, Any]:
    wanted = inputs["encryptionConfig"]
    return {"resources": wanted["resources"], "provider": {"keyArn": wanted["provider"]["keyArn"]}}


def _vpc_config(found: Mapping[str, Value]) -> Properties:
    return {
        "subnetIds": sorted(found.get("subnetIds", [])),
        "securityGroupIds": sorted(found.get("securityGroupIds", [])),
        "vpcId": found.get("vpcId", ""),
        "clusterSecurityGroupId": found.get("clusterSecurityGroupId", ""),
        "endpointPublicAccess": found.get("endpointPublicAccess", True),
        "endpointPrivateAccess": found.get("endpointPrivateAccess", False),
        "publicAccessCidrs": found.get("publicAccessCidrs") or ["0.0.0.0/0"],
    }


class NodeGroup(Resource):
    """Instances that EKS itself keeps."""

    type = "aws:eks/nodeGroup:NodeGroup"
    force_new = frozenset(
        {
            "clusterName",
            "nodeGroupName",
            "nodeGroupNamePrefix",
            "nodeRoleArn",
            "subnetIds",
            "amiType",
            "capacityType",
            "diskSize",
            "instanceTypes",
            "remoteAccess",
        }
    )
    autoname = "nodeGroupName"

    def _describe(self, session: Session, identifier: str, inputs: Properties) -> dict[str, Any]:
        cluster, name = identifier.split(":", 1)
        client = session.client("eks", inputs.get("region"))
        answer = client.describe_nodegroup(clusterName=cluster, nodegroupName=name)
        return dict(answer["nodegroup"])

    def create(self, session: Session, inputs: Properties) -> str:
        """Ask for the group; its id is cluster and name."""
        session.client("eks", inputs.get("region")).create_nodegroup(
            clusterName=inputs["clusterName"],
            nodegroupName=inputs["nodeGroupName"],
            nodeRole=inputs["nodeRoleArn"],
            subnets=inputs["subnetIds"],
            scalingConfig=inputs["scalingConfig"],
            tags=session.tags(inputs),
            **picked(
                inputs,
                {
                    "amiType": "amiType",
                    "capacityType": "capacityType",
                    "diskSize": "diskSize",
                    "instanceTypes": "instanceTypes",
                    "labels": "labels",
                    "taints": "taints",
                    "version": "version",
                    "updateConfig": "updateConfig",
                    "launchTemplate": "launchTemplate",
                },
            ),
        )
        return f"{inputs['clusterName']}:{inputs['nodeGroupName']}"

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Wait until its nodes are there."""
        wait_until(
            f"node group {identifier} is {_READY}",
            lambda: status_reached(lambda: self._describe(session, identifier, inputs), _READY),
        )

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The group."""
        found = self._describe(session, identifier, inputs)
        return {
            "arn": found["nodegroupArn"],
            "clusterName": found["clusterName"],
            "nodeGroupName": found["nodegroupName"],
            "nodeRoleArn": found["nodeRole"],
            "status": found["status"],
            "subnetIds": sorted(found["subnets"]),
            "scalingConfig": found["scalingConfig"],
            "amiType": found.get("amiType"),
            "capacityType": found.get("capacityType"),
            "diskSize": found.get("diskSize"),
            "instanceTypes": found.get("instanceTypes") or [],
            "labels": found.get("labels") or {},
            "taints": found.get("taints") or [],
            "version": found.get("version"),
            "updateConfig": found.get("updateConfig"),
            **tag_outputs(session, inputs, found.get("tags")),
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set size, labels and taints, and tags."""
        client = session.client("eks", new.get("region"))
        names = {"clusterName": new["clusterName"], "nodegroupName": new["nodeGroupName"]}
        changes: dict[str, Any] = {}
        if new["scalingConfig"] != old["scalingConfig"]:
            changes["scalingConfig"] = new["scalingConfig"]
        labels, wanted = old.get("labels") or {}, new.get("labels") or {}
        if labels != wanted:
            changes["labels"] = {
                "addOrUpdateLabels": wanted,
                "removeLabels": sorted(set(labels) - set(wanted)),
            }
        taints, needed = old.get("taints") or [], new.get("taints") or []
        if taints != needed:
            removed = [taint for taint in taints if taint not in needed]
            changes["taints"] = {"addOrUpdateTaints": needed, "removeTaints": removed}
        if changes:
            client.update_nodegroup_config(**names, **changes)
        if new.get("version") and new["version"] != old.get("version"):
            client.update_nodegroup_version(**names, version=new["version"])
        self.configure(session, identifier, new)
        retag(session, self._describe(session, identifier, new)["nodegroupArn"], old, new)

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the group and wait until its instances are gone."""
        session.client("eks", state.get("region")).delete_nodegroup(
            clusterName=state["clusterName"], nodegroupName=state["nodeGroupName"]
        )
        wait_until(
            f"node group {identifier} is gone",
            lambda: is_gone(lambda: self._describe(session, identifier, state)),
        )


RESOURCES: tuple[Resource, ...] = (Cluster(), NodeGroup())

"""Managed node groups: EC2 instances in their subnets, with the node role's profile, ended on delete."""

from __future__ import annotations

import uuid
from typing import Any

from moto.iam.models import iam_backends
from moto.ssm import ssm_backends

from sandbox.aws.ec2 import states
from sandbox.aws.ec2.launching import Launch, all_instances, check, launch, merged
from sandbox.aws.eks.clusters import (
    Cluster,
    Document,
    Request,
    access_entry,
    add_update,
    check_role,
    find,
    role_name,
)
from sandbox.aws.errors import AwsError, NotModelled
from sandbox.aws.world import ACCOUNT

__all__ = ["HANDLERS"]

DEFAULT_SCALING = {"minSize": 1, "maxSize": 2, "desiredSize": 2}
_PARAMETERS = {
    "AL2023_x86_64_STANDARD": "eks/optimized-ami/{v}/amazon-linux-2023/x86_64/standard/recommended/image_id",
    "AL2023_x86_64_NVIDIA": "eks/optimized-ami/{v}/amazon-linux-2023/x86_64/nvidia/recommended/image_id",
    "AL2023_x86_64_NEURON": "eks/optimized-ami/{v}/amazon-linux-2023/x86_64/neuron/recommended/image_id",
    "AL2023_ARM_64_STANDARD": "eks/optimized-ami/{v}/amazon-linux-2023/arm64/standard/recommended/image_id",
    "AL2_x86_64": "eks/optimized-ami/{v}/amazon-linux-2/recommended/image_id",
    "AL2_ARM_64": "eks/optimized-ami/{v}/amazon-linux-2-arm64/recommended/image_id",
    "BOTTLEROCKET_x86_64": "bottlerocket/aws-k8s-{v}/x86_64/latest/image_id",
    "BOTTLEROCKET_ARM_64": "bottlerocket/aws-k8s-{v}/arm64/latest/image_id",
}
"""AMI type → SSM parameter of the image under /aws/service."""


def create_nodegroup(request: Request) -> Document:
    """Create a group, active at once, with its instances."""
    cluster = find(request)
    name = request.get("nodegroupName")
    if name in cluster.nodegroups:
        raise AwsError(
            "ResourceInUseException",
            f"NodeGroup already exists with name {name} and cluster name {cluster.name}",
            409,
        )
    check_role(request.get("nodeRole"), "The role does not exist")
    kind = request.get("amiType", "AL2023_x86_64_STANDARD")
    if kind not in _PARAMETERS:
        raise NotModelled(f"eks node groups with amiType {kind}")
    document = _document(request, cluster, kind)
    _admit_nodes(request, cluster, document["nodeRole"])
    _create_profile(document)
    try:
        _resize(request, cluster, document)
    except AwsError:
        _delete_profile(document)
        raise
    cluster.nodegroups[name] = document
    return {"nodegroup": document}


def _document(request: Request, cluster: Cluster, kind: str) -> Document:
    name, identity = request.get("nodegroupName"), str(uuid.uuid4())
    version = request.get("version", cluster.document["version"])
    document: Document = {
        "nodegroupName": name,
        "nodegroupArn": f"arn:aws:eks:{request.region}:{ACCOUNT}:nodegroup/{cluster.name}/{name}/{identity}",
        "clusterName": cluster.name,
        "version": version,
        "releaseVersion": request.get("releaseVersion", f"{version}.0-20260401"),
        "createdAt": request.now(),
        "modifiedAt": request.now(),
        "status": "ACTIVE",
        "capacityType": request.get("capacityType", "ON_DEMAND"),
        "scalingConfig": {**DEFAULT_SCALING, **(request.get("scalingConfig") or {})},
        "instanceTypes": request.get("instanceTypes") or ["t3.medium"],
        "subnets": request.get("subnets"),
        "amiType": kind,
        "nodeRole": request.get("nodeRole"),
        "labels": request.get("labels") or {},
        "taints": request.get("taints") or [],
        "resources": {"autoScalingGroups": [{"name": f"eks-{name}-{identity}"}]},
        "diskSize": request.get("diskSize", 20),
        "health": {"issues": []},
        "updateConfig": request.get("updateConfig") or {"maxUnavailable": 1},
        "tags": request.get("tags") or {},
    }
    if request.get("launchTemplate"):
        document["launchTemplate"] = request.get("launchTemplate")
        del document["diskSize"]
    return document


def _admit_nodes(request: Request, cluster: Cluster, role: str) -> None:
    """Add the access entry of the node role, as EKS does for managed groups."""
    mode = cluster.document["accessConfig"]["authenticationMode"]
    if mode != "CONFIG_MAP" and role not in cluster.access_entries:
        cluster.access_entries[role] = access_entry(request, cluster, role, "EC2_LINUX")
        cluster.own_entries.add(role)


def _profile_name(document: Document) -> str:
    return "eks-" + str(document["nodegroupArn"]).rsplit("/", 1)[-1]


def _create_profile(document: Document) -> None:
    backend = iam_backends[ACCOUNT]["aws"]
    name = _profile_name(document)
    backend.create_instance_profile(name, "/", [])
    backend.add_role_to_instance_profile(name, role_name(document["nodeRole"]))


def _delete_profile(document: Document) -> None:
    iam_backends[ACCOUNT]["aws"].delete_instance_profile(_profile_name(document), ignore_attached_roles=True)


def _live(request: Request, cluster: Cluster, document: Document) -> list[Any]:
    """Return the group's instances that are not ending, oldest first."""
    ids = set(cluster.nodegroup_instances.get(document["nodegroupName"], ()))
    return [i for i in all_instances(request.ec2()) if i.id in ids and i.state in ("pending", "running")]


def _resize(request: Request, cluster: Cluster, document: Document) -> None:
    """Launch or end instances until the desired size is met; new ones spread over the subnets."""
    desired = int(document["scalingConfig"]["desiredSize"])
    live = _live(request, cluster, document)
    for instance in live[desired:]:
        states.begin_termination(request.world, instance)
    held = cluster.nodegroup_instances.setdefault(document["nodegroupName"], [])
    for place in range(len(live), desired):
        wanted = _launch(request, cluster, document, place)
        check(request.world, request.ec2(), wanted)
        held.extend(i.id for i in launch(request.world, request.ec2(), wanted, 1))


def _launch(request: Request, cluster: Cluster, document: Document, place: int) -> Launch:
    backend = request.ec2()
    subnet = backend.get_subnet(document["subnets"][place % len(document["subnets"])])
    template = document.get("launchTemplate")
    data: dict[str, Any] = {}
    if template:
        template_id = template.get("id") or backend.launch_template_name_to_ids.get(template.get("name"))
        data = (
            backend.get_launch_template(template_id).get_version(template.get("version") or "$Default").data
        )
    group_id = cluster.document["resourcesVpcConfig"]["clusterSecurityGroupId"]
    disk = {
        "DeviceName": "/dev/xvda",
        "Ebs": {"VolumeSize": document.get("diskSize", 20), "VolumeType": "gp3"},
    }
    own = {"SecurityGroupIds": [group_id], "BlockDeviceMappings": [disk]}
    name = document["nodegroupName"]
    return Launch(
        region=request.region,
        instance_type=data.get("InstanceType") or document["instanceTypes"][0],
        image_id=data.get("ImageId") or _image(request, document),
        zone=subnet.availability_zone,
        subnet=subnet,
        capacity_type="spot" if document["capacityType"] == "SPOT" else "on-demand",
        data=merged(merged(own, data), {"IamInstanceProfile": {"Name": _profile_name(document)}}),
        tags={
            "instance": {
                "Name": f"{cluster.name}-{name}",
                "eks:cluster-name": cluster.name,
                "eks:nodegroup-name": name,
                f"kubernetes.io/cluster/{cluster.name}": "owned",
                "aws:autoscaling:groupName": document["resources"]["autoScalingGroups"][0]["name"],
            },
            "volume": {"eks:cluster-name": cluster.name, "eks:nodegroup-name": name},
        },
    )


def _image(request: Request, document: Document) -> str:
    name = "/aws/service/" + _PARAMETERS[document["amiType"]].format(v=document["version"])
    versions = dict.get(ssm_backends[ACCOUNT][request.region]._parameters, name)
    if not versions:
        raise AwsError(
            "InvalidParameterException",
            f"Requested AMI type {document['amiType']} is not supported for Kubernetes {document['version']}",
        )
    return str(versions[-1].value)


def _group(request: Request) -> tuple[Cluster, Document]:
    cluster = find(request)
    name = request.scalar("nodegroupName") or ""
    if name not in cluster.nodegroups:
        raise AwsError("ResourceNotFoundException", f"No node group found for name: {name}.", 404)
    return cluster, cluster.nodegroups[name]


def describe_nodegroup(request: Request) -> Document:
    """Return a group."""
    return {"nodegroup": _group(request)[1]}


def list_nodegroups(request: Request) -> Document:
    """Return the names of a cluster's groups."""
    return request.page("nodegroups", sorted(find(request).nodegroups))


def update_nodegroup_config(request: Request) -> Document:
    """Change scaling, labels, taints or the update configuration."""
    cluster, document = _group(request)
    document["scalingConfig"].update(request.get("scalingConfig") or {})
    document["updateConfig"].update(request.get("updateConfig") or {})
    labels = request.get("labels") or {}
    document["labels"].update(labels.get("addOrUpdateLabels") or {})
    for key in labels.get("removeLabels") or ():
        document["labels"].pop(key, None)
    _change_taints(document, request.get("taints") or {})
    document["modifiedAt"] = request.now()
    _resize(request, cluster, document)
    about = f"nodegroup/{document['nodegroupName']}"
    changed = {
        k: request.get(k) for k in ("scalingConfig", "labels", "taints", "updateConfig") if request.get(k)
    }
    return {"update": add_update(request, cluster, "ConfigUpdate", about, changed)}


def _change_taints(document: Document, change: Document) -> None:
    def key(taint: Document) -> tuple[str, str]:
        return taint["key"], taint["effect"]

    taints = {key(t): t for t in document["taints"]}
    taints.update({key(t): t for t in change.get("addOrUpdateTaints") or ()})
    for taint in change.get("removeTaints") or ():
        taints.pop(key(taint), None)
    document["taints"] = list(taints.values())


def update_nodegroup_version(request: Request) -> Document:
    """Note the new version and replace the instances by ones of its image."""
    cluster, document = _group(request)
    document["version"] = request.get("version", cluster.document["version"])
    document["releaseVersion"] = request.get("releaseVersion", f"{document['version']}.0-20260401")
    for instance in _live(request, cluster, document):
        states.begin_termination(request.world, instance)
    _resize(request, cluster, document)
    changes = {"Version": document["version"], "ReleaseVersion": document["releaseVersion"]}
    about = f"nodegroup/{document['nodegroupName']}"
    return {"update": add_update(request, cluster, "VersionUpdate", about, changes)}


def delete_nodegroup(request: Request) -> Document:
    """End the instances; the group is DELETING until they are gone."""
    cluster, document = _group(request)
    document["status"] = "DELETING"
    for instance in _live(request, cluster, document):
        states.begin_termination(request.world, instance)
    world = request.world
    world.lifecycle.schedule(world.now() + world.timings.shutdown, lambda: _finish_delete(cluster, document))
    return {"nodegroup": document}


def _finish_delete(cluster: Cluster, document: Document) -> None:
    name, role = document["nodegroupName"], document["nodeRole"]
    cluster.nodegroups.pop(name, None)
    cluster.nodegroup_instances.pop(name, None)
    _delete_profile(document)
    if role in cluster.own_entries and not any(g["nodeRole"] == role for g in cluster.nodegroups.values()):
        cluster.own_entries.discard(role)
        cluster.access_entries.pop(role, None)
        cluster.access_policies.pop(role, None)


HANDLERS = {
    "CreateNodegroup": create_nodegroup,
    "DeleteNodegroup": delete_nodegroup,
    "DescribeNodegroup": describe_nodegroup,
    "ListNodegroups": list_nodegroups,
    "UpdateNodegroupConfig": update_nodegroup_config,
    "UpdateNodegroupVersion": update_nodegroup_version,
}

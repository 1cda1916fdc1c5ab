"""Add-ons: known names and versions, active at once."""

from __future__ import annotations

import uuid

from sandbox.aws.eks.clusters import Cluster, Document, Request, add_update, find
from sandbox.aws.errors import AwsError
from sandbox.aws.image_catalogue import KUBERNETES_VERSIONS
from sandbox.aws.world import ACCOUNT

__all__ = ["HANDLERS"]

VERSIONS = {
    "aws-ebs-csi-driver": ("v1.48.0-eksbuild.1", "v1.52.1-eksbuild.1"),
    "coredns": ("v1.12.1-eksbuild.2", "v1.12.4-eksbuild.1"),
    "eks-node-monitoring-agent": ("v1.4.0-eksbuild.2",),
    "eks-pod-identity-agent": ("v1.3.8-eksbuild.2", "v1.3.9-eksbuild.3"),
    "kube-proxy": ("v1.34.0-eksbuild.2", "v1.34.1-eksbuild.1"),
    "metrics-server": ("v0.8.0-eksbuild.2",),
    "vpc-cni": ("v1.20.1-eksbuild.3", "v1.20.4-eksbuild.1"),
}
"""Add-on → versions, oldest first; the last one is the default."""


def _known_version(name: str, version: str | None) -> str:
    if name not in VERSIONS:
        raise AwsError("InvalidParameterException", f"Addon {name} specified is not supported")
    if version is None:
        return VERSIONS[name][-1]
    if version not in VERSIONS[name]:
        raise AwsError("InvalidParameterException", f"Addon version {version} specified is not supported")
    return version


def _addon(request: Request) -> tuple[Cluster, Document]:
    cluster = find(request)
    name = request.scalar("addonName") or ""
    if name not in cluster.addons:
        raise AwsError("ResourceNotFoundException", f"No addon: {name} found in cluster: {cluster.name}", 404)
    return cluster, cluster.addons[name]


def create_addon(request: Request) -> Document:
    """Install an add-on."""
    cluster = find(request)
    name = request.get("addonName")
    if name in cluster.addons:
        raise AwsError("ResourceInUseException", f"Addon already exists: {name}", 409)
    version = _known_version(name, request.get("addonVersion"))
    document: Document = {
        "addonName": name,
        "clusterName": cluster.name,
        "status": "ACTIVE",
        "addonVersion": version,
        "health": {"issues": []},
        "addonArn": f"arn:aws:eks:{request.region}:{ACCOUNT}:addon/{cluster.name}/{name}/{uuid.uuid4()}",
        "createdAt": request.now(),
        "modifiedAt": request.now(),
        "tags": request.get("tags") or {},
        "owner": "aws",
        "publisher": "eks",
    }
    for key in ("serviceAccountRoleArn", "configurationValues"):
        if request.get(key):
            document[key] = request.get(key)
    cluster.addons[name] = document
    return {"addon": document}


def describe_addon(request: Request) -> Document:
    """Return an add-on."""
    return {"addon": _addon(request)[1]}


def list_addons(request: Request) -> Document:
    """Return the names of a cluster's add-ons."""
    return request.page("addons", sorted(find(request).addons))


def update_addon(request: Request) -> Document:
    """Change version, role or configuration."""
    cluster, document = _addon(request)
    name = document["addonName"]
    document["addonVersion"] = _known_version(name, request.get("addonVersion", document["addonVersion"]))
    for key in ("serviceAccountRoleArn", "configurationValues"):
        if request.get(key) is not None:
            document[key] = request.get(key)
    document["modifiedAt"] = request.now()
    changes = {"AddonVersion": document["addonVersion"]}
    return {"update": add_update(request, cluster, "AddonUpdate", f"addon/{name}", changes)}


def delete_addon(request: Request) -> Document:
    """Remove an add-on."""
    cluster, document = _addon(request)
    del cluster.addons[document["addonName"]]
    return {"addon": {**document, "status": "DELETING"}}


def describe_addon_versions(request: Request) -> Document:
    """Return add-ons and their versions, newest first."""
    wanted = request.scalar("addonName")
    if wanted is not None:
        _known_version(wanted, None)
    kubernetes = request.scalar("kubernetesVersion")
    compatible = [v for v in KUBERNETES_VERSIONS if kubernetes in (None, v)]
    rows = [
        {
            "addonName": name,
            "type": "networking" if name in ("vpc-cni", "coredns", "kube-proxy") else "other",
            "owner": "aws",
            "publisher": "eks",
            "addonVersions": [
                {
                    "addonVersion": version,
                    "architecture": ["amd64", "arm64"],
                    "compatibilities": [
                        {
                            "clusterVersion": v,
                            "platformVersions": ["*"],
                            "defaultVersion": version == versions[-1],
                        }
                        for v in compatible
                    ],
                }
                for version in reversed(versions)
            ],
        }
        for name, versions in sorted(VERSIONS.items())
        if wanted in (None, name)
    ]
    return request.page("addons", rows)


HANDLERS = {
    "CreateAddon": create_addon,
    "DeleteAddon": delete_addon,
    "DescribeAddon": describe_addon,
    "DescribeAddonVersions": describe_addon_versions,
    "ListAddons": list_addons,
    "UpdateAddon": update_addon,
}

"""Clusters: creation with a security group and interfaces in the VPC, updates, versions, deletion."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from moto.ec2 import ec2_backends
from moto.iam.models import iam_backends

from sandbox.aws.errors import AwsError
from sandbox.aws.image_catalogue import KUBERNETES_VERSIONS
from sandbox.aws.world import ACCOUNT, World

__all__ = ["HANDLERS", "Cluster", "Document", "Request", "check_role", "find", "role_name"]

Document = dict[str, Any]
"""A resource as the API shows it."""

CREATOR = f"arn:aws:iam::{ACCOUNT}:user/moto"
"""Who moto's STS says every caller is."""
ADMIN_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
DEFAULT_VERSION = KUBERNETES_VERSIONS[-2]
STANDARD_SUPPORT = KUBERNETES_VERSIONS[-3:]


@attrs.define(kw_only=True)
class Cluster:
    """A cluster and what belongs to it."""

    name: str
    region: str
    document: Document
    interfaces: list[str] = attrs.field(factory=list)
    """Ids of the control plane's network interfaces."""
    nodegroups: dict[str, Document] = attrs.field(factory=dict)
    nodegroup_instances: dict[str, list[str]] = attrs.field(factory=dict)
    access_entries: dict[str, Document] = attrs.field(factory=dict)
    """By principal ARN."""
    access_policies: dict[str, dict[str, Document]] = attrs.field(factory=dict)
    """Principal ARN → policy ARN → association."""
    own_entries: set[str] = attrs.field(factory=set)
    """Principals whose entry EKS made for a node group."""
    addons: dict[str, Document] = attrs.field(factory=dict)
    pod_identities: dict[str, Document] = attrs.field(factory=dict)
    """By association id."""
    updates: dict[str, tuple[str, Document]] = attrs.field(factory=dict)
    """Update id → (what it is about: "", "nodegroup/<name>" or "addon/<name>", document)."""


@attrs.frozen(kw_only=True)
class Request:
    """One call: the world, the region and the parameters by member name."""

    world: World
    region: str
    parameters: Mapping[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a parameter; the only value of a query parameter given once."""
        value = self.parameters.get(name)
        return default if value is None else value

    def scalar(self, name: str) -> str | None:
        """Return a parameter from path or query as text."""
        value = self.parameters.get(name)
        if isinstance(value, list):
            return str(value[0]) if value else None
        return None if value is None else str(value)

    def now(self) -> float:
        """Return the instant as EKS writes it, seconds since the epoch."""
        return self.world.now().timestamp()

    def ec2(self) -> Any:
        """Return moto's EC2 backend of the region."""
        return ec2_backends[ACCOUNT][self.region]

    def page(self, key: str, found: Sequence[Any]) -> Document:
        """Return the page that maxResults and nextToken ask for."""
        size = int(self.scalar("maxResults") or 100)
        start = int(self.scalar("nextToken") or 0)
        answer: Document = {key: list(found[start : start + size])}
        if start + size < len(found):
            answer["nextToken"] = str(start + size)
        return answer


def find(request: Request, parameter: str = "clusterName") -> Cluster:
    """Return the cluster a call names. Raises ResourceNotFoundException."""
    name = request.scalar(parameter) or request.scalar("name") or ""
    cluster: Cluster | None = request.world.clusters.get((request.region, name))
    if cluster is None:
        raise AwsError("ResourceNotFoundException", f"No cluster found for name: {name}.", 404)
    return cluster


def role_name(arn: str) -> str:
    """Return the last part of a role's ARN."""
    return arn.rsplit("/", 1)[-1]


def check_role(arn: str | None, problem: str) -> None:
    """Refuse a principal or role that IAM does not have."""
    backend = iam_backends[ACCOUNT]["aws"]
    known = {role.arn for role in backend.roles.values()} | {user.arn for user in backend.users.values()}
    if arn not in known:
        raise AwsError("InvalidParameterException", f"{problem}: {arn}")


def add_update(
    request: Request, cluster: Cluster, kind: str, about: str, parameters: Mapping[str, Any]
) -> Document:
    """Note a finished update and return its document."""
    update_id = str(uuid.uuid4())
    update = {
        "id": update_id,
        "status": "Successful",
        "type": kind,
        "params": [{"type": key, "value": str(value)} for key, value in parameters.items()],
        "createdAt": request.now(),
        "errors": [],
    }
    cluster.updates[update_id] = (about, update)
    return update


def shown(world: World, cluster: Cluster) -> Document:
    """Return the cluster with the local API server's endpoint and CA, once they are known."""
    known = world.cluster_endpoint
    if known is None:
        return cluster.document
    return {
        **cluster.document,
        "endpoint": known.endpoint,
        "certificateAuthority": {"data": known.certificate_authority},
    }


def create_cluster(request: Request) -> Document:
    """Create a cluster, active at once."""
    name = request.get("name")
    if (request.region, name) in request.world.clusters:
        raise AwsError("ResourceInUseException", f"Cluster already exists with name: {name}", 409)
    check_role(request.get("roleArn"), "Role does not exist")
    version = request.get("version", DEFAULT_VERSION)
    if version not in KUBERNETES_VERSIONS:
        raise AwsError("InvalidParameterException", f"unsupported Kubernetes version {version}")
    subnets = _subnets(request)
    cluster = Cluster(name=name, region=request.region, document=_document(request, version, subnets))
    _add_network(request, cluster, subnets)
    access = cluster.document["accessConfig"]
    if access.pop("bootstrapClusterCreatorAdminPermissions") and access["authenticationMode"] != "CONFIG_MAP":
        _admit_creator(request, cluster)
    request.world.clusters[(request.region, name)] = cluster
    return {"cluster": shown(request.world, cluster)}


def _subnets(request: Request) -> list[Any]:
    ids = (request.get("resourcesVpcConfig") or {}).get("subnetIds") or []
    backend = request.ec2()
    known = {subnet.id: subnet for by_zone in backend.subnets.values() for subnet in by_zone.values()}
    missing = [i for i in ids if i not in known]
    if missing:
        raise AwsError("InvalidParameterException", f"The subnet ID '{missing[0]}' does not exist")
    subnets = [known[i] for i in ids]
    if len({s.availability_zone for s in subnets}) < 2:
        raise AwsError("InvalidParameterException", "Subnets specified must be in at least two different AZs")
    if len({s.vpc_id for s in subnets}) > 1:
        raise AwsError("InvalidParameterException", "Subnets specified must be in the same VPC")
    return subnets


def _document(request: Request, version: str, subnets: Sequence[Any]) -> Document:
    name, region = request.get("name"), request.region
    identity = hashlib.sha256(f"{region}/{name}/{request.now()}".encode()).hexdigest()[:32].upper()
    network = request.get("resourcesVpcConfig") or {}
    vpc = request.ec2().get_vpc(subnets[0].vpc_id)
    cidr = "172.20.0.0/16" if vpc.cidr_block.startswith("10.") else "10.100.0.0/16"
    access = request.get("accessConfig") or {}
    placeholder = f"-----BEGIN CERTIFICATE-----\n{identity}\n-----END CERTIFICATE-----\n"
    return {
        "name": name,
        "arn": f"arn:aws:eks:{region}:{ACCOUNT}:cluster/{name}",
        "createdAt": request.now(),
        "version": version,
        "endpoint": f"https://{identity}.gr7.{region}.eks.amazonaws.com",
        "roleArn": request.get("roleArn"),
        "resourcesVpcConfig": {
            "subnetIds": [s.id for s in subnets],
            "securityGroupIds": network.get("securityGroupIds") or [],
            "vpcId": subnets[0].vpc_id,
            "endpointPublicAccess": network.get("endpointPublicAccess", True),
            "endpointPrivateAccess": network.get("endpointPrivateAccess", False),
            "publicAccessCidrs": network.get("publicAccessCidrs") or ["0.0.0.0/0"],
        },
        "kubernetesNetworkConfig": {
            "serviceIpv4Cidr": cidr,
            "ipFamily": "ipv4",
            **(request.get("kubernetesNetworkConfig") or {}),
        },
        "logging": request.get("logging") or {"clusterLogging": []},
        "identity": {"oidc": {"issuer": f"https://oidc.eks.{region}.amazonaws.com/id/{identity}"}},
        "status": "ACTIVE",
        "certificateAuthority": {"data": base64.b64encode(placeholder.encode()).decode()},
        "platformVersion": "eks.1",
        "tags": request.get("tags") or {},
        "encryptionConfig": request.get("encryptionConfig") or [],
        "health": {"issues": []},
        "accessConfig": {
            "authenticationMode": access.get("authenticationMode") or "CONFIG_MAP",
            "bootstrapClusterCreatorAdminPermissions": access.get(
                "bootstrapClusterCreatorAdminPermissions", True
            ),
        },
        "upgradePolicy": request.get("upgradePolicy") or {"supportType": "EXTENDED"},
        "deletionProtection": bool(request.get("deletionProtection", False)),
    }


def _add_network(request: Request, cluster: Cluster, subnets: Sequence[Any]) -> None:
    """Make the cluster's security group and an interface in each subnet, as EKS does."""
    backend = request.ec2()
    group = backend.create_security_group(
        f"eks-cluster-sg-{cluster.name}",
        "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as "
        "well as any managed workloads.",
        vpc_id=subnets[0].vpc_id,
        tags={
            "Name": f"eks-cluster-sg-{cluster.name}",
            f"kubernetes.io/cluster/{cluster.name}": "owned",
            "aws:eks:cluster-name": cluster.name,
        },
    )
    cluster.document["resourcesVpcConfig"]["clusterSecurityGroupId"] = group.id
    for subnet in subnets:
        interface = backend.create_network_interface(
            subnet,
            subnet.get_available_subnet_ip(instance=None),
            group_ids=[group.id],
            description=f"Amazon EKS {cluster.name}",
        )
        cluster.interfaces.append(interface.id)


def _admit_creator(request: Request, cluster: Cluster) -> None:
    entry = access_entry(request, cluster, CREATOR, "STANDARD")
    cluster.access_entries[CREATOR] = entry
    cluster.access_policies[CREATOR] = {
        ADMIN_POLICY: {
            "policyArn": ADMIN_POLICY,
            "accessScope": {"type": "cluster", "namespaces": []},
            "associatedAt": request.now(),
            "modifiedAt": request.now(),
        }
    }


def access_entry(request: Request, cluster: Cluster, principal: str, kind: str) -> Document:
    """Return a new access entry with EKS's defaults for its type."""
    groups = {
        "EC2_LINUX": ["system:nodes"],
        "EC2_WINDOWS": ["eks:kube-proxy-windows", "system:nodes"],
    }.get(kind, [])
    user = "system:node:{{EC2PrivateDNSName}}" if kind.startswith("EC2") else principal
    parts = principal.split(":")[5].split("/")
    return {
        "clusterName": cluster.name,
        "principalArn": principal,
        "kubernetesGroups": groups,
        "accessEntryArn": f"arn:aws:eks:{cluster.region}:{ACCOUNT}:access-entry/{cluster.name}/{parts[0]}"
        f"/{ACCOUNT}/{parts[-1]}/{uuid.uuid4()}",
        "createdAt": request.now(),
        "modifiedAt": request.now(),
        "tags": {},
        "username": user,
        "type": kind,
    }


def describe_cluster(request: Request) -> Document:
    """Return a cluster."""
    return {"cluster": shown(request.world, find(request, "name"))}


def list_clusters(request: Request) -> Document:
    """Return the names of the region's clusters."""
    return request.page("clusters", sorted(n for r, n in request.world.clusters if r == request.region))


def update_cluster_config(request: Request) -> Document:
    """Change logging, endpoint access, subnets, access mode, upgrade policy or deletion protection."""
    cluster = find(request, "name")
    document = cluster.document
    kinds = {
        "logging": "LoggingUpdate",
        "resourcesVpcConfig": "EndpointAccessUpdate",
        "accessConfig": "AccessConfigUpdate",
        "upgradePolicy": "UpgradePolicyUpdate",
        "deletionProtection": "DeletionProtectionUpdate",
    }
    given = [key for key in kinds if request.get(key) is not None]
    if not given:
        raise AwsError("InvalidParameterException", "No changes needed for the config update provided")
    for key in given:
        value = request.get(key)
        document[key] = {**document[key], **value} if isinstance(value, dict) else value
    update = add_update(request, cluster, kinds[given[0]], "", {k: request.get(k) for k in given})
    return {"update": update}


def update_cluster_version(request: Request) -> Document:
    """Upgrade by one minor version."""
    cluster = find(request, "name")
    wanted, have = request.get("version"), cluster.document["version"]
    if (
        wanted not in KUBERNETES_VERSIONS
        or KUBERNETES_VERSIONS.index(wanted) != KUBERNETES_VERSIONS.index(have) + 1
    ):
        raise AwsError(
            "InvalidParameterException", f"Unsupported Kubernetes version update from {have} to {wanted}"
        )
    cluster.document["version"] = wanted
    return {"update": add_update(request, cluster, "VersionUpdate", "", {"Version": wanted})}


def delete_cluster(request: Request) -> Document:
    """Delete a cluster without node groups, with its security group and interfaces."""
    cluster = find(request, "name")
    if cluster.nodegroups:
        raise AwsError("ResourceInUseException", "Cluster has nodegroups attached", 409)
    if cluster.document["deletionProtection"]:
        raise AwsError("InvalidRequestException", "Cluster has deletion protection enabled")
    backend = request.ec2()
    for interface_id in cluster.interfaces:
        interface = backend.enis.pop(interface_id, None)
        for address in interface.private_ip_addresses if interface else ():
            interface.subnet.del_subnet_ip(address["PrivateIpAddress"])
    backend.delete_security_group(group_id=cluster.document["resourcesVpcConfig"]["clusterSecurityGroupId"])
    del request.world.clusters[(request.region, cluster.name)]
    return {"cluster": {**shown(request.world, cluster), "status": "DELETING"}}


def describe_cluster_versions(request: Request) -> Document:
    """Return the Kubernetes versions on offer, newest first."""
    wanted = request.parameters.get("clusterVersions")
    rows = [
        {
            "clusterVersion": version,
            "clusterType": "eks",
            "defaultPlatformVersion": "eks.1",
            "defaultVersion": version == DEFAULT_VERSION,
            "versionStatus": "STANDARD_SUPPORT" if version in STANDARD_SUPPORT else "EXTENDED_SUPPORT",
            "status": "standard-support" if version in STANDARD_SUPPORT else "extended-support",
        }
        for version in reversed(KUBERNETES_VERSIONS)
        if not wanted or version in wanted
    ]
    return request.page("clusterVersions", rows)


def list_updates(request: Request) -> Document:
    """Return ids of updates of a cluster, node group or add-on."""
    cluster = find(request, "name")
    about = _about(request)
    return request.page("updateIds", [i for i, (what, _) in cluster.updates.items() if what == about])


def describe_update(request: Request) -> Document:
    """Return an update."""
    cluster = find(request, "name")
    update_id = request.scalar("updateId") or ""
    if update_id not in cluster.updates:
        raise AwsError("ResourceNotFoundException", f"No update found for ID: {update_id}", 404)
    return {"update": cluster.updates[update_id][1]}


def _about(request: Request) -> str:
    if request.scalar("nodegroupName"):
        return f"nodegroup/{request.scalar('nodegroupName')}"
    return f"addon/{request.scalar('addonName')}" if request.scalar("addonName") else ""


HANDLERS = {
    "CreateCluster": create_cluster,
    "DeleteCluster": delete_cluster,
    "DescribeCluster": describe_cluster,
    "DescribeClusterVersions": describe_cluster_versions,
    "DescribeUpdate": describe_update,
    "ListClusters": list_clusters,
    "ListUpdates": list_updates,
    "UpdateClusterConfig": update_cluster_config,
    "UpdateClusterVersion": update_cluster_version,
}

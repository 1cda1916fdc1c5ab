"""Access entries, their policies, and pod identity associations."""

from __future__ import annotations

import uuid

from sandbox.aws.eks.clusters import Cluster, Document, Request, access_entry, check_role, find
from sandbox.aws.errors import AwsError
from sandbox.aws.world import ACCOUNT

__all__ = ["HANDLERS"]

TYPES = ("STANDARD", "FARGATE_LINUX", "EC2_LINUX", "EC2_WINDOWS", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX")
_POLICY = "arn:aws:eks::aws:cluster-access-policy/"
POLICIES = (
    "AmazonEKSAdminPolicy",
    "AmazonEKSAdminViewPolicy",
    "AmazonEKSClusterAdminPolicy",
    "AmazonEKSEditPolicy",
    "AmazonEKSViewPolicy",
)


def _cluster(request: Request) -> Cluster:
    """Return the cluster, if its mode lets entries count."""
    cluster = find(request)
    if cluster.document["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        raise AwsError(
            "InvalidRequestException",
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform "
            "this operation.",
        )
    return cluster


def _entry(request: Request) -> tuple[Cluster, Document]:
    cluster = _cluster(request)
    principal = request.scalar("principalArn") or ""
    if principal not in cluster.access_entries:
        raise AwsError(
            "ResourceNotFoundException",
            "The specified principalArn could not be found. You can view your available access entries with "
            "'list-access-entries'.",
            404,
        )
    return cluster, cluster.access_entries[principal]


def create_access_entry(request: Request) -> Document:
    """Admit a principal that IAM has."""
    cluster = _cluster(request)
    principal, kind = request.get("principalArn"), request.get("type", "STANDARD")
    if principal in cluster.access_entries:
        raise AwsError(
            "ResourceInUseException",
            "The specified access entry resource is already in use on this cluster.",
            409,
        )
    if kind not in TYPES:
        raise AwsError(
            "InvalidParameterException", f"The specified type {kind} is not one of {', '.join(TYPES)}"
        )
    check_role(principal, "The specified principalArn is invalid: invalid principal")
    if kind != "STANDARD" and (request.get("kubernetesGroups") or request.get("username")):
        raise AwsError("InvalidParameterException", f"username and groups cannot be set for type {kind}")
    entry = access_entry(request, cluster, principal, kind)
    entry["kubernetesGroups"] = request.get("kubernetesGroups") or entry["kubernetesGroups"]
    entry["username"] = request.get("username") or entry["username"]
    entry["tags"] = request.get("tags") or {}
    cluster.access_entries[principal] = entry
    return {"accessEntry": entry}


def describe_access_entry(request: Request) -> Document:
    """Return an entry."""
    return {"accessEntry": _entry(request)[1]}


def list_access_entries(request: Request) -> Document:
    """Return the principals, of one associated policy if asked."""
    cluster = _cluster(request)
    policy = request.scalar("associatedPolicyArn")
    found = [
        arn
        for arn in cluster.access_entries
        if policy is None or policy in cluster.access_policies.get(arn, {})
    ]
    return request.page("accessEntries", sorted(found))


def update_access_entry(request: Request) -> Document:
    """Change groups or user name of a standard entry."""
    _, entry = _entry(request)
    for key in ("kubernetesGroups", "username"):
        if request.get(key) is not None:
            entry[key] = request.get(key)
    entry["modifiedAt"] = request.now()
    return {"accessEntry": entry}


def delete_access_entry(request: Request) -> Document:
    """Delete an entry with its policies."""
    cluster, entry = _entry(request)
    principal = entry["principalArn"]
    del cluster.access_entries[principal]
    cluster.access_policies.pop(principal, None)
    cluster.own_entries.discard(principal)
    return {}


def associate_access_policy(request: Request) -> Document:
    """Give a principal one of EKS's policies in a scope."""
    cluster, entry = _entry(request)
    policy = request.get("policyArn")
    if str(policy).removeprefix(_POLICY) not in POLICIES:
        raise AwsError("InvalidParameterException", f"The policyArn {policy} is not valid")
    scope = request.get("accessScope") or {}
    association = {
        "policyArn": policy,
        "accessScope": {"type": scope.get("type", "cluster"), "namespaces": scope.get("namespaces") or []},
        "associatedAt": request.now(),
        "modifiedAt": request.now(),
    }
    cluster.access_policies.setdefault(entry["principalArn"], {})[policy] = association
    return {
        "clusterName": cluster.name,
        "principalArn": entry["principalArn"],
        "associatedAccessPolicy": association,
    }


def disassociate_access_policy(request: Request) -> Document:
    """Take a policy away."""
    cluster, entry = _entry(request)
    held = cluster.access_policies.get(entry["principalArn"], {})
    if held.pop(request.scalar("policyArn") or "", None) is None:
        raise AwsError("ResourceNotFoundException", "The specified policyArn is not associated", 404)
    return {}


def list_associated_access_policies(request: Request) -> Document:
    """Return a principal's policies."""
    cluster, entry = _entry(request)
    held = cluster.access_policies.get(entry["principalArn"], {})
    page = request.page("associatedAccessPolicies", [held[arn] for arn in sorted(held)])
    return {"clusterName": cluster.name, "principalArn": entry["principalArn"], **page}


def list_access_policies(request: Request) -> Document:
    """Return EKS's policies."""
    return request.page("accessPolicies", [{"name": name, "arn": _POLICY + name} for name in POLICIES])


def create_pod_identity_association(request: Request) -> Document:
    """Give a service account a role; one association per service account."""
    cluster = find(request)
    namespace, account = request.get("namespace"), request.get("serviceAccount")
    taken = {(d["namespace"], d["serviceAccount"]) for d in cluster.pod_identities.values()}
    if (namespace, account) in taken:
        raise AwsError(
            "ResourceInUseException",
            f"Association already exists for service account {account} in namespace {namespace}",
            409,
        )
    check_role(request.get("roleArn"), "Role does not exist")
    association_id = f"a-{uuid.uuid4().hex[:17]}"
    document = {
        "clusterName": cluster.name,
        "namespace": namespace,
        "serviceAccount": account,
        "roleArn": request.get("roleArn"),
        "associationArn": f"arn:aws:eks:{request.region}:{ACCOUNT}:podidentityassociation/{cluster.name}/"
        f"{association_id}",
        "associationId": association_id,
        "tags": request.get("tags") or {},
        "createdAt": request.now(),
        "modifiedAt": request.now(),
        "disableSessionTags": bool(request.get("disableSessionTags", False)),
    }
    cluster.pod_identities[association_id] = document
    return {"association": document}


def _association(request: Request) -> tuple[Cluster, Document]:
    cluster = find(request)
    wanted = request.scalar("associationId") or ""
    if wanted not in cluster.pod_identities:
        raise AwsError("ResourceNotFoundException", f"No pod identity association found for {wanted}", 404)
    return cluster, cluster.pod_identities[wanted]


def describe_pod_identity_association(request: Request) -> Document:
    """Return an association."""
    return {"association": _association(request)[1]}


def list_pod_identity_associations(request: Request) -> Document:
    """Return the associations, of one namespace or service account if asked."""
    cluster = find(request)
    keys = ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId")
    found = [
        {key: document[key] for key in keys}
        for document in cluster.pod_identities.values()
        if request.scalar("namespace") in (None, document["namespace"])
        and request.scalar("serviceAccount") in (None, document["serviceAccount"])
    ]
    return request.page("associations", found)


def update_pod_identity_association(request: Request) -> Document:
    """Change the role."""
    _, document = _association(request)
    if request.get("roleArn"):
        check_role(request.get("roleArn"), "Role does not exist")
        document["roleArn"] = request.get("roleArn")
    document["modifiedAt"] = request.now()
    return {"association": document}


def delete_pod_identity_association(request: Request) -> Document:
    """Delete an association."""
    cluster, document = _association(request)
    del cluster.pod_identities[document["associationId"]]
    return {"association": document}


HANDLERS = {
    "AssociateAccessPolicy": associate_access_policy,
    "CreateAccessEntry": create_access_entry,
    "CreatePodIdentityAssociation": create_pod_identity_association,
    "DeleteAccessEntry": delete_access_entry,
    "DeletePodIdentityAssociation": delete_pod_identity_association,
    "DescribeAccessEntry": describe_access_entry,
    "DescribePodIdentityAssociation": describe_pod_identity_association,
    "DisassociateAccessPolicy": disassociate_access_policy,
    "ListAccessEntries": list_access_entries,
    "ListAccessPolicies": list_access_policies,
    "ListAssociatedAccessPolicies": list_associated_access_policies,
    "ListPodIdentityAssociations": list_pod_identity_associations,
    "UpdateAccessEntry": update_access_entry,
    "UpdatePodIdentityAssociation": update_pod_identity_association,
}

"""Cases about what a preview must find: the tags of security groups, the permissions of the controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.iam.evaluate import Request, allowed
from framework.iam.policies import controller_policies
from framework.iam.scope import Scope
from stacks.programs.discovery import TaggedGroup, WrongGroups, node_groups
from tests.cases.awsstage import strangers
from tests.cases.files import Variant

_ACCOUNT = "111122223333"
_CLUSTER = "demo"
_KNOWN = ("error", "nodeSecurityGroups", "policyMustAllow", "policyMustDeny")


def unreachable(variant: Variant) -> str | None:
    """Return why the case cannot be run here, None when it can."""
    return strangers(variant, _KNOWN) if variant.when == "iac-check" else f"when: {variant.when}"


def run(variant: Variant) -> list[str]:
    """Return what differs from the expectation; empty when the case passes."""
    faults: list[str] = []
    if "securityGroups" in variant.given:
        faults += _groups(variant)
    for key, wanted in (("policyMustAllow", True), ("policyMustDeny", False)):
        faults += [
            f"{key}: {each['action']} on {each['resource']}"
            for each in variant.expect.get(key, ())
            if _may(variant, each) is not wanted
        ]
    return faults


def _groups(variant: Variant) -> list[str]:
    cluster = str(variant.given.get("clusterName", _CLUSTER))
    given = [
        TaggedGroup(id=each["id"], tags=each.get("tags") or {}) for each in variant.given["securityGroups"]
    ]
    try:
        found, error = list(node_groups(given, cluster)), ""
    except WrongGroups as exc:
        found, error = [], str(exc)
    words = variant.expect.get("error")
    faults = [f"error lacks {word}: {error!r}" for word in words or () if word not in error]
    if bool(words) is not bool(error):
        faults.append(f"error: {error!r}, expected {words}")
    wanted = variant.expect.get("nodeSecurityGroups", found)
    return faults if found == wanted else [*faults, f"nodeSecurityGroups: {found}, expected {wanted}"]


def _may(variant: Variant, wanted: Mapping[str, Any]) -> bool:
    """Ask the generated policies; tags are those that a request of the controller carries."""
    region = variant.catalog["region"]
    cluster = str(variant.given.get("clusterName", _CLUSTER))
    scope = Scope(
        region=region,
        account=_ACCOUNT,
        cluster=cluster,
        node_role_arn=f"arn:aws:iam::{_ACCOUNT}:role/KarpenterNodeRole-{cluster}",
        queue_arn=f"arn:aws:sqs:{region}:{_ACCOUNT}:{cluster}",
    )
    creators = [each["action"].partition(":")[2] for each in variant.given.get("callTable") or ()]
    tags = {f"kubernetes.io/cluster/{cluster}": "owned", "eks:eks-cluster-name": cluster}
    tags |= {"karpenter.sh/nodepool": "web", "karpenter.k8s.aws/ec2nodeclass": "default"}
    context = {f"aws:RequestTag/{key}": (value,) for key, value in tags.items()}
    context |= {f"aws:ResourceTag/{key}": (value,) for key, value in tags.items()}
    context |= {"aws:RequestedRegion": (region,), "ec2:CreateAction": tuple(creators or ["CreateFleet"])}
    resource = wanted["resource"].replace(":*:*:", f":{region}:{_ACCOUNT}:").replace("/*", "/x-1")
    return allowed(
        controller_policies(scope).values(),
        Request(action=wanted["action"], resource=resource, context=context),
    )

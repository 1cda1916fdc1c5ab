"""What each statement of the controller's policies is limited to.

Called by `framework.iam.policies`, which adds the actions from the call table. Owns
resources and conditions (spec aws/iam-and-bootstrap sections 2.1 to 2.3); never
lists an action, so that no permission exists without a call that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType

import attrs

from framework.api import labels
from framework.iam.calls import TAGGED_AT_CREATION
from framework.iam.documents import Conditions
from framework.iam.scope import Scope
from framework.iam.sids import Sid


class PolicyPart(StrEnum):
    """The managed policies into which the permissions are split; one would exceed the size limit."""

    NODE_LIFECYCLE = "NodeLifecyclePolicy"
    IAM_INTEGRATION = "IAMIntegrationPolicy"
    EKS_INTEGRATION = "EKSIntegrationPolicy"
    INTERRUPTION = "InterruptionPolicy"
    RESOURCE_DISCOVERY = "ResourceDiscoveryPolicy"


def _nothing(_scope: Scope) -> Conditions:
    return {}


@attrs.frozen(kw_only=True)
class Grant:
    """Where one statement stands and what limits it."""

    sid: Sid
    part: PolicyPart
    resources: Callable[[Scope], tuple[str, ...]]
    conditions: Callable[[Scope], Conditions] = _nothing


def _request(key: str) -> str:
    return f"aws:RequestTag/{key}"


def _resource(key: str) -> str:
    return f"aws:ResourceTag/{key}"


def _created(scope: Scope) -> tuple[str, ...]:
    return tuple(scope.ec2(f"{kind}/*") for kind in TAGGED_AT_CREATION)


def _owned_by_cluster(scope: Scope) -> Conditions:
    return {
        "StringEquals": {_resource(scope.owned_tag): ("owned",)},
        "StringLike": {_resource(labels.NODEPOOL): ("*",)},
    }


def _tagged_by_request(scope: Scope) -> Conditions:
    return {
        "StringEquals": {
            _request(scope.owned_tag): ("owned",),
            _request(labels.EKS_CLUSTER_NAME_TAG): (scope.cluster,),
        },
        "StringLike": {_request(labels.NODEPOOL): ("*",)},
    }


def _created_by_launch(scope: Scope) -> Conditions:
    tagged = _tagged_by_request(scope)
    created_by = {"ec2:CreateAction": ("RunInstances", "CreateFleet", "CreateLaunchTemplate")}
    return {**tagged, "StringEquals": {**tagged["StringEquals"], **created_by}}


def _tagged_later(scope: Scope) -> Conditions:
    return {
        **_owned_by_cluster(scope),
        "StringEqualsIfExists": {_request(labels.EKS_CLUSTER_NAME_TAG): (scope.cluster,)},
        "ForAllValues:StringEquals": {
            "aws:TagKeys": (labels.EKS_CLUSTER_NAME_TAG, labels.NODECLAIM_TAG, "Name")
        },
    }


def _profile_owned(scope: Scope) -> Conditions:
    return {
        "StringEquals": {
            _resource(scope.owned_tag): ("owned",),
            _resource(labels.REGION): (scope.region,),
        },
        "StringLike": {_resource(labels.EC2NODECLASS): ("*",)},
    }


def _profile_created(scope: Scope) -> Conditions:
    return {
        "StringEquals": {
            _request(scope.owned_tag): ("owned",),
            _request(labels.EKS_CLUSTER_NAME_TAG): (scope.cluster,),
            _request(labels.REGION): (scope.region,),
        },
        "StringLike": {_request(labels.EC2NODECLASS): ("*",)},
    }


def _profile_tagged(scope: Scope) -> Conditions:
    owned, created = _profile_owned(scope), _profile_created(scope)
    return {operator: {**owned[operator], **created[operator]} for operator in owned}


def _passed_to_ec2(_scope: Scope) -> Conditions:
    return {"StringEquals": {"iam:PassedToService": ("ec2.amazonaws.com", "ec2.amazonaws.com.cn")}}


def _in_region(scope: Scope) -> Conditions:
    return {"StringEquals": {"aws:RequestedRegion": (scope.region,)}}


def _launch_inputs(scope: Scope) -> tuple[str, ...]:
    shared = ("security-group/*", "subnet/*", "capacity-reservation/*")
    public = ("image/*", "snapshot/*")
    return (*(scope.ec2(kind, account="") for kind in public), *(scope.ec2(kind) for kind in shared))


def _ours(*kinds: str) -> Callable[[Scope], tuple[str, ...]]:
    return lambda scope: tuple(scope.ec2(f"{kind}/*") for kind in kinds)


def _profiles(scope: Scope) -> tuple[str, ...]:
    return (scope.instance_profiles,)


def _everything(_scope: Scope) -> tuple[str, ...]:
    return ("*",)


def _queue(scope: Scope) -> tuple[str, ...]:
    return () if scope.queue_arn is None else (scope.queue_arn,)


def _public_parameters(scope: Scope) -> tuple[str, ...]:
    return (f"arn:{scope.partition}:ssm:{scope.region}::parameter/aws/service/*",)


_LIFECYCLE = (
    Grant(sid=Sid.SCOPED_INSTANCE_ACCESS, part=PolicyPart.NODE_LIFECYCLE, resources=_launch_inputs),
    Grant(
        sid=Sid.SCOPED_LAUNCH_TEMPLATE_ACCESS,
        part=PolicyPart.NODE_LIFECYCLE,
        resources=_ours("launch-template"),
        conditions=_owned_by_cluster,
    ),
    Grant(
        sid=Sid.SCOPED_INSTANCE_ACTIONS_WITH_TAGS,
        part=PolicyPart.NODE_LIFECYCLE,
        resources=_created,
        conditions=_tagged_by_request,
    ),
    Grant(
        sid=Sid.SCOPED_RESOURCE_CREATION_TAGGING,
        part=PolicyPart.NODE_LIFECYCLE,
        resources=_created,
        conditions=_created_by_launch,
    ),
    Grant(
        sid=Sid.SCOPED_RESOURCE_TAGGING,
        part=PolicyPart.NODE_LIFECYCLE,
        resources=_ours("instance"),
        conditions=_tagged_later,
    ),
    Grant(
        sid=Sid.SCOPED_DELETION,
        part=PolicyPart.NODE_LIFECYCLE,
        resources=_ours("instance", "launch-template"),
        conditions=_owned_by_cluster,
    ),
)

_IAM_INTEGRATION = (
    Grant(
        sid=Sid.PASSING_INSTANCE_ROLE,
        part=PolicyPart.IAM_INTEGRATION,
        resources=lambda scope: (scope.node_role_arn,),
        conditions=_passed_to_ec2,
    ),
    Grant(
        sid=Sid.SCOPED_INSTANCE_PROFILE_CREATION,
        part=PolicyPart.IAM_INTEGRATION,
        resources=_profiles,
        conditions=_profile_created,
    ),
    Grant(
        sid=Sid.SCOPED_INSTANCE_PROFILE_TAGGING,
        part=PolicyPart.IAM_INTEGRATION,
        resources=_profiles,
        conditions=_profile_tagged,
    ),
    Grant(
        sid=Sid.SCOPED_INSTANCE_PROFILE_ACTIONS,
        part=PolicyPart.IAM_INTEGRATION,
        resources=_profiles,
        conditions=_profile_owned,
    ),
)

_READS = (
    Grant(
        sid=Sid.ENDPOINT_DISCOVERY,
        part=PolicyPart.EKS_INTEGRATION,
        resources=lambda scope: (scope.cluster_arn,),
    ),
    Grant(sid=Sid.INTERRUPTION_QUEUE_ACTIONS, part=PolicyPart.INTERRUPTION, resources=_queue),
    Grant(
        sid=Sid.REGIONAL_READ,
        part=PolicyPart.RESOURCE_DISCOVERY,
        resources=_everything,
        conditions=_in_region,
    ),
    Grant(sid=Sid.SSM_READ, part=PolicyPart.RESOURCE_DISCOVERY, resources=_public_parameters),
    Grant(sid=Sid.PRICING_READ, part=PolicyPart.RESOURCE_DISCOVERY, resources=_everything),
    Grant(sid=Sid.INSTANCE_PROFILE_LIST, part=PolicyPart.RESOURCE_DISCOVERY, resources=_everything),
    Grant(sid=Sid.INSTANCE_PROFILE_READ, part=PolicyPart.RESOURCE_DISCOVERY, resources=_profiles),
)

GRANTS: Mapping[Sid, Grant] = MappingProxyType(
    {grant.sid: grant for grant in (*_LIFECYCLE, *_IAM_INTEGRATION, *_READS)}
)
"""Every statement by its id, in the order of the documents."""

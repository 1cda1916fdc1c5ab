"""The controller may do what its calls need to its own cluster, and nothing to another's."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from framework.iam import CALLS, Document, PolicyPart, Statement
from framework.iam.calls import TAGGED_AT_CREATION
from framework.iam.evaluate import Request, UnknownOperator, allowed

EC2 = "arn:aws:ec2:eu-west-2:123456789012:"
LAUNCH_TAGS = {
    "aws:RequestTag/kubernetes.io/cluster/demo": ("owned",),
    "aws:RequestTag/eks:eks-cluster-name": ("demo",),
    "aws:RequestTag/karpenter.sh/nodepool": ("default",),
}
OURS = {
    "aws:ResourceTag/kubernetes.io/cluster/demo": ("owned",),
    "aws:ResourceTag/karpenter.sh/nodepool": ("default",),
}
THEIRS = {
    "aws:ResourceTag/kubernetes.io/cluster/other": ("owned",),
    "aws:ResourceTag/karpenter.sh/nodepool": ("default",),
}


def may(
    policies: Mapping[PolicyPart, Document], action: str, resource: str, **context: tuple[str, ...]
) -> bool:
    return allowed(policies.values(), Request(action=action, resource=resource, context=context))


@pytest.mark.parametrize("kind", TAGGED_AT_CREATION)
@pytest.mark.parametrize("origin", ["RunInstances", "CreateFleet", "CreateLaunchTemplate"])
def test_what_a_launch_makes_may_be_tagged_at_creation(
    policies: Mapping[PolicyPart, Document], kind: str, origin: str
) -> None:
    context = {**LAUNCH_TAGS, "ec2:CreateAction": (origin,)}

    assert may(policies, "ec2:CreateTags", f"{EC2}{kind}/x-1", **context)


@pytest.mark.parametrize(
    "kind", ["fleet", "instance", "volume", "network-interface", "spot-instances-request"]
)
def test_a_fleet_with_all_three_tags_is_allowed(policies: Mapping[PolicyPart, Document], kind: str) -> None:
    assert may(policies, "ec2:CreateFleet", f"{EC2}{kind}/*", **LAUNCH_TAGS)


@pytest.mark.parametrize("missing", sorted(LAUNCH_TAGS))
def test_a_fleet_without_one_of_the_tags_is_denied(
    policies: Mapping[PolicyPart, Document], missing: str
) -> None:
    context = {key: value for key, value in LAUNCH_TAGS.items() if key != missing}

    assert not may(policies, "ec2:CreateFleet", f"{EC2}instance/*", **context)


def test_a_pool_tag_that_is_empty_is_enough(policies: Mapping[PolicyPart, Document]) -> None:
    context = {**LAUNCH_TAGS, "aws:RequestTag/karpenter.sh/nodepool": ("",)}

    assert may(policies, "ec2:CreateFleet", f"{EC2}instance/*", **context)


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("ec2:TerminateInstances", f"{EC2}instance/i-1"),
        ("ec2:DeleteLaunchTemplate", f"{EC2}launch-template/lt-1"),
        ("ec2:RunInstances", f"{EC2}launch-template/lt-1"),
        ("ec2:CreateTags", f"{EC2}instance/i-1"),
    ],
)
def test_only_the_own_clusters_resources_are_touched(
    policies: Mapping[PolicyPart, Document], action: str, resource: str
) -> None:
    tags: dict[str, tuple[str, ...]] = {"aws:TagKeys": ("Name",)} if action == "ec2:CreateTags" else {}

    verdicts = (
        may(policies, action, resource, **{**OURS, **tags}),
        may(policies, action, resource, **{**THEIRS, **tags}),
        may(policies, action, resource, **tags),
    )

    assert verdicts == (True, False, False)


def test_an_instance_gets_no_tags_but_the_agreed_ones(policies: Mapping[PolicyPart, Document]) -> None:
    context = {**OURS, "aws:TagKeys": ("Name", "kubernetes.io/cluster/other")}

    assert not may(policies, "ec2:CreateTags", f"{EC2}instance/i-1", **context)


def test_only_the_node_role_is_passed_and_only_to_ec2(policies: Mapping[PolicyPart, Document]) -> None:
    role = "arn:aws:iam::123456789012:role/KarpenterNodeRole-demo"
    to = {"iam:PassedToService": ("ec2.amazonaws.com",)}

    verdicts = (
        may(policies, "iam:PassRole", role, **to),
        may(policies, "iam:PassRole", role.replace("NodeRole", "Admin"), **to),
        may(policies, "iam:PassRole", role, **{"iam:PassedToService": ("lambda.amazonaws.com",)}),
    )

    assert verdicts == (True, False, False)


def test_reads_stay_in_the_region(policies: Mapping[PolicyPart, Document]) -> None:
    verdicts = [
        may(policies, "ec2:DescribeInstances", "*", **{"aws:RequestedRegion": (region,)})
        for region in ("eu-west-2", "us-east-1")
    ]

    assert verdicts == [True, False]


def test_every_action_of_every_call_is_granted_somewhere(policies: Mapping[PolicyPart, Document]) -> None:
    granted = {action for doc in policies.values() for s in doc.statements for action in s.actions}

    assert {action for call in CALLS.values() for action in call.actions} == granted


def test_an_unknown_operator_is_not_guessed() -> None:
    statement = Statement(
        actions=("s3:GetObject",),
        resources=("*",),
        conditions={"IpAddress": {"aws:SourceIp": ("10.0.0.0/8",)}},
    )

    with pytest.raises(UnknownOperator, match="IpAddress"):
        allowed([Document(statements=(statement,))], Request(action="s3:GetObject", resource="*"))


def test_a_deny_wins_over_an_allow(policies: Mapping[PolicyPart, Document]) -> None:
    from framework.iam import Effect

    allow = Statement(actions=("eks:*",), resources=("*",))
    deny = attrs.evolve(allow, effect=Effect.DENY)

    assert not allowed(
        [Document(statements=(allow, deny))], Request(action="eks:DescribeCluster", resource="*")
    )

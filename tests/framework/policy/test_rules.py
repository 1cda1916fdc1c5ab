"""Each rule from both sides, and the stack that we make ourselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest

from framework.iam import Scope, controller_policies
from framework.policy import rules
from framework.policy.pack import policy
from framework.policy.rules import RULES, Declared

CLASS, POOL = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", "kubernetes:karpenter.sh/v1:NodePool"
GROUP, TAG = "aws:ec2/securityGroup:SecurityGroup", "aws:ec2/tag:Tag"
SUBNET, POLICY = "aws:ec2/subnet:Subnet", "aws:iam/policy:Policy"
DISCOVERED = {"karpenter.sh/discovery": "demo"}
EXCEPT_IAM = {"Effect": "Allow", "NotAction": "iam:*", "Resource": "arn:aws:ec2:::x"}
BY_NAME = {rule.name: rule for rule in RULES}


def a(kind: str, name: str = "it", **properties: Any) -> Declared:
    return Declared(type=kind, name=name, properties=properties)


def allowing(**changes: Any) -> str:
    statement = {"Effect": "Allow", "Action": "ec2:RunInstances", "Resource": "arn:aws:ec2:::x", **changes}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def discovery(target: str, name: str) -> Declared:
    return a(TAG, name, resourceId=target, key="karpenter.sh/discovery", value="demo")


def volume(**ebs: Any) -> Mapping[str, Any]:
    return {"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": ebs}]}


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("one-discovery-group", [a(GROUP, "x", tags=DISCOVERED)], [discovery("sg-1", "y")]),
        ("one-discovery-group", [discovery("sg-1", "x")], [discovery("sg-2", "y")]),
        (
            "private-nodes",
            [a(SUBNET, mapPublicIpOnLaunch=True), a(SUBNET, tags=DISCOVERED, mapPublicIpOnLaunch=False)],
            [a(SUBNET, tags=DISCOVERED, mapPublicIpOnLaunch=True)],
        ),
        ("private-nodes", [a(CLASS, spec={})], [a(CLASS, spec={"associatePublicIPAddress": True})]),
        (
            "imdsv2",
            [a(CLASS, spec={}), a(CLASS, spec={"metadataOptions": {"httpTokens": "required"}})],
            [a(CLASS, spec={"metadataOptions": {"httpTokens": "optional"}})],
        ),
        (
            "encrypted-volumes",
            [a(CLASS, spec={}), a(CLASS, spec=volume(encrypted=True))],
            [a(CLASS, spec=volume(volumeSize="20Gi"))],
        ),
        ("narrow-policies", [a(POLICY, policy=allowing())], [a(POLICY, policy=allowing(Action="ec2:*"))]),
        ("narrow-policies", [a(POLICY)], [a(POLICY, policy=allowing(Resource="*"))]),
        (
            "narrow-policies",
            [a(POLICY, policy=allowing(Effect="Deny", Action="*", Resource="*"))],
            [a(POLICY, policy=json.dumps({"Statement": EXCEPT_IAM}))],
        ),
        ("limited-pools", [a(POOL, spec={"limits": {"cpu": "100"}})], [a(POOL, spec={})]),
        (
            "pinned-images",
            [a(CLASS, spec={"amiSelectorTerms": [{"alias": "al2023@v20251120"}, {"id": "ami-1"}]})],
            [a(CLASS, spec={"amiSelectorTerms": [{"alias": "al2023@latest"}]})],
        ),
        (
            "budgeted-pools",
            [a(POOL, spec={"disruption": {"budgets": [{"nodes": "10%"}]}})],
            [a(POOL, spec={"disruption": {}})],
        ),
    ],
)
def test_a_rule_lets_the_good_pass_and_names_the_bad(
    rule: str, good: list[Declared], bad: list[Declared]
) -> None:
    judge = BY_NAME[rule].judge

    assert list(judge(good)) == []
    (problem,) = judge([*good, *bad])
    assert bad[0].name in problem


def test_the_generated_policies_are_not_too_wide() -> None:
    scope = Scope(
        region="eu-west-2",
        account="123456789012",
        cluster="demo",
        node_role_arn="arn:aws:iam::123456789012:role/KarpenterNodeRole-demo",
        queue_arn="arn:aws:sqs:eu-west-2:123456789012:demo",
    )
    made = [a(POLICY, part, policy=each.to_json()) for part, each in controller_policies(scope).items()]

    assert list(rules.narrow_policies(made)) == []


@pytest.mark.parametrize(("production", "problems"), [(False, 0), (True, 1)])
def test_a_rule_for_production_waits_to_be_told(production: bool, problems: int) -> None:
    pool = mock.Mock(resource_type=POOL, props={"spec": {}})
    pool.name = "it"
    arguments = mock.Mock(resources=[pool], get_config=lambda: {"production": production})
    said: list[str] = []

    policy(BY_NAME["limited-pools"]).validate(arguments, lambda text, _urn: said.append(text))

    assert len(said) == problems

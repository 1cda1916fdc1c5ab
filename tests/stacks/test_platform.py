"""How the resources of the whole platform hang together: order, parents, what goes with the cluster."""

from __future__ import annotations

import json

import pytest

from stacks.programs.platform import platform_program
from tests.framework.components.recorder import Recorder, Registered, declared

CALLS = {
    "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": "111122223333"},
    "aws:index/getRegion:getRegion": {"region": "eu-west-2"},
    "aws:index/getPartition:getPartition": {"partition": "aws"},
    "aws:index/getAvailabilityZones:getAvailabilityZones": {"names": ["eu-west-2a", "eu-west-2b"]},
}
TAGS = {"team": "platform"}
UNTAGGED = {"Route", "RouteTableAssociation", "Tag", "AccessPolicyAssociation", "QueuePolicy"}
UNTAGGED |= {"EventTarget", "RolePolicyAttachment"}
"""Types of AWS that take no tags."""


@pytest.fixture(scope="module")
def platform() -> Recorder:
    return declared(platform_program, Recorder(calls=CALLS), config={"charpente:tags": json.dumps(TAGS)})


def _kind(each: Registered) -> str:
    return each.type.rpartition(":")[2]


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("NodePool", "EC2NodeClass"),
        ("EC2NodeClass", "CustomResourceDefinition"),
        ("NodePool", "Deployment"),
        ("NodePool", "ClusterRoleBinding"),
        ("NodePool", "AccessEntry"),
        ("NodePool", "NatGateway"),
        ("Deployment", "PodIdentityAssociation"),
        ("Deployment", "NodeGroup"),
        ("Deployment", "CustomResourceDefinition"),
        ("EventTarget", "QueuePolicy"),
        ("Cluster", "LogGroup"),
        ("Teardown", "NodePool"),
        ("Teardown", "Deployment"),
        ("Teardown", "AccessEntry"),
    ],
)
def test_one_is_made_after_the_other_and_removed_before_it(
    platform: Recorder, later: str, earlier: str
) -> None:
    first = {each.urn for each in platform.of(earlier)}

    assert first
    assert platform.of(later)
    assert all(first <= platform.before(each) for each in platform.of(later))


def test_nothing_is_removed_before_the_nodes_are(platform: Recorder) -> None:
    teardown = platform.one("Teardown")

    inside = {e.urn for e in platform.registered if e.type.startswith("kubernetes:")}
    assert inside <= platform.before(teardown)


def test_what_lives_in_the_cluster_goes_with_it(platform: Recorder) -> None:
    (cluster,) = platform.of("Cluster")

    inside = [each for each in platform.registered if each.type.startswith("kubernetes:")]
    assert {each.deleted_with for each in inside} == {cluster.urn}


def test_every_resource_has_a_component_above_it(platform: Recorder) -> None:
    by_urn = {each.urn: each for each in platform.registered}

    def top(each: Registered) -> Registered:
        return top(by_urn[each.parent]) if each.parent in by_urn else each

    alone = {each.name for each in platform.registered if not top(each).type.startswith("charpente:")}
    assert alone == {"kubernetes", "teardown"}


def test_everything_that_takes_tags_has_those_of_the_stack(platform: Recorder) -> None:
    made = [e for e in platform.registered if e.type.startswith("aws:") and _kind(e) not in UNTAGGED]

    assert made
    assert [e.name for e in made if TAGS.items() - dict(e.inputs.get("tags") or {}).items()] == []


def test_a_preview_declares_what_the_update_does(platform: Recorder) -> None:
    previewed = declared(platform_program, Recorder(calls=CALLS), preview=True)

    assert {e.urn for e in previewed.registered} == {e.urn for e in platform.registered}

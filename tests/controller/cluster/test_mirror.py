"""The mirror: pairs of node and claim, what only it knows, snapshots (spec core/scheduling §10, §20)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controller.cluster import Mirror
from controller.kube import kinds
from framework.api import labels
from tests.controller.fakes.objects import a_claim, a_node, a_pod, a_pool
from tests.controller.fakes.world import START, World

CLAIM, NODE = "default-abcde", "node-1"


@pytest.fixture
def world() -> World:
    return World()


def node_of(world: World, name: str = NODE) -> Any:
    return {node.name: node for node in world.mirror.snapshot(world.clock.now()).nodes}[name]


def test_nothing_is_synced_before_every_list(world: World) -> None:
    assert world.mirror.is_synced()
    assert not Mirror().is_synced()


def test_a_claim_that_has_not_launched_stalls_decisions(world: World) -> None:
    world.api.put(kinds.NODECLAIM, a_claim())
    stalled = world.mirror.is_synced()
    world.api.change(kinds.NODECLAIM, CLAIM, {"status": {"providerID": "aws:///a/i-1"}})

    assert (stalled, world.mirror.is_synced()) == (False, True)


async def test_before_registration_the_claim_tells(world: World) -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    world.api.put(kinds.NODECLAIM, a_claim(spec={"taints": [taint]}))
    await world.launched()

    node = node_of(world, CLAIM)

    assert (node.registered, node.initialized, node.ready) == (False, False, False)
    assert node.labels[labels.INSTANCE_TYPE] == "m5.large"
    assert [str(each) for each in node.taints] == ["gpu:NoSchedule"]
    assert node.allocatable["cpu"] == 1900


async def test_until_initialization_startup_and_ephemeral_taints_do_not_count(world: World) -> None:
    startup = {"key": "cni", "effect": "NoSchedule"}
    world.api.put(kinds.NODECLAIM, a_claim(spec={"startupTaints": [startup]}))
    provider_id = await world.launched()
    ephemeral = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    own = {"key": "own", "effect": "NoSchedule"}
    node = a_node(NODE, provider_id, spec={"taints": [startup, ephemeral, own]}, status={"allocatable": {}})
    world.api.put(kinds.NODE, node)
    await world.lifecycle(CLAIM)

    found = node_of(world)

    assert (found.registered, found.initialized) == (True, False)
    assert [str(each) for each in found.taints] == ["own:NoSchedule"]
    assert found.allocatable["cpu"] == 1900


async def test_after_initialization_the_node_tells(world: World) -> None:
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.initialized()
    await world.lifecycle(CLAIM)
    world.api.put(kinds.POD, a_pod("web-0", node=NODE))

    node = node_of(world)

    assert (node.initialized, node.ready, node.claim_name) == (True, True, CLAIM)
    assert node.allocatable["cpu"] == 2000
    assert [pod.name for pod in node.pods] == ["web-0"]


def test_a_node_that_is_not_ours_is_there_as_it_is(world: World) -> None:
    world.api.put(kinds.NODE, a_node("own", "", metadata={"labels": {}}, spec={"taints": []}))

    node = node_of(world, "own")

    assert (node.managed, node.registered, node.initialized) == (False, True, True)


def test_a_node_of_a_pool_says_too_little_before_it_has_a_provider_id(world: World) -> None:
    world.api.put(kinds.NODE, a_node("early", ""))

    assert world.mirror.snapshot(START).nodes == ()


async def test_marks_and_nominations_follow_the_claim_to_its_node(world: World) -> None:
    world.api.put(kinds.NODECLAIM, a_claim())
    provider_id = await world.launched()
    world.mirror.nominate(CLAIM, START + timedelta(seconds=20))
    world.mirror.mark_for_deletion([CLAIM])
    world.api.put(kinds.NODE, a_node(NODE, provider_id))

    marked = node_of(world)
    world.mirror.unmark_for_deletion([CLAIM])
    await world.clock.advance(21)

    assert (marked.marked_for_deletion, marked.nominated) == (True, True)
    later = node_of(world)
    assert (later.marked_for_deletion, later.nominated) == (False, False)


async def test_usage_leaves_out_what_goes_away(world: World) -> None:
    for name in ("default-a", "default-b"):
        world.api.put(kinds.NODECLAIM, a_claim(name))
        await world.launched(name)

    both = dict(world.mirror.usage("default"))
    world.mirror.mark_for_deletion(["default-a"])

    assert (both["cpu"], both["nodes"]) == (4000, 2)
    assert (world.mirror.usage("default")["cpu"], world.mirror.usage("default")["nodes"]) == (2000, 1)


def test_an_unchanged_node_is_the_same_object_in_the_next_snapshot(world: World) -> None:
    world.api.put(kinds.NODE, a_node("own", "", metadata={"labels": {}}))
    first = node_of(world, "own")
    world.api.put(kinds.POD, a_pod("pending"))

    assert node_of(world, "own") is first


@pytest.mark.parametrize(
    "change",
    [
        lambda world: world.api.put(kinds.POD, a_pod("new", node=NODE)),
        lambda world: world.api.remove(kinds.POD, "old", "default"),
        lambda world: world.api.put(kinds.NODECLAIM, a_claim()),
        lambda world: world.api.put(kinds.NODEPOOL, a_pool("other")),
        lambda world: world.mirror.mark_for_deletion(["x"]),
    ],
    ids=["pod bound", "pod deleted", "claim added", "pool added", "mark"],
)
def test_what_matters_to_consolidation_moves_its_stamp(world: World, change: Any) -> None:
    world.api.put(kinds.POD, a_pod("old", node=NODE))
    before = world.mirror.consolidation_stamp(START)

    change(world)

    assert world.mirror.consolidation_stamp(START) != before


def test_the_stamp_moves_by_itself_after_five_minutes(world: World) -> None:
    before = world.mirror.consolidation_stamp(START)

    assert world.mirror.consolidation_stamp(START + timedelta(seconds=299)) == before
    assert world.mirror.consolidation_stamp(START + timedelta(minutes=5)) != before


def test_a_daemonset_is_sampled_by_its_newest_pod_with_the_templates_affinity(world: World) -> None:
    template = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "50m"}}}]}}
    daemonset = {"metadata": {"name": "agent", "uid": "ds-1"}, "spec": {"template": template}}
    world.api.put(kinds.DAEMONSET, daemonset)
    (from_template,) = world.mirror.snapshot(START).daemonsets
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds-1", "controller": True}
    world.api.put(kinds.POD, a_pod("agent-x", node=NODE, cpu="70m", metadata={"ownerReferences": [owner]}))

    (from_pod,) = world.mirror.snapshot(START).daemonsets

    assert (from_template.requests["cpu"], from_pod.requests["cpu"]) == (50, 70)


def test_a_mirror_that_heard_nothing_for_two_minutes_is_stale(world: World) -> None:
    for kind in world.mirror.kinds:
        world.mirror.store(kind).heard(100.0)
    world.mirror.store(kinds.POD).heard(50.0)

    assert (world.mirror.is_fresh(170.0), world.mirror.is_fresh(171.0)) == (True, False)

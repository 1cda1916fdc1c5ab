"""Ends of claims and nodes: drain, budgets, deadlines, volumes, instances (spec core/lifecycle §7, §8)."""

from __future__ import annotations

import pytest

from controller.kube import kinds
from framework.api import labels
from tests.controller.fakes.objects import a_claim, a_node, a_pod
from tests.controller.fakes.world import World

CLAIM, NODE = "default-abcde", "node-1"


@pytest.fixture
async def world() -> World:
    world = World()
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.initialized()
    return world


async def _delete(world: World) -> None:
    await world.api.delete(kinds.NODECLAIM, CLAIM)


async def test_deleting_a_claim_drains_its_node_and_ends_its_instance(world: World) -> None:
    world.api.put(kinds.POD, a_pod("web-0", node=NODE))
    await _delete(world)

    await world.settle(CLAIM, NODE)

    assert world.api.evicted == ["web-0"]
    assert world.cloud.instances == {}


async def test_deleting_a_node_by_hand_ends_the_same_way(world: World) -> None:
    await world.api.delete(kinds.NODE, NODE)

    await world.settle(CLAIM, NODE)

    assert world.cloud.instances == {}


async def test_a_draining_node_is_tainted_and_says_what_it_waits_for(world: World) -> None:
    world.api.put(kinds.POD, a_pod("web-0", node=NODE))
    world.api.protected = {"web-0"}
    await _delete(world)
    await world.lifecycle(CLAIM)

    await world.run("node.termination", NODE)
    await world.evict()

    node = world.api.read(kinds.NODE, NODE)
    assert {"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["metadata"]["labels"][labels.EXCLUDE_FROM_LOAD_BALANCERS] == "karpenter"
    drained = next(c for c in world.claim()["status"]["conditions"] if c["type"] == "Drained")
    assert (drained["status"], drained["reason"]) == ("Unknown", "Draining")
    assert "default/web-0" in drained["message"]
    assert world.api.evicted == []
    assert world.events.reasons().count("FailedDraining") == 2


async def test_a_budget_that_yields_lets_the_drain_go_on(world: World) -> None:
    world.api.put(kinds.POD, a_pod("web-0", node=NODE))
    world.api.protected = {"web-0"}
    await _delete(world)
    for _ in range(3):
        await world.lifecycle(CLAIM)
        await world.run("node.termination", NODE)
        await world.evict()
    world.api.protected = set()

    await world.settle(CLAIM, NODE)

    assert world.api.evicted == ["web-0"]


async def test_critical_pods_are_evicted_after_all_others(world: World) -> None:
    world.api.put(kinds.POD, a_pod("dns-0", node=NODE, spec={"priorityClassName": "system-cluster-critical"}))
    world.api.put(kinds.POD, a_pod("web-0", node=NODE))
    await _delete(world)

    await world.settle(CLAIM, NODE)

    assert world.api.evicted == ["web-0", "dns-0"]


async def test_a_do_not_disrupt_pod_stalls_the_drain_until_the_deadline(world: World) -> None:
    world.api.remove(kinds.NODECLAIM, CLAIM)
    world.api.remove(kinds.NODE, NODE)
    world.api.put(kinds.NODECLAIM, a_claim(spec={"terminationGracePeriod": "10m"}))
    await world.initialized()
    annotated = {"annotations": {labels.DO_NOT_DISRUPT: "true"}}
    world.api.put(kinds.POD, a_pod("web-0", node=NODE, metadata=annotated))
    await _delete(world)
    await world.lifecycle(CLAIM)

    await world.run("node.termination", NODE)
    stalled = world.api.exists(kinds.POD, "web-0", "default")
    await world.clock.advance(571)
    await world.run("node.termination", NODE)

    assert world.claim()["metadata"]["annotations"][labels.TERMINATION_TIMESTAMP] == "2026-01-01T12:10:00Z"
    assert stalled
    assert not world.api.exists(kinds.POD, "web-0", "default")
    assert "Disrupted" in world.events.reasons()


async def test_pods_that_tolerate_the_taint_are_not_waited_for(world: World) -> None:
    tolerant = {"tolerations": [{"operator": "Exists"}]}
    world.api.put(kinds.POD, a_pod("agent-0", node=NODE, spec=tolerant))
    await _delete(world)

    await world.settle(CLAIM, NODE)

    assert world.api.evicted == []


async def test_pods_of_a_dead_kubelet_are_not_waited_for(world: World) -> None:
    stuck = {"deletionTimestamp": "2026-01-01T11:00:00Z", "finalizers": ["x"]}
    world.api.put(kinds.POD, a_pod("web-0", node=NODE, metadata=stuck))
    await _delete(world)

    await world.settle(CLAIM, NODE)


async def test_volumes_are_awaited_before_the_instance_ends(world: World) -> None:
    attachment = {
        "metadata": {"name": "csi-1"},
        "spec": {"nodeName": NODE, "source": {"persistentVolumeName": "pv-1"}},
    }
    world.api.put(kinds.VOLUMEATTACHMENT, attachment)
    await _delete(world)
    for _ in range(3):
        await world.lifecycle(CLAIM)
        await world.run("node.termination", NODE)
    waiting, alive = world.condition("VolumesDetached"), dict(world.cloud.instances)
    world.api.remove(kinds.VOLUMEATTACHMENT, "csi-1")

    await world.settle(CLAIM, NODE)

    assert waiting == ("Unknown", "AwaitingVolumeDetachment")
    assert not next(iter(alive.values())).deleting


async def test_a_node_whose_instance_is_gone_is_not_drained(world: World) -> None:
    world.api.put(kinds.POD, a_pod("web-0", node=NODE))
    world.cloud.instances.clear()
    world.api.change(kinds.NODE, NODE, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
    await _delete(world)

    await world.settle(CLAIM, NODE)

    assert world.api.evicted == []


async def test_a_claim_that_never_registered_ends_its_instance_only() -> None:
    world = World()
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.launched()
    await world.api.delete(kinds.NODECLAIM, CLAIM)

    first = await world.lifecycle(CLAIM)
    await world.clock.advance(5)
    await world.lifecycle(CLAIM)

    assert first.after is not None
    assert first.after.total_seconds() == 5
    assert not world.api.exists(kinds.NODECLAIM, CLAIM)
    assert world.cloud.instances == {}


async def test_a_node_of_somebody_else_is_left_alone(world: World) -> None:
    foreign = {
        "labels": {},
        "finalizers": [labels.TERMINATION_FINALIZER],
        "deletionTimestamp": "2026-01-01T12:00:00Z",
    }
    world.api.put(kinds.NODE, a_node("foreign", "aws:///eu-west-2a/i-9", metadata=foreign))

    await world.run("node.termination", "foreign")

    assert world.api.exists(kinds.NODE, "foreign")


async def test_the_drain_names_what_keeps_each_pod(world: World) -> None:
    budget = {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    kept = {"annotations": {labels.DO_NOT_DISRUPT: "true"}}
    world.api.put(kinds.PDB, budget)
    world.api.put(kinds.POD, a_pod("batch-0", node=NODE, metadata=kept))
    world.api.put(kinds.POD, a_pod("web-0", node=NODE, metadata={"labels": {"app": "web"}}))
    await _delete(world)
    await world.lifecycle(CLAIM)

    await world.run("node.termination", NODE)

    drained = next(c for c in world.claim()["status"]["conditions"] if c["type"] == "Drained")
    assert drained["message"] == (
        "waiting for pods: default/batch-0 (karpenter.sh/do-not-disrupt), "
        "default/web-0 (PodDisruptionBudget web)"
    )

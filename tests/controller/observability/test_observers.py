"""What exists as metrics, what changes as counters and events (spec core/observability §1, §2)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.kube import kinds
from controller.observability.cluster import ClusterObserver
from controller.observability.conditions import ConditionObserver
from framework.api import labels
from tests.controller.fakes.objects import a_claim, a_node, a_pod
from tests.controller.fakes.world import World

CLAIM = "default-abcde"


@pytest.fixture
def world() -> World:
    world = World()
    recorder: Any = world.events
    ClusterObserver(world.mirror, world.metrics, world.clock).follow()
    ConditionObserver(world.mirror, world.metrics, recorder, world.clock).follow()
    return world


def sample(world: World, series: str, /, **wanted: str) -> float | None:
    """Return the value of the one series of that name with these labels among its own."""
    found = [
        each.value
        for family in world.metrics.registry.collect()
        for each in family.samples
        if each.name == series and wanted.items() <= each.labels.items()
    ]
    assert len(found) <= 1, found
    return found[0] if found else None


async def test_nodes_show_allocatable_in_cores(world: World) -> None:
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.initialized()
    await world.lifecycle(CLAIM)

    name = "karpenter_nodes_allocatable"
    assert sample(world, name, node_name="node-1", resource_type="cpu", instance_type="m5.large") == 2.0


async def test_pods_show_where_they_are_and_vanish_with_them(world: World) -> None:
    world.api.put(kinds.POD, a_pod("web-0"))
    pending = sample(world, "karpenter_pods_state", name="web-0", scheduled="false", phase="Pending")
    world.api.remove(kinds.POD, "web-0", "default")

    assert pending == 1
    assert sample(world, "karpenter_pods_state", name="web-0") is None


async def test_a_pod_seen_pending_is_timed_until_bound_and_ready(world: World) -> None:
    world.api.put(kinds.POD, a_pod("web-0"))
    await world.clock.advance(4)
    unbound = sample(world, "karpenter_pods_unbound_time_seconds", name="web-0")
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
    world.api.change(kinds.POD, "web-0", {"spec": {"nodeName": "n"}, "status": ready}, "default")

    assert unbound == 4
    assert sample(world, "karpenter_pods_bound_duration_seconds_sum") == 4
    assert sample(world, "karpenter_pods_startup_duration_seconds_sum") == 4
    assert sample(world, "karpenter_pods_unbound_time_seconds", name="web-0") is None


async def test_a_condition_is_shown_and_its_transition_counted_and_told(world: World) -> None:
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.lifecycle(CLAIM)
    provider_id = world.claim()["status"]["providerID"]
    world.api.put(kinds.NODE, a_node("node-1", provider_id))
    await world.lifecycle(CLAIM)

    count = "operator_nodeclaim_status_condition_count"
    assert sample(world, count, name=CLAIM, type="Launched", status="True") == 1
    moved = "operator_nodeclaim_status_condition_transitions_total"
    assert sample(world, moved, type="Registered", status="True", karpenter_sh_nodepool="default") == 1
    assert "Registered" in world.events.reasons()


async def test_a_stuck_deletion_is_visible(world: World) -> None:
    world.api.put(kinds.NODECLAIM, a_claim(metadata={"finalizers": ["example.com/hold"]}))
    await world.api.delete(kinds.NODECLAIM, CLAIM)
    await world.clock.advance(60)

    assert sample(world, "operator_nodeclaim_termination_current_time_seconds", name=CLAIM) == 60


async def test_a_mirror_that_waits_says_so(world: World) -> None:
    world.api.put(kinds.NODECLAIM, a_claim())

    world.metrics.render()

    assert sample(world, "karpenter_cluster_state_synced") == 0


def test_everything_renders(world: World) -> None:
    world.api.put(kinds.POD, a_pod("web-0", metadata={"labels": {labels.NODEPOOL: 'a"b'}}))

    assert b"karpenter_pods_state" in world.metrics.render()

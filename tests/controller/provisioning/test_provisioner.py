"""The round: pending pods, plan, claims, events (spec core/scheduling §2, §4, §19, §21)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from controller.kube import SINGLETON, Forbidden, Key, kinds
from controller.provisioning import (
    Batcher,
    Batching,
    ClaimWriter,
    HeadroomTrigger,
    LimitsExceeded,
    NodeTrigger,
    PodTrigger,
    Provisioner,
    build,
)
from controller.scheduling import Options, Plan, Problem, solve
from framework.api import labels
from tests.controller.fakes.objects import CLASS, a_claim, a_node, a_pod, a_pool
from tests.controller.fakes.world import World


class Round:
    def __init__(self, world: World) -> None:
        self.world = world
        self.problems: list[Problem] = []
        self.writer = ClaimWriter(
            world.shell.client, world.mirror, metrics=world.metrics, random=world.shell.random
        )
        specs = build(
            world.shell, world.cloud, self.plan, self.writer, options=Options(), batching=Batching()
        )
        provisioner = next(each.reconciler for each in specs if each.reconciler.name == "provisioner")
        assert isinstance(provisioner, Provisioner)
        self.provisioner = provisioner

    async def plan(self, problem: Problem) -> Plan:
        self.problems.append(problem)
        return solve(problem)

    @property
    def claims(self) -> list[dict[str, Any]]:
        return [self.world.claim(name) for name in self.world.api.names(kinds.NODECLAIM)]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def round(world: World) -> Round:
    return Round(world)


async def test_pending_pods_get_a_claim_that_names_all_it_needs(world: World, round: Round) -> None:
    for number in range(3):
        world.api.put(kinds.POD, a_pod(f"web-{number}"))

    await round.provisioner.serve()

    (claim,) = round.claims
    assert claim["metadata"]["name"].startswith("default-")
    assert claim["metadata"]["labels"][labels.NODEPOOL] == "default"
    assert claim["metadata"]["finalizers"] == [labels.TERMINATION_FINALIZER]
    assert claim["metadata"]["annotations"][labels.MIN_VALUES_RELAXED] == "false"
    assert claim["metadata"]["ownerReferences"][0]["kind"] == "NodePool"
    assert claim["spec"]["resources"]["requests"] == {"cpu": "3", "memory": "384Mi", "pods": "3"}
    types = next(r for r in claim["spec"]["requirements"] if r["key"] == labels.INSTANCE_TYPE)
    assert types["values"] == ["m5.xlarge"]
    assert claim["spec"]["nodeClassRef"]["name"] == "default"
    assert world.events.reasons() == ["Nominated"] * 3


async def test_never_expiring_pools_make_never_expiring_claims() -> None:
    world = World()
    world.api.remove(kinds.NODEPOOL, "default")
    world.api.put(kinds.NODEPOOL, a_pool(template={"expireAfter": "Never", "terminationGracePeriod": "10m"}))
    world.api.put(kinds.POD, a_pod())
    round = Round(world)

    await round.provisioner.serve()

    (claim,) = round.claims
    assert claim["spec"]["expireAfter"] == "Never"
    assert claim["spec"]["terminationGracePeriod"] == "10m"


async def test_a_second_round_plans_on_the_node_under_way(world: World, round: Round) -> None:
    world.api.put(kinds.POD, a_pod())
    await round.provisioner.serve()
    (claim,) = round.claims
    await world.lifecycle(claim["metadata"]["name"])

    await round.provisioner.serve()

    assert len(round.claims) == 1
    node = world.mirror.snapshot(world.clock.now()).nodes[0]
    assert node.nominated


async def test_a_pod_that_fits_nowhere_hears_why(world: World, round: Round) -> None:
    world.api.put(kinds.POD, a_pod(cpu="96"))

    await round.provisioner.serve()

    (event,) = world.events.seen
    assert (event.type, event.reason) == ("Warning", "FailedScheduling")
    assert event.message.startswith("Failed to schedule pod, ")
    assert event.dedupe_for == timedelta(minutes=5)
    gauge = {"controller": "provisioner"}
    name = "karpenter_scheduler_unschedulable_pods_count"
    assert world.metrics.registry.get_sample_value(name, gauge) == 1


async def test_pods_that_are_not_ours_are_not_planned_for(world: World, round: Round) -> None:
    world.api.put(kinds.POD, a_pod("young", status={"conditions": []}))
    world.api.put(kinds.POD, a_pod("nominated", status={"nominatedNodeName": "n"}))

    plan = await round.provisioner.serve()

    assert plan is None


@pytest.mark.parametrize(
    "pool",
    [a_pool(ready=False), a_pool(replicas=1)],
    ids=["not ready", "static"],
)
async def test_unusable_pools_get_no_nodes(pool: dict[str, Any]) -> None:
    world = World()
    world.api.remove(kinds.NODEPOOL, "default")
    world.api.put(kinds.NODEPOOL, pool)
    world.api.put(kinds.POD, a_pod())
    round = Round(world)

    await round.provisioner.serve()

    assert round.claims == []


async def test_pods_of_a_node_that_goes_are_planned_for(world: World, round: Round) -> None:
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.initialized()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-1"}
    world.api.put(kinds.POD, a_pod("web-0", node="node-1", metadata={"ownerReferences": [owner]}))
    world.mirror.mark_for_deletion(["default-abcde"])

    await round.provisioner.serve()

    assert [pod.name for pod in round.problems[0].pods] == ["web-0"]
    assert len(round.claims) == 2


async def test_a_claim_that_cannot_be_created_does_not_stop_the_others(world: World, round: Round) -> None:
    for number in range(4):
        world.api.put(kinds.POD, a_pod(f"web-{number}", cpu="3"))
    world.api.failures = [Forbidden("create nodeclaims", "no")]

    await round.provisioner.serve()

    assert len(round.claims) == 3


async def test_a_pool_over_its_limit_creates_nothing() -> None:
    world = World()
    world.api.remove(kinds.NODEPOOL, "default")
    world.api.put(kinds.NODEPOOL, a_pool(limits={"cpu": "1"}))
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.launched()
    round = Round(world)

    with pytest.raises(LimitsExceeded, match="cpu"):
        await round.writer.launch_static(world.mirror.pools["default"], reason="provisioned")


async def test_a_round_waits_for_launches_to_be_answered(world: World, round: Round) -> None:
    world.api.put(kinds.NODECLAIM, a_claim())
    world.api.put(kinds.POD, a_pod())
    batcher = round.provisioner.batcher
    batcher.trigger("uid")
    task = asyncio.ensure_future(round.provisioner.reconcile(SINGLETON))
    await world.clock.advance(3)
    waiting = list(round.problems)
    await world.launched()
    await world.clock.advance(1)

    assert (waiting, len(round.problems)) == ([], 1)
    await task


@pytest.mark.parametrize(
    ("put", "trigger", "key"),
    [
        (lambda api: api.put(kinds.POD, a_pod()), PodTrigger, Key(name="web-0", namespace="default")),
        (
            lambda api: api.put(
                kinds.NODE,
                a_node(spec={"taints": [{"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"}]}),
            ),
            NodeTrigger,
            Key(name="node-1"),
        ),
    ],
    ids=["pod", "node"],
)
async def test_triggers_come_back_every_ten_seconds_while_they_hold(
    world: World, put: Callable[[Any], Any], trigger: type[PodTrigger] | type[NodeTrigger], key: Key
) -> None:
    batcher = Batcher(world.clock, idle=timedelta(seconds=1), longest=timedelta(seconds=10))
    reconciler = trigger(world.mirror, batcher)
    before = await reconciler.reconcile(key)
    put(world.api)

    after = await reconciler.reconcile(key)

    assert before.after is None
    assert after.after == timedelta(seconds=10)


def a_config(replicas: int, cpu: str = "1") -> dict[str, Any]:
    entry = {"name": "spare", "replicas": replicas, "podTemplate": {"resources": {"requests": {"cpu": cpu}}}}
    return {"metadata": {"name": "default"}, "spec": {"nodeClassRef": CLASS, "headroom": [entry]}}


async def test_headroom_makes_a_node_and_is_neither_nominated_nor_a_pod(world: World, round: Round) -> None:
    world.api.put(kinds.SCHEDULINGCONFIG, a_config(2))

    await round.provisioner.serve()

    (claim,) = round.claims
    assert claim["spec"]["resources"]["requests"]["cpu"] == "2"
    await world.lifecycle(claim["metadata"]["name"])
    await round.provisioner.serve()
    assert len(round.claims) == 1
    assert not world.mirror.snapshot(world.clock.now()).nodes[0].nominated
    assert world.events.seen == []


async def test_headroom_without_room_is_told_on_its_config(world: World, round: Round) -> None:
    world.api.put(kinds.SCHEDULINGCONFIG, a_config(2, cpu="96"))

    await round.provisioner.serve()

    (event,) = world.events.seen
    assert (event.regarding.kind, event.regarding.name) == (kinds.SCHEDULINGCONFIG, "default")
    assert event.reason == "HeadroomUnavailable"
    assert event.message.startswith("No room for 2 virtual pod(s), ")
    gauge = {"controller": "provisioner"}
    name = "karpenter_scheduler_unschedulable_pods_count"
    assert world.metrics.registry.get_sample_value(name, gauge) == 0


@pytest.mark.parametrize(
    ("config", "again"), [(a_config(1), True), ({**a_config(1), "spec": {"nodeClassRef": CLASS}}, False)]
)
async def test_headroom_triggers_rounds(world: World, config: dict[str, Any], again: bool) -> None:
    world.api.put(kinds.SCHEDULINGCONFIG, config)
    batcher = Batcher(world.clock, idle=timedelta(seconds=1), longest=timedelta(seconds=10))

    requeue = await HeadroomTrigger(world.mirror, batcher).reconcile(Key(name="default"))

    assert (requeue.after == timedelta(seconds=10)) is again


async def test_a_config_over_its_shared_limit_creates_nothing(world: World, round: Round) -> None:
    limits = {"metadata": {"name": "c"}, "spec": {"nodeClassRef": CLASS, "limits": {"cpu": "1"}}}
    world.api.put(kinds.SCHEDULINGCONFIG, limits)
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.launched()

    with pytest.raises(LimitsExceeded, match="SchedulingConfig/c: usage of cpu"):
        await round.writer.launch_static(world.mirror.pools["default"], reason="provisioned")

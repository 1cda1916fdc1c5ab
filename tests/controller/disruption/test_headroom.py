"""Nodes that headroom needs stay; those that it does not need go (spec core/scheduling §16)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.disruption.candidates import survey
from controller.disruption.command import Command, ConsolidationType
from controller.disruption.dryrun import unlimited
from controller.disruption.emptiness import Emptiness
from controller.disruption.method import Proposal, Turn
from controller.disruption.reasons import BlockCode
from controller.disruption.world import World
from controller.scheduling import Buffer, Pod
from framework.api import SchedulingConfig
from tests.controller.disruption.builders import CLASS_REF, a_node, a_pod, a_pool, a_world


def a_config(replicas: int, cpu: str = "3", **spec: Any) -> SchedulingConfig:
    entry = {"name": "spare", "replicas": replicas, "podTemplate": {"resources": {"requests": {"cpu": cpu}}}}
    spec = {"nodeClassRef": CLASS_REF, "headroom": [entry], **spec}
    return SchedulingConfig.from_wire({"metadata": {"name": "c", "uid": "c"}, "spec": spec})


def emptied(world: World) -> Proposal:
    return Emptiness().propose(Turn(world=world, survey=survey(world), deadline=unlimited))


def test_an_empty_node_that_headroom_needs_stays_and_says_so() -> None:
    world = a_world(a_node("n1"), a_node("n2"), scheduling_configs=(a_config(1),))

    proposal = emptied(world)

    assert [command.nodes for command in proposal.commands] == [("n2",)]
    assert proposal.refusals["n1"].code is BlockCode.HEADROOM
    assert proposal.refusals["n1"].text == "it is kept as headroom for 1 virtual pods"


def test_room_beside_running_pods_comes_before_idle_nodes() -> None:
    busy = a_node("n2", pods=[a_pod(cpu=1000)])
    world = a_world(a_node("n1"), busy, scheduling_configs=(a_config(1),))

    assert [command.nodes for command in emptied(world).commands] == [("n1",)]


def test_buffers_keep_nodes_too() -> None:
    sample = Pod(namespace="default", name="b", uid="b", requests={"cpu": 3000, "pods": 1})
    buffer = Buffer(namespace="default", name="b", uid="b", sample=sample, replicas=2)

    assert emptied(a_world(a_node("n1"), a_node("n2"), buffers=(buffer,))).commands == ()


def evaluate(world: World, name: str) -> Any:
    turn = Turn(world=world, survey=survey(world), deadline=unlimited)
    return turn.consolidator.evaluate([turn.survey.by_name[name]], ConsolidationType.SINGLE)


@pytest.mark.parametrize(("replicas", "deleted"), [(0, True), (1, False)])
def test_consolidation_leaves_room_for_the_pods_and_the_headroom(replicas: int, deleted: bool) -> None:
    left, right = a_node("n1", pods=[a_pod("a", cpu=1000)]), a_node("n2", pods=[a_pod("b", cpu=1000)])
    world = a_world(left, right, scheduling_configs=(a_config(replicas, cpu="2500m"),))

    found = evaluate(world, "n1")

    assert (isinstance(found, Command) and not found.replacements) is deleted


def test_headroom_that_fits_nowhere_keeps_nothing() -> None:
    pool = a_pool(limits={"nodes": "2"})
    left, right = a_node("n1", pods=[a_pod("a", cpu=1000)]), a_node("n2", pods=[a_pod("b", cpu=1000)])
    world = a_world(left, right, pools=(pool,), scheduling_configs=(a_config(1, cpu="64"),))

    found = evaluate(world, "n1")

    assert isinstance(found, Command)
    assert found.replacements == ()

"""What no command may ever do, on clusters nobody thought of (issue 8: property tests)."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from controller.disruption.build import methods
from controller.disruption.candidates import allowances
from controller.disruption.command import Command
from controller.disruption.consolidation import total_price
from controller.disruption.dryrun import Decided, decide
from controller.disruption.prices import PriceBook
from controller.disruption.validation import Rejection, validate
from controller.disruption.world import World
from controller.scheduling import Objective, Problem, is_currently_reschedulable, solve
from controller.scheduling.verify import verify
from framework.api import DisruptionReason, labels
from tests.controller.disruption.builders import (
    CATALOGUE,
    ZONES,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    a_world,
)

ROOM = {"small": 2000, "medium": 4000, "large": 8000}
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much]
"""Worlds cost time to draw, and not every one has a command of the kind that a test is about."""
FEW = settings(max_examples=40, deadline=None, suppress_health_check=SLOW)


@st.composite
def worlds(draw: Any) -> World:
    """Draw up to seven nodes of two pools, filled to at most their room, some drifted or protected."""
    budgets = st.sampled_from(["1", "2", "34%", "100%"])
    pools = tuple(a_pool(name, disruption={"budgets": [{"nodes": draw(budgets)}]}) for name in ("a", "b"))
    nodes = []
    for index in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(sorted(ROOM)))
        sizes = draw(st.lists(st.integers(1, 20), max_size=5))
        pods = []
        for number, size in enumerate(sizes):
            if sum(pod.requests["cpu"] for pod in pods) + size * 100 <= ROOM[kind]:
                mark = {labels.DO_NOT_DISRUPT: "true"} if draw(st.integers(0, 19)) == 0 else {}
                pods.append(a_pod(f"p{index}-{number}", cpu=size * 100, annotations=mark))
        nodes.append(
            a_node(
                f"n{index}",
                type=kind,
                cpu=ROOM[kind],
                pods=pods,
                pool=draw(st.sampled_from(["a", "b"])),
                zone=draw(st.sampled_from(ZONES)),
                capacity_type=draw(st.sampled_from(["on-demand", "spot"])),
                conditions=["Drifted"] if draw(st.integers(0, 9)) == 0 else [],
                ready=draw(st.integers(0, 9)) > 0,
            )
        )
    pending = tuple(
        a_pending_pod(f"w{number}", cpu=size * 100)
        for number, size in enumerate(draw(st.lists(st.integers(1, 90), max_size=2)))
    )
    world = a_world(*nodes, pools=pools, pods=pending)
    objective = draw(st.sampled_from(list(Objective)))
    return attrs.evolve(world, options=attrs.evolve(world.options, objective=objective))


def decided(world: World) -> tuple[Decided, Command]:
    found = decide(world, methods())
    assume(found.commands)
    return found, found.commands[0]


@FEW
@given(worlds())
def test_every_pod_that_runs_has_a_place_after_the_command(world: World) -> None:
    _, command = decided(world)
    moving = [
        pod
        for candidate in command.candidates
        for pod in candidate.pods
        if is_currently_reschedulable(pod, (), world.now)
    ]
    problem = Problem(
        snapshot=world.snapshot,
        pods=moving,
        instance_types=world.launchable,
        options=attrs.evolve(world.options, excluded=frozenset(command.nodes)),
    )

    plan = solve(problem)

    assert plan.unplaced == ()
    assert verify(problem, plan) == ()
    placed = {each.pod_uid for each in command.placements}
    launched = {uid for planned in command.replacements for uid in planned.pods}
    assert {pod.uid for pod in moving} <= placed | launched


@FEW
@given(worlds())
def test_no_budget_is_ever_exceeded(world: World) -> None:
    _, command = decided(world)

    left = allowances(world, command.reason)

    for pool in world.pools:
        taken = sum(candidate.pool.name == pool for candidate in command.candidates)
        assert taken <= left[pool].remaining


@FEW
@given(worlds())
def test_consolidation_never_raises_the_hourly_price(world: World) -> None:
    _, command = decided(world)
    assume(command.reason is DisruptionReason.UNDERUTILIZED)
    book = PriceBook(world.types_by_name)

    before = total_price(command.candidates)

    assert (command.savings or 0.0) > 0
    for planned in command.replacements:
        view = book.view(planned.pool, planned.requirements)
        assert all(view.of(name).cheapest < before for name in planned.instance_types[:1])
        assert planned.price < before


@FEW
@given(worlds(), st.integers(0, 6))
def test_a_protected_pod_that_appears_during_the_wait_voids_the_command(world: World, which: int) -> None:
    found, command = decided(world)
    assume(found.method is not None and found.method.validated)
    name = command.nodes[which % len(command.nodes)]
    late = a_pod("late", cpu=100, annotations={labels.DO_NOT_DISRUPT: "true"})
    nodes = tuple(
        attrs.evolve(node, pods=(*node.pods, late)) if node.name == name else node
        for node in world.snapshot.nodes
    )
    later = attrs.evolve(world, snapshot=attrs.evolve(world.snapshot, nodes=nodes))

    outcome = validate(command, found.method, later)  # type: ignore[arg-type]

    assert isinstance(outcome, Rejection) or name not in outcome.nodes


@FEW
@given(worlds())
def test_the_same_picture_gives_the_same_command(world: World) -> None:
    _, command = decided(world)

    _, again = decided(attrs.evolve(world))

    assert again.to_json() == command.to_json()


def test_the_catalogue_of_these_tests_has_the_sizes_they_fill() -> None:
    assert {each.name: each.capacity["cpu"] for each in CATALOGUE} == ROOM

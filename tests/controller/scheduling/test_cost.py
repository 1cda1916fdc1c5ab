"""The Cost objective: never dearer than first fit, never fewer pods, the same plan every time."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings

from controller.scheduling import Objective, Options, Problem, solve
from controller.scheduling.binmix import Column, Demand, cheapest_mix, undominated
from controller.scheduling.verify import verify
from framework.api import SchedulingConfig, labels
from tests.controller.scheduling.builders import (
    CLASS_REF,
    a_node,
    a_pod,
    a_pool,
    a_problem,
    a_type,
    pods,
    spread,
)
from tests.controller.scheduling.test_properties import problems

TYPES = (a_type("c.xl", 4, 8, 0.17), a_type("r.xl", 4, 32, 0.25), a_type("m.8xl", 32, 128, 1.6))


def with_cost(problem: Problem) -> Problem:
    return attrs.evolve(problem, options=attrs.evolve(problem.options, objective=Objective.COST))


@pytest.fixture
def lopsided() -> Problem:
    """Pods heavy in cpu and pods heavy in memory, which first fit puts apart."""
    busy = [a_pod(f"busy-{n:02d}", cpu="2", memory="1Gi", number=n) for n in range(40)]
    fat = [a_pod(f"fat-{n:02d}", cpu="100m", memory="7Gi", number=n) for n in range(40)]
    return a_problem([*busy, *fat], types=TYPES)


def test_it_mixes_what_first_fit_keeps_apart(lopsided: Problem) -> None:
    first, best = solve(lopsided), solve(with_cost(lopsided))

    assert best.hourly_price < 0.95 * first.hourly_price
    assert (best.unplaced, verify(lopsided, best)) == ((), ())


def test_the_same_budget_gives_the_same_plan(lopsided: Problem) -> None:
    assert solve(with_cost(lopsided)) == solve(with_cost(lopsided))


def test_no_steps_and_no_time_leave_the_first_fit_plan(lopsided: Problem) -> None:
    no_steps = attrs.evolve(lopsided, options=Options(objective=Objective.COST, search_steps=0))

    assert solve(no_steps).claims == solve(lopsided).claims
    assert solve(with_cost(lopsided), searched=lambda: True).claims == solve(lopsided).claims


def test_spread_pods_stay_spread() -> None:
    problem = a_problem(pods(30, cpu="1500m", **spread(labels.ZONE)), types=TYPES)

    assert verify(problem, solve(with_cost(problem))) == ()


def test_existing_nodes_are_still_filled_first() -> None:
    problem = a_problem(pods(8, cpu="1"), nodes=[a_node(cpu=4)])

    assert len(solve(with_cost(problem)).placements) == 4


def test_limits_hold() -> None:
    problem = a_problem(pods(20, cpu="3"), pools=[a_pool(limits={"cpu": "36"})], types=TYPES)

    assert verify(problem, solve(with_cost(problem))) == ()


def test_a_config_may_ask_for_it(lopsided: Problem) -> None:
    spec = {"nodeClassRef": CLASS_REF, "packing": {"objective": "Cost"}}
    config = SchedulingConfig.from_wire({"metadata": {"name": "c"}, "spec": spec})
    snapshot = attrs.evolve(lopsided.snapshot, scheduling_configs=(config,))

    assert solve(attrs.evolve(lopsided, snapshot=snapshot)).hourly_price < solve(lopsided).hourly_price


@settings(max_examples=25, deadline=None)
@given(problems())
def test_it_is_never_dearer_and_never_places_fewer(problem: Problem) -> None:
    first, best = solve(problem), solve(with_cost(problem))

    assert len(best.unplaced) <= len(first.unplaced)
    assert len(best.unplaced) < len(first.unplaced) or best.hourly_price <= first.hourly_price + 1e-9
    assert verify(problem, best) == ()


def test_the_mix_is_the_cheapest_that_holds_the_demand() -> None:
    columns = [
        Column(row=0, zone=None, price=1.0, room=(4, 8), kind=0),
        Column(row=1, zone=None, price=1.5, room=(8, 16), kind=0),
        Column(row=2, zone=None, price=2.0, room=(4, 8), kind=0),
    ]

    kept = undominated(columns)
    counts = cheapest_mix(kept, [Demand(total=(12, 20), kinds=frozenset({0}))], slack=0.0)

    assert [column.row for column in kept] == [0, 1]
    assert counts == [1, 1]


def test_a_demand_that_nothing_suits_has_no_mix() -> None:
    column = Column(row=0, zone=None, price=1.0, room=(4,), kind=0)

    assert cheapest_mix([column], [Demand(total=(1,), kinds=frozenset({7}))], slack=0.0) is None

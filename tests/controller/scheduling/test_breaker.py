"""Pools whose launches do not register are held back, and pods hear why (issue 7: breaker)."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from controller.scheduling import PAUSE, Problem, ReasonCode
from framework.api import NodePool
from framework.api.conditions import Condition, ConditionStatus
from tests.controller.scheduling.builders import NOW, a_node, a_pool, a_problem, pods, solved


def a_paused_pool(since: timedelta, *, generation: int = 0) -> NodePool:
    pool = a_pool()
    paused = Condition(
        type="RegistrationPaused",
        status=ConditionStatus.TRUE,
        reason="RegistrationFailed",
        observed_generation=generation,
        last_transition_time=NOW - since,
    )
    return attrs.evolve(pool, status=attrs.evolve(pool.status, conditions=(paused,)))


def a_case(since: timedelta, *, on_the_way: int = 0, generation: int = 0) -> Problem:
    coming = tuple(a_node(f"n{n}", registered=False, initialized=False, cpu=0) for n in range(on_the_way))
    pool = a_paused_pool(since, generation=generation)
    return a_problem(pods(20, cpu="4"), pools=[pool], nodes=coming)


def test_a_paused_pool_gets_no_node_and_its_pods_hear_why() -> None:
    plan = solved(a_case(timedelta(minutes=1)))

    assert plan.claims == ()
    (reason,) = {each.reason.children[0] for each in plan.unplaced}
    assert reason.code is ReasonCode.REGISTRATION_PAUSED
    assert reason.short() == "NodePool/default: its launches did not register, so it is paused"


@pytest.mark.parametrize(("on_the_way", "claims"), [(0, 1), (1, 0)])
def test_after_the_pause_one_node_at_a_time_is_tried(on_the_way: int, claims: int) -> None:
    plan = solved(a_case(PAUSE, on_the_way=on_the_way))

    assert len(plan.claims) == claims
    assert plan.unplaced


def test_a_changed_pool_is_tried_at_once() -> None:
    plan = solved(a_case(timedelta(minutes=1), generation=7))

    assert plan.unplaced == ()

"""Drift, static drift and the rollout (spec core/disruption §8, §9; design: SchedulingConfig.rollout)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controller.disruption.candidates import survey
from controller.disruption.command import Decision
from controller.disruption.drift import Drift
from controller.disruption.dryrun import unlimited
from controller.disruption.history import History
from controller.disruption.method import Proposal, Turn
from controller.disruption.policy import PoolPolicy, Rollout
from controller.disruption.reasons import BlockCode
from controller.disruption.rollout import PAUSED, pauses, target_of
from controller.disruption.static_drift import StaticDrift
from controller.disruption.world import World
from framework.api import labels
from tests.controller.disruption.builders import (
    NOW,
    a_budget,
    a_condition,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    a_world,
)

DRIFTED = ["Drifted"]


def drift(world: World) -> Proposal:
    return Drift().propose(Turn(world=world, survey=survey(world), deadline=unlimited))


def static_drift(world: World) -> Proposal:
    return StaticDrift().propose(Turn(world=world, survey=survey(world), deadline=unlimited))


def since(minutes: int) -> list[Any]:
    return [a_condition("Drifted", since=NOW - timedelta(minutes=minutes))]


def test_the_longest_drifted_node_goes_first_and_an_empty_one_before_it() -> None:
    full = [a_node(f"n{i}", pods=[a_pod(f"p{i}", cpu=3900)], conditions=since(10 * i)) for i in (1, 2)]
    empty = a_node("n3", conditions=since(1))

    first = drift(a_world(*full, empty)).commands[0]
    second = drift(a_world(*full)).commands[0]

    assert (first.nodes, first.decision) == (("n3",), Decision.DELETE)
    assert (second.nodes, second.decision) == (("n2",), Decision.REPLACE)


def test_a_replacement_may_cost_more_and_takes_all_its_types() -> None:
    world = a_world(a_node("n1", type="small", cpu=2000, pods=[a_pod(cpu=1900)], conditions=DRIFTED))

    (command,) = drift(world).commands

    assert sorted(command.replacements[0].instance_types) == ["large", "medium", "small"]
    assert command.savings is None


def test_claims_for_pods_that_were_pending_anyway_stay_with_the_provisioner() -> None:
    world = a_world(a_node("n1", pods=[a_pod(cpu=3900)], conditions=DRIFTED), pods=(a_pending_pod(cpu=7000),))

    (command,) = drift(world).commands

    assert [planned.pod_keys for planned in command.replacements] == [("default/web-0",)]


def test_a_node_whose_pods_fit_nowhere_stays_and_the_next_one_goes() -> None:
    stuck = a_node("n1", cpu=64_000, pods=[a_pod("huge", cpu=60_000)], conditions=since(60))
    other = a_node("n2", conditions=since(1), pods=[a_pod(cpu=100)])

    proposal = drift(a_world(stuck, other))

    assert [command.nodes for command in proposal.commands] == [("n2",)]
    assert proposal.refusals["n1"].code is BlockCode.PODS_DO_NOT_FIT


def test_a_grace_period_lets_drift_go_over_a_protected_pod_without_a_place_for_it() -> None:
    pod = a_pod(annotations={labels.DO_NOT_DISRUPT: "true"})
    world = a_world(
        a_node("n1", pods=[pod], conditions=DRIFTED, claim={"terminationGracePeriod": "1h"}),
    )

    (command,) = drift(world).commands

    assert (command.nodes, command.replacements) == (("n1",), ())


@pytest.mark.parametrize("graced", [False, True])
def test_a_budget_that_allows_none_holds_drift_unless_a_grace_period_waives_it(graced: bool) -> None:
    claim = {"terminationGracePeriod": "1h"} if graced else {}
    pod = a_pod(labels={"app": "web"})
    world = a_world(a_node("n1", pods=[pod], conditions=DRIFTED, claim=claim), pdbs=(a_budget(allowed=0),))

    assert bool(drift(world).commands) is graced


def test_the_pools_budget_for_drift_counts() -> None:
    pool = a_pool(disruption={"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]})

    proposal = drift(a_world(a_node("n1", conditions=DRIFTED), pools=[pool]))

    assert (proposal.commands, proposal.held_by_budget) == ((), True)


# Rollout


def rolling(rollout: Rollout, **history: Any) -> dict[str, Any]:
    return {"policies": {"default": PoolPolicy(config="c", rollout=rollout)}, "history": History(**history)}


def test_a_node_is_not_replaced_before_the_delay_is_over() -> None:
    rollout = rolling(Rollout(delay=timedelta(minutes=30)))

    early = drift(a_world(a_node("n1", conditions=since(29)), **rollout))
    late = drift(a_world(a_node("n1", conditions=since(30)), **rollout))

    assert early.refusals["n1"].code is BlockCode.ROLLOUT
    assert len(late.commands) == 1


def test_the_rest_waits_until_the_canaries_are_ready() -> None:
    nodes = [a_node(f"n{i}", conditions=DRIFTED) for i in range(3)]
    busy = frozenset({"claim-n0"})

    under_way = drift(a_world(*nodes, busy=busy, **rolling(Rollout(canary=1))))
    ready = drift(a_world(*nodes, busy=busy, **rolling(Rollout(canary=1), drift_successes={"default": 1})))

    assert {reason.code for reason in under_way.refusals.values()} == {BlockCode.ROLLOUT}
    assert len(ready.commands) == 1


def test_failed_replacements_pause_the_rollout_until_its_target_changes() -> None:
    rollout = Rollout(pause_on_failure=True)
    failing = a_world(a_node("n1", conditions=DRIFTED), **rolling(rollout, drift_failures={"default": 2}))
    message = pauses(failing)["default"]
    assert message is not None
    assert "registration" in message

    paused = a_pool(status=[a_condition(PAUSED, message=message)])
    held = drift(a_world(a_node("n1", conditions=DRIFTED), pools=[paused], **rolling(rollout)))
    newer = a_node("n1", conditions=[a_condition("Drifted", message="ami-2 wanted")])
    after_change = a_world(newer, pools=[paused], **rolling(rollout))

    assert held.refusals["n1"].code is BlockCode.ROLLOUT
    assert pauses(after_change) == {"default": None}
    assert len(drift(after_change).commands) == 1


def test_a_pool_with_nothing_drifted_has_no_target() -> None:
    assert target_of(a_world(a_node("n1")), "default") == ""


# Static pools


@pytest.mark.parametrize(
    ("limit", "budget", "commands"),
    [
        pytest.param(None, "100%", 3, id="without a limit all at once"),
        pytest.param(5, "100%", 2, id="as many as the limit leaves room for"),
        pytest.param(3, "100%", 0, id="none when the limit equals the replicas"),
        pytest.param(None, "1", 1, id="as many as the budget allows"),
    ],
)
def test_static_pools_replace_as_budget_and_node_limit_allow(
    limit: int | None, budget: str, commands: int
) -> None:
    limits = {} if limit is None else {"limits": {"nodes": str(limit)}}
    pool = a_pool(disruption={"budgets": [{"nodes": budget}]}, replicas=3, **limits)
    nodes = [a_node(f"n{i}", conditions=DRIFTED) for i in range(3)]

    proposal = static_drift(a_world(*nodes, pools=[pool]))

    assert [each.static_replacements for each in proposal.commands] == [("default",)] * commands
    if limit == 3:
        assert "limits.nodes" in proposal.refusals["n0"].text


def test_a_static_pool_that_is_scaled_down_is_not_replaced_meanwhile() -> None:
    nodes = [a_node(f"n{i}", conditions=DRIFTED) for i in range(3)]

    proposal = static_drift(a_world(*nodes, pools=[a_pool(replicas=2)]))

    assert proposal.commands == ()
    assert proposal.refusals["n0"].code is BlockCode.SCALING_DOWN

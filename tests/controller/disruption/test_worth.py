"""What a consolidation must be worth (spec core/disruption §17, §21.8; design: SchedulingConfig)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controller.disruption.build import methods
from controller.disruption.dryrun import decide
from controller.disruption.history import History, Journal, Move
from controller.disruption.policy import MinSavings, PoolPolicy, policies
from controller.disruption.reasons import BlockCode
from controller.disruption.worth import PoolTotals, score
from framework.api import SchedulingConfig, labels
from tests.controller.disruption.builders import CLASS_REF, NOW, a_node, a_pod, a_pool, a_world

ON_DEMAND = [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}]
POOL_10_20 = PoolTotals(cost=10, disruption=20)


@pytest.mark.parametrize(
    ("savings", "disruption", "totals", "value"),
    [
        (2.0, 6.0, POOL_10_20, 0.667),
        (0.4, 6.0, POOL_10_20, 0.133),
        (0.0, 6.0, POOL_10_20, 0.0),
        (2.0, 0.0, POOL_10_20, float("inf")),
        (2.0, 6.0, PoolTotals(cost=0, disruption=20), 0.0),
    ],
)
def test_scores_compare_shares_of_savings_and_disruption(
    savings: float, disruption: float, totals: PoolTotals, value: float
) -> None:
    assert score(savings, disruption, totals) == pytest.approx(value, abs=1e-3)


def outcome(policy: PoolPolicy, *, pool: Any = None, **more: Any) -> tuple[int, set[Any]]:
    """Return how many commands there are for one node that saves 0.2 of 0.4, and why there are not more."""
    node = a_node("n1", type="large", cpu=8000, pods=[a_pod(cpu=3000)])
    world = a_world(
        node, pools=[pool or a_pool(requirements=ON_DEMAND)], policies={"default": policy}, **more
    )
    decided = decide(world, methods())
    return len(decided.commands), {reason.code for reason in decided.refusals.get("n1", ())}


@pytest.mark.parametrize(
    ("savings", "commands"),
    [
        pytest.param(MinSavings(), 1, id="nothing asked"),
        pytest.param(MinSavings(percent=50), 1, id="percent reached"),
        pytest.param(MinSavings(percent=51), 0, id="percent missed"),
        pytest.param(MinSavings(per_hour=0.2), 1, id="per hour reached"),
        pytest.param(MinSavings(per_hour=0.21), 0, id="per hour missed"),
        pytest.param(MinSavings(payback=timedelta(minutes=10)), 1, id="pays back in time"),
        pytest.param(MinSavings(payback=timedelta(minutes=9)), 0, id="pays back too late"),
        pytest.param(MinSavings(percent=10, per_hour=0.5), 0, id="every part must hold"),
    ],
)
def test_a_consolidation_below_the_minimum_savings_is_not_worth_it(
    savings: MinSavings, commands: int
) -> None:
    found, reasons = outcome(PoolPolicy(config="c", min_savings=savings))

    assert found == commands
    assert (BlockCode.SAVINGS_TOO_SMALL in reasons) is not bool(commands)


@pytest.mark.parametrize(("minutes", "commands"), [(4, 0), (5, 1)])
def test_a_pool_rests_for_its_cooldown_after_a_command(minutes: int, commands: int) -> None:
    last = {"default": NOW - timedelta(minutes=minutes)}

    found, reasons = outcome(
        PoolPolicy(config="c", cooldown=timedelta(minutes=5)), history=History(last_command=last)
    )

    assert found == commands
    assert (BlockCode.COOLDOWN in reasons) is not bool(commands)


@pytest.mark.parametrize(("minutes", "commands"), [(19, 0), (20, 1)])
def test_going_back_to_where_it_came_from_waits_longer_each_time(minutes: int, commands: int) -> None:
    there = Move(
        at=NOW - timedelta(minutes=minutes), pool="default", before=frozenset({"medium"}), after="large"
    )
    policy = PoolPolicy(config="c", cooldown=timedelta(minutes=10))

    found, reasons = outcome(policy, history=History(moves=(there,)))

    assert found == commands
    assert (BlockCode.OSCILLATION in reasons) is not bool(commands)


def test_a_node_younger_than_the_cooldown_takes_no_pods_of_a_consolidated_one() -> None:
    old = a_node("old", pods=[a_pod(cpu=3900)], initialized_at=NOW - timedelta(hours=1))
    young = a_node("young", initialized_at=NOW - timedelta(minutes=2), nominated=True)
    policy = {"default": PoolPolicy(config="c", cooldown=timedelta(minutes=5))}
    pool = a_pool(requirements=ON_DEMAND)

    plain = decide(a_world(old, young, pools=[pool]), methods())
    cooled = decide(a_world(old, young, pools=[pool], policies=policy), methods())

    assert [command.nodes for command in plain.commands] == [("old",)]
    assert cooled.commands == ()


def test_the_balanced_policy_refuses_what_disrupts_more_than_it_saves() -> None:
    balanced = a_pool(requirements=ON_DEMAND, disruption={"consolidationPolicy": "Balanced"})
    busy = a_node("n1", type="large", cpu=8000, pods=[a_pod(f"p{i}", cpu=390) for i in range(10)])
    idle = [a_node(f"m{i}", pods=[a_pod(f"q{i}", cpu=3900)], nominated=True) for i in range(9)]

    calm = decide(a_world(busy, *idle, pools=[balanced]), methods())
    plain = decide(a_world(busy, *idle, pools=[a_pool(requirements=ON_DEMAND)]), methods())

    assert [command.nodes for command in plain.commands] == [("n1",)]
    assert calm.commands == ()
    assert BlockCode.BALANCED in {reason.code for reason in calm.refusals["n1"]}


def test_the_oldest_config_of_a_pools_class_gives_the_policy() -> None:
    def a_config(name: str, hour: int, **spec: Any) -> SchedulingConfig:
        metadata = {"name": name, "creationTimestamp": f"2026-03-01T{hour:02}:00:00Z"}
        raw = {"metadata": metadata, "spec": {"nodeClassRef": CLASS_REF, **spec}}
        return SchedulingConfig.from_wire(
            {"apiVersion": "karpenter.sh/v1", "kind": "SchedulingConfig", **raw}
        )

    first = a_config(
        "a",
        5,
        nodeCost=0.01,
        disruption={"cooldown": "5m", "minSavings": {"percent": 10}},
        rollout={"staticDrift": "DeleteFirst"},
    )
    second = a_config("b", 6, nodeCost=9)

    (found,) = policies([a_pool()], [second, first]).values()

    assert found.static_drift_deletes_first
    assert (found.config, found.node_cost, found.cooldown, found.min_savings.percent) == (
        "a",
        0.01,
        timedelta(minutes=5),
        10,
    )


def test_the_journal_forgets_moves_after_a_day() -> None:
    journal = Journal()
    node = a_node("n1")
    command = decide(a_world(node), methods()).commands[0]

    journal.completed(command, ("small",), NOW)

    assert len(journal.history(NOW + timedelta(hours=24)).moves) == 1
    assert journal.history(NOW + timedelta(hours=25)).moves == ()

"""Spot up to a share, zones in balance (design: SchedulingConfig, spot and zoneBalance)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.scheduling import Objective, Options, Plan, PlannedClaim, Pod, ReasonCode, StateNode
from framework.api import NodePool, SchedulingConfig, labels
from tests.controller.scheduling.builders import (
    CLASS_REF,
    ZONES,
    a_node,
    a_pool,
    a_problem,
    a_type,
    pods,
    solved,
)

TYPES = tuple(a_type(f"m.x{cpu}", cpu, 4 * cpu, cpu * 0.05, spot=cpu * 0.02) for cpu in (2, 4, 8, 16))
BOTH = list(Objective)


def a_config(**spec: Any) -> SchedulingConfig:
    return SchedulingConfig.from_wire(
        {"metadata": {"name": "c"}, "spec": {"nodeClassRef": CLASS_REF, **spec}}
    )


def a_pool_of(capacity_type: str, **spec: Any) -> NodePool:
    only = {"key": labels.CAPACITY_TYPE, "operator": "In", "values": [capacity_type]}
    return a_pool(capacity_type, requirements=[only], **spec)


def planned(waiting: list[Pod], config: SchedulingConfig, **more: Any) -> Plan:
    options = Options(objective=more.pop("objective", Objective.FIRST_FIT))
    return solved(a_problem(waiting, types=TYPES, scheduling_configs=(config,), options=options, **more))


def may_be_spot(claim: PlannedClaim) -> bool:
    return claim.requirements[labels.CAPACITY_TYPE].has("spot")


def on_demand(name: str) -> StateNode:
    found = a_node(name, cpu=16)
    return a_node(
        name, cpu=16, labels={**found.labels, labels.CAPACITY_TYPE: "on-demand"}, allocatable={"pods": 0}
    )


@pytest.mark.parametrize("objective", BOTH)
def test_spot_is_used_up_to_its_share_and_no_further(objective: Objective) -> None:
    plan = planned(pods(200, cpu="1"), a_config(spot={"maxShare": "50%"}), objective=objective)

    assert plan.unplaced == ()
    assert {may_be_spot(claim) for claim in plan.claims} == {True, False}


def test_without_a_share_everything_may_be_spot() -> None:
    plan = planned(pods(40, cpu="1"), a_config())

    assert all(may_be_spot(claim) for claim in plan.claims)


def test_a_spot_pool_that_is_full_gives_way_to_one_on_demand() -> None:
    pools = [a_pool_of("spot", weight=10), a_pool_of("on-demand")]

    plan = planned(pods(200, cpu="1"), a_config(spot={"maxShare": "70%"}), pools=pools)

    assert plan.unplaced == ()
    assert {claim.pool for claim in plan.claims} == {"spot", "on-demand"}


def test_a_pod_that_needs_more_spot_than_allowed_hears_why() -> None:
    only = pods(1, cpu="1", nodeSelector={labels.CAPACITY_TYPE: "spot"})

    plan = planned(only, a_config(spot={"maxShare": "50%"}))

    (reason,) = plan.unplaced[0].reason.children
    assert reason.code is ReasonCode.SPOT_SHARE
    assert reason.obj == "SchedulingConfig/c"
    assert reason.message == (
        "at most 50% of the vCPUs of its NodePools may be spot (up to 0 of 0 vCPUs are now)"
    )


def test_on_demand_nodes_make_room_for_spot() -> None:
    only = pods(1, cpu="1", nodeSelector={labels.CAPACITY_TYPE: "spot"})

    plan = planned(only, a_config(spot={"maxShare": "50%"}), nodes=(on_demand("n1"),))

    (claim,) = plan.claims
    assert claim.requirements[labels.CAPACITY_TYPE].values == {"spot"}


def test_a_share_of_nothing_is_no_spot_at_all() -> None:
    plan = planned(pods(40, cpu="1"), a_config(spot={"maxShare": "0%"}), nodes=(on_demand("n1"),))

    assert plan.unplaced == ()
    assert not any(may_be_spot(claim) for claim in plan.claims)


@given(
    share=st.integers(0, 99),
    sizes=st.lists(st.integers(1, 15), min_size=1, max_size=40),
    nodes=st.integers(0, 3),
    objective=st.sampled_from(BOTH),
)
@settings(max_examples=25, deadline=None)
def test_the_share_holds_whatever_is_launched(
    share: int, sizes: list[int], nodes: int, objective: Objective
) -> None:
    waiting = [pod for n, cpu in enumerate(sizes) for pod in pods(1, app=f"a{n}", cpu=str(cpu))]

    plan = planned(
        waiting,
        a_config(spot={"maxShare": f"{share}%"}),
        nodes=tuple(on_demand(f"n{n}") for n in range(nodes)),
        objective=objective,
    )

    assert plan.unplaced == ()


def zones_of(plan: Plan) -> Counter[tuple[str, ...]]:
    return Counter(claim.zones for claim in plan.claims)


@pytest.mark.parametrize("objective", BOTH)
def test_free_pods_are_balanced_over_zones(objective: Objective) -> None:
    config = a_config(zoneBalance={"maxSkewPercent": 10}, limits={"cpu": "1000"})

    plan = planned(pods(9, cpu="15"), config, objective=objective)

    assert zones_of(plan) == {(zone,): 3 for zone in ZONES}


def test_the_emptiest_zone_is_filled_first() -> None:
    nodes = tuple(on_demand(f"n{n}") for n in range(2))

    plan = planned(pods(4, cpu="15"), a_config(zoneBalance={"maxSkewPercent": 10}), nodes=nodes)

    assert zones_of(plan) == {("z-b",): 2, ("z-c",): 2}


def test_a_balance_that_no_claim_can_upset_leaves_zones_open() -> None:
    nodes = tuple(a_node(f"n{z}", cpu=400, zone=z, allocatable={"pods": 0}) for z in ZONES)

    plan = planned(pods(1, cpu="15"), a_config(zoneBalance={"maxSkewPercent": 10}), nodes=nodes)

    assert zones_of(plan) == {(): 1}


def test_pods_that_ask_for_a_zone_get_it_whatever_the_balance() -> None:
    waiting = pods(3, cpu="15", nodeSelector={labels.ZONE: "z-b"})

    plan = planned(waiting, a_config(zoneBalance={"maxSkewPercent": 0}))

    assert zones_of(plan) == {("z-b",): 3}

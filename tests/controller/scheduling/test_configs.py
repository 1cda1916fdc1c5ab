"""Each field of a SchedulingConfig that planning reads takes effect (design: SchedulingConfig)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controller.scheduling import MinValuesPolicy, Objective, Options, Plan, Pod, ReasonCode, search_limit
from framework.api import SchedulingConfig, labels
from tests.controller.scheduling.builders import (
    CLASS_REF,
    SIZES,
    a_pod,
    a_pool,
    a_problem,
    a_type,
    pods,
    solved,
)

ARM = {"key": labels.ARCH, "operator": "In", "values": ["arm64"]}
AMD = {**ARM, "values": ["amd64"]}


def a_config(**spec: Any) -> SchedulingConfig:
    spec = {"nodeClassRef": CLASS_REF, **spec}
    return SchedulingConfig.from_wire({"metadata": {"name": "c"}, "spec": spec})


def planned(waiting: list[Pod], config: SchedulingConfig, **more: Any) -> Plan:
    return solved(a_problem(waiting, scheduling_configs=(config,), **more))


def test_a_selector_leaves_other_pools_alone() -> None:
    pool = a_pool("gpu")
    config = a_config(nodePoolSelector={"matchLabels": {"team": "ml"}}, requirements=[ARM])

    assert planned([a_pod()], config, pools=[pool]).unplaced == ()


def test_a_pool_that_the_config_leaves_nothing_of_says_so() -> None:
    plan = planned([a_pod()], a_config(requirements=[ARM]), pools=[a_pool(requirements=[AMD])])

    text = plan.pool_problems["default"].text
    assert text.startswith("SchedulingConfig c demands kubernetes.io/arch In [arm64]")
    assert plan.unplaced[0].reason.children[0].text == text


def test_a_pod_against_the_config_is_told_which_config() -> None:
    waiting = [a_pod(nodeSelector={labels.ZONE: "z-b"})]
    only = {"key": labels.ZONE, "operator": "In", "values": ["z-a"]}

    (reason,) = planned(waiting, a_config(requirements=[only])).unplaced[0].reason.children

    assert (reason.code, reason.obj) == (ReasonCode.REQUIREMENTS, "SchedulingConfig/c")
    assert reason.field == "spec.requirements"


def test_shared_limits_are_named_by_their_config() -> None:
    plan = planned(pods(4, cpu="7"), a_config(limits={"nodes": 2}), pools=[a_pool("a"), a_pool("b")])

    (reason,) = plan.unplaced[0].reason.children
    assert (reason.code, reason.obj) == (ReasonCode.LIMITS, "SchedulingConfig/c")


@pytest.mark.parametrize(("policy", "zones"), [("Respect", ("z-b",)), ("Ignore", ())])
def test_preferences_count_as_the_config_says(policy: str, zones: tuple[str, ...]) -> None:
    term = {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": ["z-b"]}]}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}

    plan = planned([a_pod(affinity={"nodeAffinity": wish})], a_config(preferencePolicy=policy))

    assert [claim.zones for claim in plan.claims] == [zones]


@pytest.mark.parametrize(("policy", "placed"), [("Strict", 0), ("BestEffort", 1)])
def test_min_values_are_lowered_as_the_config_says(policy: str, placed: int) -> None:
    flexible = {"key": labels.INSTANCE_TYPE, "operator": "Exists", "minValues": 5}
    options = Options(min_values_policy=MinValuesPolicy.STRICT)

    plan = planned(
        [a_pod()],
        a_config(minValuesPolicy=policy),
        pools=[a_pool(requirements=[flexible])],
        options=options,
    )

    assert len(plan.claims) == placed


def test_what_each_node_costs_beside_its_instance_makes_fewer_nodes() -> None:
    small, large = a_type("small", 4, 16, 0.19), a_type("large", 16, 64, 0.8)
    cheapest = Options(objective=Objective.COST)
    waiting = pods(15, cpu="1")

    free = planned(waiting, a_config(), types=[small, large], options=cheapest)
    dear = planned(waiting, a_config(nodeCost=1), types=[small, large], options=cheapest)

    assert (len(free.claims), len(dear.claims)) == (4, 1)


def test_the_search_takes_as_long_as_the_config_allows() -> None:
    problem = a_problem([a_pod()], types=SIZES, scheduling_configs=(a_config(packing={"timeLimit": "5s"}),))

    assert search_limit(problem) == timedelta(seconds=5)

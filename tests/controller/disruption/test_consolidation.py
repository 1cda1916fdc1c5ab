"""Prices, same types, spot to spot, and both consolidation methods (spec core/disruption §10 to §13, §21)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from controller.disruption.build import methods
from controller.disruption.candidates import survey
from controller.disruption.command import Command, ConsolidationType, Decision
from controller.disruption.dryrun import decide, unlimited
from controller.disruption.method import Turn
from controller.disruption.multi_node import MultiNode
from controller.disruption.policy import PoolPolicy
from controller.disruption.reasons import BlockCode
from controller.disruption.simulation import Simulator
from controller.disruption.single_node import SingleNode, in_turns
from controller.disruption.world import Gates, World
from controller.scheduling import Objective, Reason
from framework.api import labels
from tests.controller.disruption.builders import (
    CATALOGUE,
    LARGE,
    MEDIUM,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    a_world,
    an_instance_type,
)

ON_DEMAND = [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}]


def judge(world: World, *names: str) -> Command | Reason:
    """Evaluate the named nodes as one set."""
    by_name = {each.name: each for each in survey(world).candidates}
    return turn_of(world).consolidator.evaluate([by_name[name] for name in names], ConsolidationType.SINGLE)


def turn_of(world: World, **more: Any) -> Turn:
    return Turn(world=world, survey=survey(world), deadline=unlimited, **more)


def types_of(command: Command | Reason) -> list[str]:
    assert isinstance(command, Command), command
    return sorted(command.replacements[0].instance_types)


def a_market(prices: Sequence[float], *, spot: bool = True, cpu: int = 4000) -> dict[str, Any]:
    """Return instance types t00, t01 … at these prices, of which a node `old` is one at 0.50."""
    old = an_instance_type("old", cpu=8000, price=1.0, spot=0.5)
    found = [
        an_instance_type(f"t{index:02}", cpu=cpu, price=price * 2, spot=price if spot else None)
        for index, price in enumerate(prices)
    ]
    return {"default": (old, *found)}


def test_a_node_whose_pods_fit_elsewhere_is_deleted_and_saves_its_price() -> None:
    command = judge(a_world(a_node("n1", pods=[a_pod()]), a_node("n2")), "n1")

    assert isinstance(command, Command)
    assert (command.decision, command.savings) == (Decision.DELETE, 0.2)
    assert [(placed.pod_key, placed.node) for placed in command.placements] == [("default/web-0", "n2")]


def test_a_half_empty_node_is_replaced_by_a_cheaper_one_pinned_to_spot() -> None:
    command = judge(a_world(a_node("n1", type="large", cpu=8000, pods=[a_pod(cpu=1500)])), "n1")

    assert types_of(command) == ["large", "medium", "small"]
    planned = command.replacements[0]  # type: ignore[union-attr]
    assert planned.requirements[labels.CAPACITY_TYPE].values == {"spot"}
    assert planned.requirements[labels.INSTANCE_TYPE].values == {"large", "medium", "small"}
    assert (planned.instance_types[0], planned.price) == ("small", 0.04)


@pytest.mark.parametrize("objective", list(Objective))
def test_one_cheaper_node_is_found_where_two_would_be_cheaper_still(objective: Objective) -> None:
    small = an_instance_type("small", cpu=2000, price=0.05)
    pods = [a_pod(f"web-{number}", cpu=1900) for number in range(2)]
    world = a_world(
        a_node("n1", type="large", cpu=8000, pods=pods),
        pools=[a_pool(requirements=ON_DEMAND)],
        types={"default": (small, MEDIUM, LARGE)},
    )
    world = attrs.evolve(world, options=attrs.evolve(world.options, objective=objective))

    assert types_of(judge(world, "n1")) == ["medium"]


def test_an_equal_price_never_replaces() -> None:
    world = a_world(
        a_node("n1", pods=[a_pod(cpu=3000)]),
        pools=[a_pool(requirements=ON_DEMAND)],
        types={"default": CATALOGUE},
    )

    refusal = judge(world, "n1")

    assert isinstance(refusal, Reason)
    assert refusal.code is BlockCode.NOT_CHEAPER
    assert refusal.nearest == "medium at $0.2000 an hour"


def test_the_worst_offering_of_the_class_that_launches_decides() -> None:
    cheap_somewhere = an_instance_type("t", cpu=4000, price=1.2, spot=0.4)
    dear_in_one_zone = [
        *cheap_somewhere.offerings,
        *an_instance_type("t", cpu=1, price=9, spot=1.1).offerings[-1:],
    ]
    world = a_world(
        a_node("n1", type="old", pods=[a_pod(cpu=1000)]),
        types={
            "default": (
                an_instance_type("old", cpu=8000, price=1.0),
                an_instance_type("u", cpu=4000, price=0.9, zones=["z-a"]),
                cheap_somewhere.__class__(
                    name="t",
                    requirements=cheap_somewhere.requirements,
                    offerings=tuple(dear_in_one_zone),
                    capacity=cheap_somewhere.capacity,
                ),
            )
        },
    )

    assert types_of(judge(world, "n1")) == ["u"]


def test_pods_that_were_pending_anyway_do_not_stop_a_removal() -> None:
    world = a_world(a_node("n1", pods=[a_pod()]), a_node("n2"), pods=(a_pending_pod(cpu=50_000),))

    assert isinstance(judge(world, "n1"), Command)


def test_a_node_that_is_not_initialized_is_no_home_for_pods_that_run() -> None:
    world = a_world(
        a_node("n1", type="small", cpu=2000, pods=[a_pod(cpu=1900)]), a_node("n2", initialized=False)
    )

    refusal = judge(world, "n1")

    assert isinstance(refusal, Reason)
    assert "pod default/web-0 would go to n2, which is uninitialized" in refusal.text


def test_an_unknown_price_makes_nothing_cheaper() -> None:
    world = a_world(a_node("n1", zone="nowhere", pods=[a_pod()]))

    refusal = judge(world, "n1")

    assert isinstance(refusal, Reason)
    assert refusal.code is BlockCode.NOT_CHEAPER


@pytest.mark.parametrize(
    ("cheaper", "launched"),
    [pytest.param(14, None, id="14 cheaper"), pytest.param(20, 15, id="20 cheaper")],
)
def test_spot_replaces_spot_only_from_fifteen_cheaper_types_on(cheaper: int, launched: int | None) -> None:
    prices = [0.01 * (index + 1) for index in range(cheaper)]
    world = a_world(
        a_node("n1", type="old", capacity_type="spot", pods=[a_pod()], cpu=8000),
        types=a_market(prices),
        gates=Gates(spot_to_spot=True),
    )

    outcome = judge(world, "n1")

    if launched is None:
        assert isinstance(outcome, Reason)
        assert "15" in outcome.text
        assert "14" in outcome.text
    else:
        assert types_of(outcome) == [f"t{index:02}" for index in range(launched)]


def test_min_values_keep_more_than_fifteen_spot_types() -> None:
    wanted = [{"key": labels.INSTANCE_FAMILY, "operator": "Exists", "minValues": 18}]
    world = a_world(
        a_node("n1", type="old", capacity_type="spot", pods=[a_pod()], cpu=8000),
        pools=[a_pool(requirements=wanted)],
        types=a_market([0.01 * (index + 1) for index in range(30)]),
        gates=Gates(spot_to_spot=True),
    )

    assert len(types_of(judge(world, "n1"))) == 18


def test_spot_to_spot_is_off_unless_asked_for() -> None:
    node = a_node("n1", type="old", capacity_type="spot", pods=[a_pod()], cpu=8000)
    market = a_market([0.01 * (index + 1) for index in range(20)])

    refusal = judge(a_world(node, types=market), "n1")
    allowed = judge(a_world(node, types=market, policies={"default": PoolPolicy(min_cheaper_types=5)}), "n1")

    assert isinstance(refusal, Reason)
    assert refusal.code is BlockCode.SPOT_TO_SPOT_OFF
    assert len(types_of(allowed)) == 15


def test_many_nodes_are_merged_into_one_cheaper_node() -> None:
    nodes = [a_node(f"n{index}", pods=[a_pod(f"p{index}", cpu=2100)]) for index in range(4)]
    world = a_world(*nodes, pools=[a_pool(requirements=ON_DEMAND)], types={"default": (*CATALOGUE[1:],)})

    (command,) = MultiNode().propose(turn_of(world)).commands

    assert (command.decision, len(command.candidates)) == (Decision.REPLACE, 3)
    assert command.replacements[0].instance_types == (LARGE.name,)
    assert command.savings == pytest.approx(0.2)


def test_the_cost_objective_finds_the_merge_that_binary_search_steps_over() -> None:
    nodes = [a_node(f"n{index}", pods=[a_pod(f"p{index}", cpu=2100)]) for index in range(3)]
    world = a_world(*nodes, pools=[a_pool(requirements=ON_DEMAND)], types={"default": (*CATALOGUE[1:],)})
    thorough = attrs.evolve(world, options=attrs.evolve(world.options, objective=Objective.COST))

    assert MultiNode().propose(turn_of(world)).commands == ()
    (command,) = MultiNode().propose(turn_of(thorough)).commands
    assert (command.decision, len(command.candidates)) == (Decision.REPLACE, 3)


def test_the_cost_objective_steps_over_a_node_in_the_middle_that_cannot_go() -> None:
    stuck = a_node("n1", pods=[a_pod("stuck", cpu=5000)], type="large", cpu=8000)
    others = [a_node(f"n{index}", pods=[a_pod(f"p{index}a", cpu=100)] * 2) for index in range(2, 6)]
    pool = a_pool(requirements=ON_DEMAND)
    types = {"default": (*CATALOGUE[1:2], an_instance_type("large", cpu=8000, price=0.1))}
    world = a_world(stuck, *others, pools=[pool], types=types)
    thorough = attrs.evolve(world, options=attrs.evolve(world.options, objective=Objective.COST))

    (command,) = MultiNode().propose(turn_of(thorough)).commands

    assert command.nodes == ("n2", "n3", "n4", "n5")


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        pytest.param((("medium", 0.5),), None, id="nothing cheaper than the cheapest shared type"),
        pytest.param((("nano", 0.1), ("medium", 0.5)), ["nano"], id="only what is cheaper stays"),
    ],
)
def test_nodes_are_not_swapped_for_one_of_their_own_type(
    options: Sequence[tuple[str, float]], kept: list[str] | None
) -> None:
    types = [
        an_instance_type("small", cpu=8000, price=0.2),
        an_instance_type("big", cpu=8000, price=1.0),
        *(an_instance_type(name, cpu=8000, price=price) for name, price in options),
    ]
    world = a_world(
        a_node("n1", type="big", pods=[a_pod("p1", cpu=2000)]),
        a_node("n2", type="big", pods=[a_pod("p2", cpu=2000)]),
        a_node("n3", type="small", pods=[a_pod("p3", cpu=2000)]),
        types={"default": tuple(types)},
    )

    proposal = MultiNode().propose(turn_of(world))

    found = [
        sorted(each.replacements[0].instance_types) for each in proposal.commands if len(each.candidates) == 3
    ]
    assert found == ([kept] if kept else [])


def test_empty_nodes_are_left_to_emptiness_so_that_its_budget_protects_them() -> None:
    no_empty = {"budgets": [{"nodes": "0", "reasons": ["Empty"]}]}
    world = a_world(a_node("n1"), a_node("n2"), pools=[a_pool(disruption=no_empty)])

    decided = decide(world, methods())

    assert decided.commands == ()
    assert BlockCode.BUDGET in {reason.code for reason in decided.refusals["n1"]}


def test_single_nodes_take_turns_by_pool_and_unreached_ones_come_first() -> None:
    pools = (a_pool("a"), a_pool("b"))
    world = a_world(
        *(a_node(f"a{index}", pool="a", pods=[a_pod(f"a{index}")] * (index + 1)) for index in range(3)),
        a_node("b0", pool="b", pods=[a_pod("b0")]),
        pools=pools,
    )

    order = [each.name for each in in_turns(survey(world).candidates, frozenset({"a2"}))]

    assert order == ["a2", "a0", "b0", "a1"]


def test_a_pass_that_runs_out_of_time_says_whom_it_did_not_reach() -> None:
    nodes = [a_node(f"n{index}", zone="nowhere", pods=[a_pod(f"p{index}", cpu=3900)]) for index in range(3)]
    world = a_world(*nodes)
    left = iter([False, True])
    turn = Turn(world=world, survey=survey(world), deadline=lambda _: lambda: next(left))

    proposal = SingleNode().propose(turn)

    assert (proposal.timed_out, proposal.unreached, proposal.settled) == (True, {"n1", "n2"}, False)


def test_equal_nodes_are_simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [a_node(f"n{index}", pods=[a_pod(f"p{index}", cpu=3900)]) for index in range(20)]
    world = a_world(*nodes, pools=[a_pool(requirements=ON_DEMAND)])
    calls: list[Any] = []
    real = Simulator.without
    monkeypatch.setattr(
        Simulator, "without", lambda self, *args, **more: calls.append(args) or real(self, *args, **more)
    )

    proposal = SingleNode().propose(turn_of(world))

    assert len(calls) == 1
    assert {reason.code for reason in proposal.refusals.values()} == {BlockCode.NOT_CHEAPER}
    assert len(proposal.refusals) == 20


def test_no_more_nodes_go_at_once_than_the_budget_leaves() -> None:
    nodes = [a_node(f"n{index}", pods=[a_pod(f"p{index}", cpu=100)]) for index in range(10)]
    world = a_world(*nodes, pools=[a_pool(disruption={"budgets": [{"nodes": "3"}]})])

    (command,) = MultiNode().propose(turn_of(world)).commands

    assert len(command.candidates) == 3

"""Which nodes may be disrupted, and the first rule that forbids it (spec core/disruption §3, §4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from controller.disruption.candidates import pool_counts, survey
from controller.disruption.reasons import BlockCode
from framework.api import labels
from tests.controller.disruption.builders import a_budget, a_node, a_pod, a_pool, a_world

DO_NOT_DISRUPT = {labels.DO_NOT_DISRUPT: "true"}
WEB = {"app": "web"}


def test_an_ordinary_node_is_a_candidate_with_price_pods_and_cost() -> None:
    world = a_world(a_node(pods=[a_pod(), a_pod("agent", owner="DaemonSet")]))

    (candidate,) = survey(world).candidates

    assert (candidate.name, candidate.price, candidate.disruption_cost) == ("n1", 0.2, 2.0)
    assert [pod.name for pod in candidate.pods] == ["web-0"]


@pytest.mark.parametrize(
    ("node", "world", "code"),
    [
        ({}, {"busy": frozenset({"claim-n1"})}, BlockCode.IN_COMMAND),
        ({"node_name": None}, {}, BlockCode.NO_NODE),
        ({"initialized": False}, {}, BlockCode.NOT_INITIALIZED),
        ({"marked_for_deletion": True}, {}, BlockCode.MARKED_FOR_DELETION),
        ({"nominated": True}, {}, BlockCode.NOMINATED),
        ({"annotations": DO_NOT_DISRUPT}, {}, BlockCode.NODE_DO_NOT_DISRUPT),
        ({"pool": ""}, {}, BlockCode.NO_POOL_LABEL),
        ({"pool": "gone"}, {}, BlockCode.POOL_NOT_FOUND),
        ({}, {"types": {}}, BlockCode.POOL_WITHOUT_TYPES),
        ({"claim_name": None, "managed": False}, {}, BlockCode.UNMANAGED),
    ],
    ids=lambda value: str(value) if isinstance(value, BlockCode) else "",
)
def test_each_rule_about_the_node_blocks_it(
    node: Mapping[str, Any], world: Mapping[str, Any], code: BlockCode
) -> None:
    found = survey(a_world(a_node(**node), **world))

    assert [each.reason.code for each in found.blocked] == [code]
    assert found.candidates == ()


@pytest.mark.parametrize(
    ("pod", "budgets", "code"),
    [
        (a_pod(annotations=DO_NOT_DISRUPT), [], BlockCode.POD_DO_NOT_DISRUPT),
        (a_pod(annotations=DO_NOT_DISRUPT, owner="DaemonSet"), [], BlockCode.POD_DO_NOT_DISRUPT),
        (a_pod(labels=WEB), [a_budget(allowed=0)], BlockCode.POD_DISRUPTION_BUDGET),
        (a_pod(labels=WEB), [a_budget("p1"), a_budget("p2")], BlockCode.SEVERAL_BUDGETS),
    ],
    ids=["do-not-disrupt", "do-not-disrupt on a daemon", "used-up budget", "two budgets"],
)
def test_pods_block_graceful_methods_and_a_grace_period_waives_it_for_drift(
    pod: Any, budgets: Any, code: BlockCode
) -> None:
    bare = survey(a_world(a_node(pods=[pod]), pdbs=tuple(budgets)))
    graced = survey(a_world(a_node(pods=[pod], claim={"terminationGracePeriod": "1h"}), pdbs=tuple(budgets)))

    assert [each.reason.code for each in bare.blocked] == [code]
    assert bare.eventual == ()
    assert graced.candidates == ()
    assert [each.name for each in graced.eventual] == ["n1"]


@pytest.mark.parametrize(
    ("pod", "budget"),
    [
        (a_pod(annotations=DO_NOT_DISRUPT, phase="Succeeded"), a_budget(allowed=0)),
        (a_pod(labels=WEB), a_budget(allowed=1)),
        (
            a_pod(labels=WEB, ready=False),
            a_budget(allowed=0, unhealthyPodEvictionPolicy="AlwaysAllow"),
        ),
        (a_pod(labels={"app": "other"}), a_budget(allowed=0)),
    ],
    ids=["ended pod", "budget with room", "unhealthy pod of a lenient budget", "budget of other pods"],
)
def test_pods_that_can_go_do_not_block(pod: Any, budget: Any) -> None:
    assert len(survey(a_world(a_node(pods=[pod]), pdbs=(budget,))).candidates) == 1


def test_two_budgets_on_one_pod_are_both_named() -> None:
    world = a_world(a_node(pods=[a_pod(labels=WEB)]), pdbs=(a_budget("p1"), a_budget("p2")))

    (only,) = survey(world).blocked

    assert only.reason.text == (
        "pod default/web-0 is selected by several PodDisruptionBudgets (default/p1, default/p2), so it cannot"
        " be evicted"
    )


def test_budgets_count_initialized_nodes_and_those_not_ready_or_going() -> None:
    world = a_world(
        a_node("n1"),
        a_node("n2", ready=False),
        a_node("n3", marked_for_deletion=True),
        a_node("n4", initialized=False),
        a_node("n5", conditions=["InstanceTerminating"]),
        a_node("n6", pool="other"),
        pools=(a_pool(), a_pool("other")),
    )

    counts = pool_counts(world)

    assert (counts["default"].nodes, counts["default"].disrupting) == (3, 2)
    assert (counts["other"].nodes, counts["other"].disrupting) == (1, 0)

"""The loop from decision to command: waiting, validation, leftovers (spec core/disruption §1, §14, §15)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from controller.kube import kinds
from framework.api import labels
from tests.controller.disruption.fakes import Stage, a_pair, wire_pod, wire_pool

TAINT = {"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"}


async def decide(stage: Stage, *, during: object = None) -> timedelta | None:
    """Run one pass of the loop, its wait included; `during` is put into the cluster while it waits."""
    turn = asyncio.create_task(stage.pass_loop())
    await stage.clock.advance(14)
    if isinstance(during, dict):
        stage.api.put(kinds.POD, during)
    await stage.clock.advance(2)
    return await turn


async def test_an_empty_node_goes_after_the_wait_and_a_last_look() -> None:
    stage = Stage(wire_pool(), *a_pair("n1"), *a_pair("n2"), wire_pod("web-0", node="n2"))

    after = await decide(stage)

    assert after == timedelta()
    assert stage.taints("n1") == [labels.DISRUPTED_TAINT]
    assert (stage.condition("claim-n1", "DisruptionReason") or {})["reason"] == "Empty"
    assert not stage.deleting("claim-n1")
    await stage.tick_queue()
    assert stage.deleting("claim-n1")
    assert not stage.deleting("claim-n2")
    assert "DisruptionTerminating" in stage.events.reasons("n1")


async def test_nothing_is_marked_while_a_decision_waits_for_validation() -> None:
    stage = Stage(wire_pool(), *a_pair("n1"))

    turn = asyncio.create_task(stage.pass_loop())
    await stage.clock.advance(14)

    assert stage.taints("n1") == []
    assert not turn.done()
    await stage.clock.advance(2)
    await turn


async def test_a_protected_pod_that_lands_during_the_wait_voids_the_command() -> None:
    stage = Stage(wire_pool(), *a_pair("n1"))
    job = wire_pod("job", node="n1", annotations={labels.DO_NOT_DISRUPT: "true"})

    await decide(stage, during=job)

    assert stage.taints("n1") == []
    assert not stage.deleting("claim-n1")
    (decision,) = stage.disruption.decisions.all()
    assert (decision.outcome, decision.command.nodes) == ("Rejected", ("n1",))
    assert "ConsolidationRejected" in stage.events.reasons("claim-n1")


async def test_a_pod_bound_between_validation_and_taint_voids_the_command() -> None:
    stage = Stage(wire_pool(), *a_pair("n1"))
    await decide(stage)

    stage.api.put(kinds.POD, wire_pod("late", node="n1"))
    await stage.tick_queue()

    assert stage.taints("n1") == []
    assert stage.condition("claim-n1", "DisruptionReason") is None
    assert not stage.deleting("claim-n1")
    assert stage.disruption.decisions.all()[-1].outcome == "Abandoned"


async def test_no_more_empty_nodes_go_than_the_budget_allows() -> None:
    nodes = [obj for index in range(4) for obj in a_pair(f"n{index}")]
    stage = Stage(wire_pool(disruption={"budgets": [{"nodes": "2"}]}), *nodes)

    await decide(stage)
    await stage.tick_queue()

    assert sum(stage.deleting(f"claim-n{index}") for index in range(4)) == 2


async def test_taints_and_conditions_that_no_command_owns_are_taken_off() -> None:
    stage = Stage(
        wire_pool(disruption={"consolidateAfter": "Never"}),
        *a_pair("n1", taints=[TAINT], conditions=["DisruptionReason"]),
    )

    await stage.pass_loop()

    assert stage.taints("n1") == []
    assert stage.condition("claim-n1", "DisruptionReason") is None


async def test_an_unsynced_mirror_stops_everything_for_a_second() -> None:
    claim, node = a_pair("n1")
    del claim["status"]["providerID"]
    stage = Stage(wire_pool(), claim, node)

    assert await stage.pass_loop() == timedelta(seconds=1)


async def test_an_unchanged_cluster_is_not_judged_again() -> None:
    pool = wire_pool(disruption={"consolidationPolicy": "WhenEmpty"})
    stage = Stage(pool, *a_pair("n1"), wire_pod("web-0", node="n1"))

    first = await stage.pass_loop()
    evaluations = stage.metrics.disruption.evaluation.labels(reason="empty", consolidation_type="empty")
    before = evaluations._sum.get()
    second = await stage.pass_loop()

    assert first == second == timedelta(seconds=10)
    assert evaluations._sum.get() == before


async def test_a_node_whose_pool_has_no_types_says_why_it_stays() -> None:
    stage = Stage(wire_pool(), *a_pair("n1"))
    stage.types = ()

    await stage.pass_loop()

    assert stage.events.messages("DisruptionBlocked") == [
        "The instance types of NodePool default could not be listed"
    ] * len(stage.events.messages("DisruptionBlocked"))
    assert stage.events.messages("DisruptionBlocked")

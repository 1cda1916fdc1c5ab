"""Commands under way: replacements, waiting, success, roll-back (spec core/disruption §15, §16, §22)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from controller.disruption.queue import CommandAborted, command_timeout
from controller.kube import Unavailable, kinds
from framework.api import labels
from tests.controller.disruption.fakes import Stage, a_pair, wire_pod, wire_pool

DRIFTED = ["Drifted"]


async def a_replacement() -> Stage:
    """Return a stage on which a drifted node is being replaced."""
    stage = Stage(wire_pool(), *a_pair("n1", conditions=DRIFTED), wire_pod("web-0", node="n1", cpu="3"))
    assert await stage.pass_loop() == timedelta()
    return stage


async def test_the_old_node_stays_until_the_new_one_is_initialized() -> None:
    stage = await a_replacement()
    ((new, reason),) = stage.launcher.launched

    for _ in range(5):
        await stage.tick_queue()
    waiting = stage.deleting("claim-n1")
    stage.set_condition(new, "Initialized")
    await stage.tick_queue()

    assert (reason, waiting) == ("drifted", False)
    assert stage.deleting("claim-n1")
    assert stage.events.reasons(new)[:2] == ["DisruptionLaunching", "DisruptionWaitingReadiness"]
    assert stage.disruption.decisions.all()[-1].replaced_by == (new,)


async def test_the_mirror_marks_the_node_only_once_its_replacement_exists() -> None:
    stage = Stage(wire_pool(), *a_pair("n1", conditions=DRIFTED), wire_pod("web-0", node="n1", cpu="3"))
    marked: list[bool] = []
    launch = stage.launcher.launch_static

    async def watched(*args: object, **more: object) -> str:
        marked.append(stage.mirror.state_nodes()[0].marked_for_deletion)
        return await launch(*args, **more)  # type: ignore[arg-type]

    stage.launcher.launch_static = watched  # type: ignore[method-assign]
    await stage.pass_loop()

    assert marked == [False]
    assert next(node for node in stage.mirror.state_nodes() if node.name == "n1").marked_for_deletion


async def test_a_replacement_that_goes_takes_taint_condition_and_mark_with_it() -> None:
    stage = await a_replacement()
    ((new, _),) = stage.launcher.launched

    stage.api.drop(kinds.NODECLAIM, new)
    await stage.tick_queue()

    assert stage.taints("n1") == []
    assert stage.condition("claim-n1", "DisruptionReason") is None
    assert not stage.mirror.state_nodes()[0].marked_for_deletion
    assert stage.disruption.queue.busy == frozenset()
    (message,) = set(stage.events.messages("DisruptionBlocked"))
    assert message == (
        "Disruption for Drifted given up: NodeClaim/default-new-0: replacement NodeClaim default-new-0 is"
        " gone: no capacity, or it did not come up"
    )


async def test_a_pool_deleted_in_mid_command_gives_the_command_up() -> None:
    stage = await a_replacement()
    ((new, _),) = stage.launcher.launched

    stage.api.drop(kinds.NODEPOOL, "default")
    await stage.api.delete(kinds.NODECLAIM, new)
    await stage.tick_queue()

    assert stage.taints("n1") == []
    assert not stage.deleting("claim-n1")
    assert stage.disruption.decisions.all()[-1].outcome == "Abandoned"


async def test_a_command_that_takes_too_long_is_given_up_and_its_replacement_stays() -> None:
    stage = await a_replacement()
    ((new, _),) = stage.launcher.launched

    await stage.tick_queue(601)

    assert stage.taints("n1") == []
    assert not stage.deleting("claim-n1")
    assert not stage.deleting(new)


async def test_a_replacement_that_cannot_be_created_aborts_and_the_next_pass_cleans_up() -> None:
    stage = Stage(wire_pool(), *a_pair("n1", conditions=DRIFTED), wire_pod("web-0", node="n1", cpu="3"))
    stage.launcher.fails = Unavailable("create nodeclaims", "down")

    with pytest.raises(CommandAborted, match="replacement could not be created"):
        await stage.pass_loop()
    tainted = stage.taints("n1")
    stage.api.refused[("get", "n1")] = Unavailable("get nodes n1", "down")
    with pytest.raises(Unavailable):
        await stage.pass_loop()
    stage.api.refused.clear()
    stage.launcher.fails = None
    stage.api.put(kinds.NODEPOOL, wire_pool(disruption={"budgets": [{"nodes": "0"}]}))
    await stage.pass_loop()

    assert tainted == [labels.DISRUPTED_TAINT]
    assert stage.taints("n1") == []
    assert not stage.deleting("claim-n1")


async def test_a_node_that_cannot_be_tainted_is_left_out_of_a_removal() -> None:
    stage = Stage(wire_pool(), *a_pair("n1"), *a_pair("n2"))
    stage.api.refused[("patch", "n1")] = Unavailable("patch nodes n1", "down")

    turn = asyncio.create_task(stage.pass_loop())
    await stage.clock.advance(16)
    await turn
    await stage.tick_queue()

    assert (stage.deleting("claim-n1"), stage.deleting("claim-n2")) == (False, True)


async def test_a_deletion_that_fails_is_tried_again() -> None:
    stage = await a_replacement()
    ((new, _),) = stage.launcher.launched
    stage.set_condition(new, "Initialized")
    stage.api.refused[("delete", "claim-n1")] = Unavailable("delete nodeclaims claim-n1", "down")

    await stage.tick_queue()
    first = stage.deleting("claim-n1")
    stage.api.refused.clear()
    await stage.tick_queue()

    assert (first, stage.deleting("claim-n1")) == (False, True)


async def test_a_second_command_for_the_same_node_is_refused() -> None:
    stage = await a_replacement()

    assert await stage.pass_loop() == timedelta(seconds=10)
    assert len(stage.launcher.launched) == 1


async def test_where_pods_are_to_go_is_told_and_kept_from_disruption() -> None:
    stage = Stage(
        wire_pool(),
        *a_pair("n1", conditions=DRIFTED),
        *a_pair("n2"),
        wire_pod("web-0", node="n1"),
        wire_pod("web-1", node="n2"),
    )

    await stage.pass_loop()

    assert stage.events.messages("Nominated") == ["Pod should schedule on: nodeclaim/claim-n2, node/n2"]
    assert {node.name: node.nominated for node in stage.mirror.snapshot(stage.clock.now()).nodes} == {
        "n1": False,
        "n2": True,
    }


@pytest.mark.parametrize(
    ("candidates", "timeout"),
    [(5, timedelta(minutes=10)), (10_000, timedelta(seconds=800)), (100_000, timedelta(hours=1))],
)
def test_the_timeout_grows_with_the_queue(candidates: int, timeout: timedelta) -> None:
    assert command_timeout(candidates) == timeout

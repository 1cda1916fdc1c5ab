"""How many requests a thousand claims cost, and that the loop is not held up (issue 6, Reach)."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from controller.cloud.provider import NodeClaimNotFound
from framework.api import labels
from tests.controller.cloud.aws.builders import a_claim, a_node_class, a_shape
from tests.controller.cloud.aws.scene import Scene

CLAIMS, KINDS = 1000, 50
ON_DEMAND = (labels.CAPACITY_TYPE, ["on-demand"])


@pytest.fixture
def scene() -> Scene:
    return many(80)


def many(types: int) -> Scene:
    """Return a scene with so many types, all of one shape."""
    return Scene([attrs.evolve(a_shape("m5.large"), name=f"m5.x{number}") for number in range(types)])


async def test_a_thousand_equal_claims_cost_a_handful_of_fleet_requests(scene: Scene) -> None:
    await scene.resolve()
    found = await scene.launch_all(a_claim(f"web-{number}", ON_DEMAND) for number in range(CLAIMS))

    assert len(set(found)) == CLAIMS
    assert len(scene.account.asked("CreateFleet")) <= 20


async def test_a_thousand_claims_of_fifty_kinds_cost_a_request_or_two_per_kind(scene: Scene) -> None:
    await scene.resolve()
    found = await scene.launch_all(
        a_claim(f"web-{number}", ON_DEMAND, (labels.INSTANCE_TYPE, [f"m5.x{number % KINDS}"]))
        for number in range(CLAIMS)
    )

    assert len(set(found)) == CLAIMS
    assert len(scene.account.asked("CreateFleet")) <= 2 * KINDS


async def test_a_thousand_instances_are_read_and_ended_in_ten_requests_a_round(scene: Scene) -> None:
    await scene.resolve()
    ids = await scene.launch_all(a_claim(f"web-{number}", ON_DEMAND) for number in range(CLAIMS))
    provider = scene.operator.provider

    read = await scene.wait(provider.get(each) for each in ids)
    reads = len(scene.account.asked("DescribeInstances"))
    await scene.wait(provider.delete(each) for each in ids)
    rounds = (
        len(scene.account.asked("DescribeInstances")) - reads,
        len(scene.account.asked("TerminateInstances")),
    )

    assert [each for each in read if isinstance(each, BaseException)] == []
    assert reads <= 10
    assert max(rounds) <= 10
    gone = await scene.wait([provider.delete(ids[0])])
    assert isinstance(gone[0], NodeClaimNotFound)


async def test_a_few_that_are_gone_do_not_make_the_others_be_asked_for_one_by_one(scene: Scene) -> None:
    await scene.resolve()
    ids = await scene.launch_all(a_claim(f"web-{number}", ON_DEMAND) for number in range(CLAIMS))
    provider = scene.operator.provider
    for identifier in list(scene.account.instances)[::100]:
        del scene.account.instances[identifier]
    scene.account.calls.clear()

    found = await scene.wait(provider.get(each) for each in ids)
    reads = len(scene.account.asked("DescribeInstances"))
    await scene.wait(provider.delete(each) for each in ids)

    assert sum(isinstance(each, NodeClaimNotFound) for each in found) == 10
    assert reads <= 10
    assert len(scene.account.calls) - reads <= 20
    assert scene.account.instances == {}


async def test_an_instance_counts_as_gone_once_terminated_or_unknown_for_ten_seconds(scene: Scene) -> None:
    await scene.resolve()
    ended, lost = await scene.launch_all([a_claim("a", ON_DEMAND), a_claim("b", ON_DEMAND)])
    await scene.clock.advance(120)
    provider = scene.operator.provider
    del scene.account.instances[lost.rpartition("/")[2]]

    first = await scene.wait([provider.delete(ended), provider.delete(lost)])
    again = [*await scene.wait([provider.delete(ended)]), *await scene.wait([provider.delete(lost)])]
    await scene.clock.advance(10)
    late = await scene.wait([provider.delete(lost)])

    assert first == [None, None]
    assert isinstance(again[0], NodeClaimNotFound)
    assert again[1] is None
    assert isinstance(late[0], NodeClaimNotFound)


async def test_others_get_their_turn_while_a_class_is_worked_out() -> None:
    scene = many(900)
    await scene.operator.parts.catalogue.refresh()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await scene.operator.parts.types.prepare(a_node_class())
    seen = turns
    counting.cancel()

    assert seen >= 900 / 50
    assert len(scene.operator.parts.types.resolve(a_node_class())) == 900


async def test_types_are_the_same_objects_as_long_as_they_are_asked_for(scene: Scene) -> None:
    await scene.operator.parts.catalogue.refresh()
    types, node_class = scene.operator.parts.types, a_node_class()
    first = types.resolve(node_class)

    for _ in range(4):
        await scene.clock.advance(200)
        assert types.resolve(node_class) is first

"""Launches in a row that never register pause their pool (issue 7: registration health with a breaker)."""

from __future__ import annotations

import pytest

from controller.cloud.provider import CloudError
from controller.kube import kinds
from controller.nodeclaims.health import PAUSED
from controller.nodeclaims.launch import LaunchFailed
from tests.controller.fakes.objects import a_claim, a_node, a_node_class
from tests.controller.fakes.world import World


@pytest.fixture
async def world() -> World:
    world = World()
    await world.run("nodepool.registrationhealth", "default")
    return world


async def launch(world: World, *names: str) -> None:
    uid = world.api.read(kinds.NODEPOOL, "default")["metadata"]["uid"]
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default", "uid": uid}
    for name in names:
        world.api.put(kinds.NODECLAIM, a_claim(name, metadata={"ownerReferences": [owner]}))
        await world.lifecycle(name)


async def fail(world: World, *names: str) -> None:
    """Launch claims whose nodes never join, and let their time pass."""
    await launch(world, *names)
    await world.clock.advance(901)
    for name in names:
        await world.lifecycle(name)


async def join(world: World, name: str, node: str) -> None:
    world.api.put(kinds.NODE, a_node(node, world.claim(name)["status"]["providerID"]))
    await world.lifecycle(name)


def paused(world: World) -> str:
    """Return the message of the condition, empty without one."""
    conditions = world.api.read(kinds.NODEPOOL, "default")["status"]["conditions"]
    return next((c["message"] for c in conditions if c["type"] == PAUSED and c["status"] == "True"), "")


async def test_four_launches_in_a_row_that_never_register_pause_the_pool(world: World) -> None:
    await fail(world, "a", "b", "c")
    three = paused(world)
    await fail(world, "d")

    assert three == ""
    assert paused(world).startswith("4 launches in a row did not register, NodeClaim d the last; ")
    assert PAUSED in world.events.reasons()


async def test_a_launch_that_registers_resumes_the_pool(world: World) -> None:
    await fail(world, "a", "b", "c", "d")
    await launch(world, "e")

    await join(world, "e", "node-e")

    assert paused(world) == ""


async def test_a_success_in_between_starts_the_count_anew(world: World) -> None:
    await fail(world, "a", "b", "c")
    await launch(world, "e")
    await join(world, "e", "node-e")

    await fail(world, "d", "f", "g")

    assert paused(world) == ""


async def test_failures_among_nodes_that_joined_are_bad_luck(world: World) -> None:
    await launch(world, "a", "b", "c", "d")
    await world.clock.advance(60)
    await launch(world, "e")
    await join(world, "e", "node-e")
    await world.clock.advance(841)

    for name in ("a", "b", "c", "d"):
        await world.lifecycle(name)

    assert paused(world) == ""


async def test_launches_that_fail_in_the_cloud_do_not_pause(world: World) -> None:
    world.cloud.failures = [CloudError("no")] * 8
    names = ("a", "b", "c", "d")
    for name in names:
        with pytest.raises(LaunchFailed):
            await launch(world, name)
    await world.clock.advance(301)

    for name in names:
        await world.lifecycle(name)

    assert paused(world) == ""
    assert all("deletionTimestamp" in world.claim(name)["metadata"] for name in names)


async def test_a_new_node_class_resumes_the_pool(world: World) -> None:
    await fail(world, "a", "b", "c", "d")
    world.api.remove(kinds.EC2NODECLASS, "default")
    world.api.put(kinds.EC2NODECLASS, a_node_class() | {"metadata": {"name": "default", "generation": 2}})

    await world.run("nodepool.registrationhealth", "default")

    assert paused(world) == ""

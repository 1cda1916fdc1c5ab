"""SchedulingConfigs say whom they govern, and why not (design: SchedulingConfig)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.kube import Change, Key, kinds
from tests.controller.fakes.objects import CLASS, a_pool
from tests.controller.fakes.world import World, ago


def a_config(name: str, *, age: int = 0, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "creationTimestamp": ago(age)},
        "spec": {"nodeClassRef": CLASS, **spec},
    }


async def judged(world: World, name: str) -> tuple[list[str], str, str, str]:
    """Governed pools; status, reason and message of Ready."""
    await world.run("schedulingconfig", name)
    status = world.api.read(kinds.SCHEDULINGCONFIG, name)["status"]
    (ready,) = status["conditions"]
    return status.get("nodePools", []), ready["status"], ready["reason"], ready["message"]


@pytest.fixture
def world() -> World:
    world = World()
    world.api.put(kinds.NODEPOOL, a_pool("gpu") | {"metadata": {"name": "gpu", "labels": {"team": "ml"}}})
    return world


async def test_a_config_governs_the_pools_of_its_class(world: World) -> None:
    world.api.put(kinds.SCHEDULINGCONFIG, a_config("all"))

    assert await judged(world, "all") == (["default", "gpu"], "True", "Ready", "")


async def test_of_two_configs_the_older_governs_and_the_other_says_so(world: World) -> None:
    world.api.put(
        kinds.SCHEDULINGCONFIG, a_config("old", age=60, nodePoolSelector={"matchLabels": {"team": "ml"}})
    )
    world.api.put(kinds.SCHEDULINGCONFIG, a_config("young"))

    assert await judged(world, "old") == (["gpu"], "True", "Ready", "")
    text = "the older SchedulingConfig old governs NodePool gpu"
    assert await judged(world, "young") == (["default"], "False", "Conflict", text)


async def test_a_conflict_ends_with_the_other_config(world: World) -> None:
    world.api.put(kinds.SCHEDULINGCONFIG, a_config("old", age=60))
    world.api.put(kinds.SCHEDULINGCONFIG, a_config("young"))
    await world.run("schedulingconfig", "young")
    gone = world.mirror.scheduling_configs["old"]
    world.api.remove(kinds.SCHEDULINGCONFIG, "old")

    woken = world.wakes("schedulingconfig", Change(kinds.SCHEDULINGCONFIG, gone, None))

    assert woken == [Key(name="young")]
    assert (await judged(world, "young"))[1:3] == ("True", "Ready")


async def test_a_config_that_governs_nothing_says_why(world: World) -> None:
    world.api.put(kinds.SCHEDULINGCONFIG, a_config("none", nodePoolSelector={"matchLabels": {"team": "x"}}))

    text = "no NodePool names EC2NodeClass default and is selected"
    assert await judged(world, "none") == ([], "True", "Ready", text)


async def test_a_schedule_that_cannot_be_read_is_named(world: World) -> None:
    entry = {
        "name": "day",
        "replicas": 1,
        "podTemplate": {"resources": {"requests": {"cpu": "1"}}},
        "schedule": "0 25 * * *",
        "duration": "1h",
    }
    world.api.put(kinds.SCHEDULINGCONFIG, a_config("bad", headroom=[entry]))

    _, status, reason, message = await judged(world, "bad")

    assert (status, reason) == ("False", "ScheduleInvalid")
    assert message.startswith("spec.headroom[day].schedule: ")


async def test_judging_twice_writes_once(world: World) -> None:
    world.api.put(kinds.SCHEDULINGCONFIG, a_config("all"))
    await world.run("schedulingconfig", "all")
    before = len(world.api.calls)

    await world.run("schedulingconfig", "all")

    assert len(world.api.calls) == before

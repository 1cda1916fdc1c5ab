"""Instances that EC2 finds unwell have their claims ended (spec aws/interruption §5)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest

from controller.cloud.aws.errors import AwsDenied
from controller.cloud.aws.gateway import Filter
from controller.cloud.aws.gateway.records import StatusRecord
from controller.interruption.statuses import InstanceStatusReconciler, build_statuses
from controller.kube import SINGLETON, kinds
from framework.api import labels
from tests.controller.fakes.objects import a_claim
from tests.controller.fakes.world import World

NAME = "default-abcde"


@attrs.define
class FakeChecks:
    """Answers each of the three questions with its own records."""

    instance: list[StatusRecord] = attrs.Factory(list)
    system: list[StatusRecord] = attrs.Factory(list)
    events: list[StatusRecord] = attrs.Factory(list)
    asked: int = 0
    denied: bool = False

    async def statuses(self, filters: tuple[Filter, ...]) -> list[StatusRecord]:
        self.asked += 1
        if self.denied:
            raise AwsDenied("ec2:DescribeInstanceStatus", "UnauthorizedOperation", "no")
        by_name = {"instance-status.status": self.instance, "system-status.status": self.system}
        return by_name.get(filters[0].name, self.events)


class Scene:
    def __init__(self) -> None:
        self.world = World()
        self.checks = FakeChecks()
        (spec,) = build_statuses(self.checks, self.world.shell)  # type: ignore[arg-type]  # a double
        assert isinstance(spec.reconciler, InstanceStatusReconciler)
        self.reconciler = spec.reconciler
        self.world.api.put(
            kinds.NODECLAIM, a_claim(status={"providerID": "aws:///eu-west-2a/i-1", "nodeName": "n1"})
        )

    async def look(self) -> timedelta | None:
        return (await self.reconciler.reconcile(SINGLETON)).after

    def ago(self, seconds: float) -> datetime:
        return self.world.clock.now() - timedelta(seconds=seconds)

    @property
    def metadata(self) -> dict[str, Any]:
        return self.world.claim(NAME)["metadata"]

    @property
    def going(self) -> bool:
        return "deletionTimestamp" in self.metadata

    def counted(self, category: str) -> float | None:
        return self.world.metrics.registry.get_sample_value(
            "karpenter_interruption_instance_status_unhealthy_total", {"category": category}
        )


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("category", ["instance", "system"])
async def test_two_minutes_of_a_failed_check_end_the_node_without_waiting(
    scene: Scene, category: str
) -> None:
    failed = {f"{category}_failures": (scene.ago(119),)}
    setattr(scene.checks, category, [StatusRecord(id="i-1", **failed)])

    await scene.look()
    early = scene.going
    await scene.world.clock.advance(1)
    await scene.look()

    assert not early
    assert scene.going
    assert scene.metadata["annotations"][labels.TERMINATION_TIMESTAMP] == "2026-01-01T12:00:01Z"
    assert scene.world.events.reasons() == ["InstanceUnhealthy"]


async def test_a_scheduled_event_ends_the_node_in_the_ordinary_way(scene: Scene) -> None:
    scene.checks.events = [StatusRecord(id="i-1", events=("instance-retirement",))]

    await scene.look()

    assert scene.going
    assert labels.TERMINATION_TIMESTAMP not in scene.metadata.get("annotations", {})
    assert "instance-retirement" in scene.world.events.seen[0].message


async def test_trouble_is_counted_once_until_it_is_over(scene: Scene) -> None:
    ill = [StatusRecord(id="i-1", system_failures=(scene.ago(500),))]
    for found in (ill, ill, [], ill):
        scene.checks.system = found
        await scene.look()

    assert scene.counted("system_status") == 2


async def test_instances_of_others_are_nobodys_business(scene: Scene) -> None:
    scene.checks.instance = [StatusRecord(id="i-9", instance_failures=(scene.ago(500),))]

    await scene.look()

    assert not scene.going
    assert scene.counted("instance_status") is None


async def test_without_the_right_it_says_so_once_and_stops_asking(scene: Scene) -> None:
    scene.checks.denied = True

    after = await scene.look()

    assert after is not None
    assert after > timedelta(days=30)
    assert scene.checks.asked == 1

"""Events: de-duplication, rates, what is written."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from controller.clock import FakeClock
from controller.kube import Event, EventType, Forbidden, ObjectRef, Recorder, kinds
from tests.controller.fakes.api import FakeApi

POD = ObjectRef(kind=kinds.POD, name="web-0", namespace="shop", uid="u1")


class Desk:
    def __init__(self) -> None:
        self.clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.api = FakeApi(self.clock)
        client: Any = self.api
        self.recorder = Recorder(client, clock=self.clock, random=Random(0))  # noqa: S311
        self.task = asyncio.ensure_future(self.recorder.run())

    async def written(self) -> list[dict[str, Any]]:
        await self.clock.advance(0)
        return [obj for place, obj in self.api.objects.items() if place[0] == kinds.EVENT]


def an_event(reason: str = "FailedScheduling", **parts: Any) -> Event:
    return Event(regarding=parts.pop("regarding", POD), reason=reason, message="no room", **parts)


async def test_an_event_carries_object_source_and_text() -> None:
    desk = Desk()

    desk.recorder.publish(an_event(type=EventType.WARNING))

    (event,) = await desk.written()
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "web-0",
        "namespace": "shop",
        "uid": "u1",
    }
    assert (event["type"], event["reason"], event["source"]) == (
        "Warning",
        "FailedScheduling",
        {"component": "karpenter"},
    )
    desk.task.cancel()


async def test_the_same_event_is_written_once_in_its_time() -> None:
    desk = Desk()
    desk.recorder.publish(an_event(), an_event())
    await desk.clock.advance(121)

    desk.recorder.publish(an_event())

    assert len(await desk.written()) == 2
    desk.task.cancel()


async def test_other_values_make_another_event() -> None:
    desk = Desk()

    desk.recorder.publish(an_event(dedupe_values=("a",)), an_event(dedupe_values=("b",)))

    assert len(await desk.written()) == 2
    desk.task.cancel()


async def test_nominations_keep_to_their_rate() -> None:
    desk = Desk()
    pods = [ObjectRef(kind=kinds.POD, name=f"p{i}", namespace="shop", uid=f"u{i}") for i in range(30)]

    desk.recorder.publish(*(an_event("Nominated", regarding=pod) for pod in pods))

    assert len(await desk.written()) == 10
    desk.task.cancel()


async def test_an_event_that_cannot_be_written_does_not_stop_the_next() -> None:
    desk = Desk()
    desk.api.failures = [Forbidden("create events", "no")]
    desk.recorder.publish(an_event("A"), an_event("B", dedupe_for=timedelta()))

    assert [event["reason"] for event in await desk.written()] == ["B"]
    desk.task.cancel()

"""The loop of a controller: workers, errors, back-off, stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from controller.clock import FakeClock
from controller.kube import (
    DONE,
    Backoff,
    Change,
    Conflict,
    Controller,
    ControllerSpec,
    Key,
    Kind,
    Requeue,
    Unavailable,
    Watch,
    kinds,
)
from controller.observability import Metrics
from controller.scheduling import Pod

A = Key(name="a")


class Script:
    """Reconciles by a script: values are returned, exceptions raised; then DONE."""

    name = "script"

    def __init__(self, *answers: Requeue | Exception) -> None:
        self.answers = list(answers)
        self.keys: list[Key] = []
        self.gate: asyncio.Event | None = None
        self.working = 0
        self.most = 0

    async def reconcile(self, key: Key) -> Requeue:
        self.keys.append(key)
        self.working += 1
        self.most = max(self.most, self.working)
        if self.gate is not None:
            await self.gate.wait()
        self.working -= 1
        answer = self.answers.pop(0) if self.answers else DONE
        if isinstance(answer, Exception):
            raise answer
        return answer


class Source:
    """Changes by hand."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[Change], None]] = []

    def subscribe(self, kind: Kind, listener: Callable[[Change], None]) -> None:
        self.listeners.append(listener)


class Loop:
    def __init__(self, script: Script, workers: int = 10) -> None:
        self.clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.metrics = Metrics()
        spec = ControllerSpec(
            reconciler=script,
            watches=(Watch(kind=kinds.POD),),
            workers=workers,
            backoff=Backoff(first=timedelta(seconds=1), longest=timedelta(seconds=3)),
        )
        self.controller = Controller(spec, clock=self.clock, metrics=self.metrics, random=Random(0))  # noqa: S311
        self.stop = asyncio.Event()
        self.task = asyncio.ensure_future(self.controller.run(self.stop))

    async def end(self) -> None:
        self.stop.set()
        await asyncio.wait_for(self.task, 1)


async def test_errors_back_off_and_success_forgets_them() -> None:
    script = Script(Unavailable("get", "down"), Unavailable("get", "down"), Unavailable("get", "down"))
    loop = Loop(script)
    loop.controller.add(A)

    turns = []
    for _ in range(8):
        await loop.clock.advance(1)
        turns.append(len(script.keys))

    assert turns == [2, 2, 3, 3, 3, 4, 4, 4]
    await loop.end()


async def test_a_requeue_comes_back_in_time() -> None:
    script = Script(Requeue(timedelta(seconds=10)))
    loop = Loop(script)
    loop.controller.add(A)

    await loop.clock.advance(9)
    early = len(script.keys)
    await loop.clock.advance(2)

    assert (early, len(script.keys)) == (1, 2)
    await loop.end()


@pytest.mark.parametrize(
    ("answer", "result"),
    [(DONE, "success"), (Conflict("patch", "changed"), "requeue"), (ValueError("bug"), "error")],
    ids=["done", "conflict", "bug"],
)
async def test_results_are_counted(answer: Requeue | Exception, result: str) -> None:
    loop = Loop(Script(answer))
    loop.controller.add(A)

    await loop.clock.advance(0.1)

    labels = {"controller": "script", "result": result}
    assert loop.metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels) == 1
    await loop.end()


async def test_keys_are_worked_on_side_by_side_up_to_the_limit() -> None:
    script = Script()
    script.gate = asyncio.Event()
    loop = Loop(script, workers=3)
    for number in range(5):
        loop.controller.add(Key(name=str(number)))

    await loop.clock.advance(0)
    script.gate.set()
    await loop.clock.advance(0)

    assert (script.most, len(script.keys)) == (3, 5)
    await loop.end()


async def test_stopping_lets_the_reconcile_in_hand_finish() -> None:
    script = Script()
    script.gate = asyncio.Event()
    loop = Loop(script)
    loop.controller.add(A)
    await loop.clock.advance(0)

    loop.stop.set()
    await loop.clock.advance(0)
    waiting = loop.task.done()
    script.gate.set()
    await asyncio.wait_for(loop.task, 1)

    assert (waiting, script.working) == (False, 0)


async def test_changes_wake_the_key_of_the_object() -> None:
    script, source = Script(), Source()
    loop = Loop(script)
    loop.controller.listen(source)

    pod = Pod.from_wire({"metadata": {"name": "web-0", "namespace": "shop"}})
    source.listeners[0](Change(kinds.POD, None, pod))
    await loop.clock.advance(0)

    assert script.keys == [Key(name="web-0", namespace="shop")]
    await loop.end()

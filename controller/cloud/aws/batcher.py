"""Gathers equal requests for a moment and carries them out as one call (spec aws/launch §6.1).

Used for CreateFleet, DescribeInstances and TerminateInstances. Owns the window: it opens with the
first request of a bucket, closes after the idle time without arrivals, at the longest time, or when
full. Every caller gets its own result or its own error; a caller that gives up does not disturb the
others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Final, Generic, Protocol, TypeVar

import attrs

from controller.clock import Clock
from framework.iam.calls import Batch

__all__ = ["Batcher", "ObserveBatch", "ignore_batches"]

Request = TypeVar("Request")
Answer = TypeVar("Answer")

_TURNS: Final = 3
MAX_IN_FLIGHT: Final = 100
"""Most batches carried out at once per batcher."""


class ObserveBatch(Protocol):
    """Told about every batch that was carried out."""

    def __call__(self, batcher: str, size: int, seconds: float) -> None:
        """Count one batch; `seconds` is how long its window was open."""
        ...


def ignore_batches(batcher: str, size: int, seconds: float) -> None:
    """Observe nothing."""
    del batcher, size, seconds


@attrs.define
class _Window(Generic[Request, Answer]):
    opened: float
    last: float
    requests: list[Request] = attrs.Factory(list)
    futures: list[asyncio.Future[Answer]] = attrs.Factory(list)
    full: asyncio.Event = attrs.Factory(asyncio.Event)


class Batcher(Generic[Request, Answer]):
    """Merges requests of one kind of call.

    `execute` gets the requests of one bucket and answers one `Answer` or exception per request, in
    order; an exception that it raises goes to every caller of the batch.
    """

    def __init__(
        self,
        batch: Batch,
        bucket: Callable[[Request], Hashable],
        execute: Callable[[Sequence[Request]], Awaitable[Sequence[Answer | BaseException]]],
        clock: Clock,
        observe: ObserveBatch = ignore_batches,
    ) -> None:
        """Take the window from the call table's row."""
        self._batch = batch
        self._bucket = bucket
        self._execute = execute
        self._clock = clock
        self._observe = observe
        self._windows: dict[Hashable, _Window[Request, Answer]] = {}
        self._running = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, request: Request) -> Answer:
        """Add one request to its bucket's window and wait for its own answer."""
        key = self._bucket(request)
        now = self._clock.monotonic()
        window = self._windows.get(key)
        if window is None:
            window = _Window(opened=now, last=now)
            self._windows[key] = window
            task = asyncio.get_running_loop().create_task(self._run(key, window))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        window.requests.append(request)
        window.futures.append(future)
        window.last = now
        if len(window.requests) >= self._batch.max_items:
            self._close(key, window)
        return await future

    def _close(self, key: Hashable, window: _Window[Request, Answer]) -> None:
        if self._windows.get(key) is window:
            del self._windows[key]
        window.full.set()

    async def _run(self, key: Hashable, window: _Window[Request, Answer]) -> None:
        try:
            await self._wait(window)
            self._close(key, window)
            self._observe(self._batch.name, len(window.requests), self._clock.monotonic() - window.opened)
            async with self._running:
                answers = await self._execute(tuple(window.requests))
            for future, answer in zip(window.futures, answers, strict=True):
                _settle(future, answer)
        except BaseException as exc:
            self._close(key, window)
            for future in window.futures:
                _settle(future, exc)
            if not isinstance(exc, Exception):
                raise

    async def _wait(self, window: _Window[Request, Answer]) -> None:
        """Return when the window is full, idle or old."""
        idle, longest = self._batch.idle.total_seconds(), self._batch.longest.total_seconds()
        while not window.full.is_set():
            now = self._clock.monotonic()
            left = min(window.last + idle, window.opened + longest) - now
            if left > 0:
                await self._clock.sleep(left)
                # The loop may have been busy: whoever is about to submit gets a turn first.
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
            else:
                return


def _settle(future: asyncio.Future[Answer], answer: Answer | BaseException) -> None:
    if future.done():
        return
    if isinstance(answer, asyncio.CancelledError):
        future.cancel()
    elif isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)

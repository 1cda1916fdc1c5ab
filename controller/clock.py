"""The one place that reads time (design: time, randomness and the cloud come in as arguments).

The shell passes a `Clock` to whatever waits or stamps; tests pass `FakeClock` and move it by hand.
Never used by `controller.scheduling`, which has no clock at all.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from datetime import datetime, timedelta, timezone
from typing import Protocol

__all__ = ["Clock", "FakeClock", "SystemClock"]

UTC = timezone.utc  # noqa: UP017 - one name for the zone, re-used by callers on 3.11


class Clock(Protocol):
    """Wall time, monotonic time and sleep."""

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences mean anything."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds; negative or zero yields once."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        await asyncio.sleep(max(seconds, 0))


class FakeClock:
    """A clock that stands still until `advance` is awaited; sleepers wake in order of their deadline."""

    def __init__(self, start: datetime) -> None:
        """Start at the given aware instant; `monotonic` starts at 0."""
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """Return the faked instant."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Return the seconds advanced so far."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced that far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move forward, waking every sleeper whose deadline passes, each at its own instant."""
        target = self._elapsed + seconds
        await _settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            deadline, _, future = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, deadline)
            if not future.done():
                future.set_result(None)
            await _settle()
        self._elapsed = target


async def _settle() -> None:
    """Let every task that can run do so; 20 turns cover the longest chain of awaits in the controllers."""
    for _ in range(20):
        await asyncio.sleep(0)

"""The queue of keys behind one controller loop.

Owned by `Controller`. A key is handed to one worker at a time; asking again while it is being worked on
gives one more turn after that one. Delays go through the passed-in clock, held by one timer for all keys.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from datetime import timedelta

import attrs

from controller.clock import Clock

__all__ = ["Key", "WorkQueue"]


@attrs.frozen
class Key:
    """Names an object of a controller's kind; the namespace is None for cluster-scoped kinds."""

    name: str
    namespace: str | None = None

    def __str__(self) -> str:
        """Return `namespace/name` or `name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class WorkQueue:
    """First in, first out; each key at most once in line."""

    def __init__(self, clock: Clock) -> None:
        """Start empty."""
        self._clock = clock
        self._line: deque[Key] = deque()
        self._waiting: set[Key] = set()
        self._active: set[Key] = set()
        self._again: set[Key] = set()
        self._deadlines: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._order = itertools.count()
        self._ready = asyncio.Event()
        self._sooner = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        """Return how many keys stand in line."""
        return len(self._line)

    def add(self, key: Key) -> None:
        """Put the key in line unless it stands there already."""
        self._deadlines.pop(key, None)
        if key in self._waiting:
            return
        if key in self._active:
            self._again.add(key)
            return
        self._waiting.add(key)
        self._line.append(key)
        self._ready.set()

    def add_later(self, key: Key, after: timedelta | None) -> None:
        """Put the key in line after that time; the last wish counts, and None takes an earlier one back."""
        if key in self._waiting or key in self._active:
            return  # it gets a turn before that, which will say anew
        if after is None:
            self._deadlines.pop(key, None)
            return
        if after <= timedelta():
            self.add(key)
            return
        deadline = self._clock.monotonic() + after.total_seconds()
        self._deadlines[key] = deadline
        heapq.heappush(self._heap, (deadline, next(self._order), key))
        if self._heap[0][2] == key:
            self._sooner.set()

    async def take(self) -> Key | None:
        """Wait for a key and hand it out; None once closed. Call `finish` when its work is done."""
        while not self._line and not self._closed:
            self._ready.clear()
            await self._ready.wait()
        if self._closed:
            return None
        key = self._line.popleft()
        self._waiting.discard(key)
        self._active.add(key)
        return key

    def finish(self, key: Key) -> None:
        """Give a key back; it stands in line again if it was asked for meanwhile."""
        self._active.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Hand out nothing more."""
        self._closed = True
        self._ready.set()

    async def run_timer(self) -> None:
        """Move delayed keys into the line when their time comes; runs until cancelled."""
        while True:
            self._sooner.clear()
            self._move_due()
            if not self._heap:
                await self._sooner.wait()
                continue
            await self._sleep_until(self._heap[0][0])

    async def _sleep_until(self, deadline: float) -> None:
        """Sleep until then, or until an earlier deadline came up."""
        sleep = asyncio.ensure_future(self._clock.sleep(deadline - self._clock.monotonic()))
        sooner = asyncio.ensure_future(self._sooner.wait())
        try:
            await asyncio.wait({sleep, sooner}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            sooner.cancel()

    def _move_due(self) -> None:
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            deadline, _, key = heapq.heappop(self._heap)
            if self._deadlines.get(key) == deadline:
                self.add(key)

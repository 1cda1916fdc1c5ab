"""Gathers triggers into batches: pods that come together are planned together (spec core/scheduling §1).

Fed by the trigger reconcilers, emptied by the provisioner. Owns the set of the current batch and when each
pod was first seen; never looks at a pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta

from controller.clock import Clock

__all__ = ["Batcher"]

_PATIENCE_S = 1.0
"""How long an empty batch is waited on before the caller gets a turn."""


class Batcher:
    """A window that opens with the first trigger and closes after quiet, or after its longest time."""

    def __init__(self, clock: Clock, *, idle: timedelta, longest: timedelta) -> None:
        """Keep the times: quiet that closes a window, and its longest length."""
        self._clock = clock
        self._idle = idle.total_seconds()
        self._longest = longest.total_seconds()
        self._batch: set[str] = set()
        self._news = asyncio.Event()

    def trigger(self, uid: str) -> None:
        """Put an object into the current batch; a second time does not lengthen the window."""
        if uid not in self._batch:
            self._batch.add(uid)
            self._news.set()

    async def wait(self) -> bool:
        """Return True at the end of a window, False if nothing came within a second."""
        if not self._batch and not await self._within(self._news.wait(), _PATIENCE_S):
            return False
        opened = self._clock.monotonic()
        while (left := opened + self._longest - self._clock.monotonic()) > 0:
            self._news.clear()
            if not await self._within(self._news.wait(), min(self._idle, left)):
                break
        self._batch.clear()
        self._news.clear()
        return True

    async def _within(self, event: Awaitable[object], seconds: float) -> bool:
        """Tell whether the event came within that time by the passed-in clock."""
        news = asyncio.ensure_future(event)
        sleep = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({news, sleep}, return_when=asyncio.FIRST_COMPLETED)
            return news.done()
        finally:
            news.cancel()
            sleep.cancel()

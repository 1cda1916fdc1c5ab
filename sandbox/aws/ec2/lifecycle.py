"""Transitions that are due later: pending → running, shutting-down → terminated, and the purge after that.

Launches and terminations schedule them here; the application and the server's ticker carry out what is due.
It keeps no time itself: `due` is told the instant.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import datetime

import attrs

__all__ = ["Lifecycle"]

Action = Callable[[], None]


@attrs.define
class Lifecycle:
    """A queue of actions by instant, then by order of scheduling. Used only under the world's lock."""

    _queue: list[tuple[datetime, int, Action]] = attrs.field(factory=list)
    _order: itertools.count[int] = attrs.field(factory=itertools.count)

    def schedule(self, at: datetime, action: Action) -> None:
        """Carry the action out once `at` has come."""
        heapq.heappush(self._queue, (at, next(self._order), action))

    def advance(self, now: datetime) -> None:
        """Carry out every action that is due, in order; actions may schedule more."""
        while self._queue and self._queue[0][0] <= now:
            heapq.heappop(self._queue)[2]()

    def clear(self) -> None:
        """Forget what was scheduled."""
        self._queue.clear()

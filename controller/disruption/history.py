"""What disruption did lately, as far as it bears on what it should do next.

The queue writes the `Journal`; every `World` carries its frozen `History`. In memory only: after a
restart cooldowns and back-offs begin anew, which costs at most one move.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import attrs

from controller.disruption.command import Command
from framework.api import DisruptionReason

__all__ = ["History", "Journal", "Move"]

_REMEMBERED: Final = timedelta(hours=24)
"""How long a move counts against its opposite."""
_MOST_MOVES: Final = 10_000


@attrs.frozen(kw_only=True)
class Move:
    """Nodes of some types of a pool were replaced by one of another type."""

    at: datetime
    pool: str
    before: frozenset[str]
    """Instance types that went."""
    after: str
    """Instance type that came."""


@attrs.frozen(kw_only=True)
class History:
    """The journal at one instant."""

    last_command: Mapping[str, datetime] = attrs.field(factory=dict)
    """When the last command was started, by pool."""
    moves: tuple[Move, ...] = ()
    """The replacements of the last 24 hours, oldest first."""
    drift_failures: Mapping[str, int] = attrs.field(factory=dict)
    """Drift replacements in a row that did not come up, by pool."""
    drift_successes: Mapping[str, int] = attrs.field(factory=dict)
    """Drift replacements that came up since the pool last had nothing drifted, by pool."""

    def reversals(self, pool: str, before: frozenset[str], after: frozenset[str]) -> int:
        """Return how often the pool already went back and forth between these types (A to B to A).

        Counts earlier moves in the opposite direction: from a type that would come to one that would go.
        """
        return sum(
            1 for move in self.moves if move.pool == pool and move.after in before and move.before & after
        )


class Journal:
    """Collects what the queue reports."""

    def __init__(self) -> None:
        """Start with nothing done."""
        self._last: dict[str, datetime] = {}
        self._moves: deque[Move] = deque(maxlen=_MOST_MOVES)
        self._failures: dict[str, int] = {}
        self._successes: dict[str, int] = {}

    def started(self, command: Command, now: datetime) -> None:
        """Note that a command was started."""
        for candidate in command.candidates:
            self._last[candidate.pool.name] = now

    def completed(self, command: Command, launched: tuple[str, ...], now: datetime) -> None:
        """Note that a command was carried out; `launched` are the instance types that came."""
        pool = command.candidates[0].pool.name
        before = frozenset(candidate.type_name for candidate in command.candidates)
        for after in launched:
            self._moves.append(Move(at=now, pool=pool, before=before, after=after))
        if command.reason is DisruptionReason.DRIFTED and launched:
            self._failures.pop(pool, None)
            self._successes[pool] = self._successes.get(pool, 0) + 1

    def replacement_failed(self, command: Command) -> None:
        """Note that a replacement did not come up."""
        if command.reason is DisruptionReason.DRIFTED:
            pool = command.candidates[0].pool.name
            self._failures[pool] = self._failures.get(pool, 0) + 1

    def rollout_over(self, pool: str) -> None:
        """Note that nothing of the pool is drifted, or that there is a new target: count anew."""
        self._failures.pop(pool, None)
        self._successes.pop(pool, None)

    def history(self, now: datetime) -> History:
        """Return what still counts."""
        while self._moves and now - self._moves[0].at > _REMEMBERED:
            self._moves.popleft()
        return History(
            last_command=dict(self._last),
            moves=tuple(self._moves),
            drift_failures=dict(self._failures),
            drift_successes=dict(self._successes),
        )

"""A dictionary whose entries go stale.

Used by every look-up of the provider. Owns expiry by the monotonic clock, nothing else: no loading,
no locking (one loop), no size limit beyond dropping what is stale.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from datetime import timedelta
from typing import Generic, TypeVar

from controller.clock import Clock

__all__ = ["TtlCache"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TtlCache(Generic[K, V]):
    """Values that are forgotten after a while."""

    def __init__(self, clock: Clock, ttl: timedelta) -> None:
        """Keep every value for `ttl` unless `put` says otherwise."""
        self._clock = clock
        self._ttl = ttl.total_seconds()
        self._entries: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        """Return the value, or None when there is none or it is stale."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        until, value = entry
        if self._clock.monotonic() >= until:
            del self._entries[key]
            return None
        return value

    def put(self, key: K, value: V, ttl: timedelta | None = None) -> V:
        """Keep a value from now on, and return it."""
        span = self._ttl if ttl is None else ttl.total_seconds()
        self._entries[key] = (self._clock.monotonic() + span, value)
        return value

    def drop(self, key: K) -> None:
        """Forget a key; one that is not there is fine."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def purge(self) -> tuple[tuple[K, V], ...]:
        """Drop what is stale and return it."""
        now = self._clock.monotonic()
        stale = tuple((key, value) for key, (until, value) in self._entries.items() if now >= until)
        for key, _ in stale:
            del self._entries[key]
        return stale

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys that are not stale."""
        now = self._clock.monotonic()
        return iter([key for key, (until, _) in self._entries.items() if now < until])

"""Offerings that the cloud could not deliver just now (spec aws/instances §6).

Written by launches and by interruption, read when offerings are built. Owns the marks, their expiry
and a sequence number per instance type, by which cached offerings notice a change. An offering that
fails again soon after its mark expired is left alone twice as long, up to `LONGEST`: a pool of
capacity that stays empty for an hour is not asked for every three minutes. When a mark expires, the
offering is on probation: one claim may try it, and each that succeeds lets one more try, so that a
hundred pods do not make a hundred claims to learn that nothing has changed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs

from controller.clock import Clock
from controller.scheduling import CapacityType

__all__ = ["UnavailableOfferings"]

FIRST: Final = timedelta(minutes=3)
LONGEST: Final = timedelta(minutes=24)
FORGIVEN: Final = timedelta(minutes=10)
"""An offering that was available this long without failing starts at `FIRST` again."""


@attrs.frozen
class _Mark:
    until: float
    span: float
    successes: int = 0
    """Launches since it ran out."""


class UnavailableOfferings:
    """The marks."""

    def __init__(self, clock: Clock) -> None:
        """Start with everything available."""
        self._clock = clock
        self._offerings: dict[tuple[CapacityType, str, str], _Mark] = {}
        self._capacity_types: dict[CapacityType, float] = {}
        self._zones: dict[str, float] = {}
        self._sequences: dict[str, int] = {}
        self._sequence_all = 0
        self.version = 0
        """Changes with every mark that is set or runs out."""
        self._noticed: set[tuple[CapacityType, str, str]] = set()

    def mark(self, capacity_type: CapacityType, instance_type: str, zone: str) -> None:
        """Take one offering off the list for a while; marking again while it lasts extends it."""
        now = self._clock.monotonic()
        key = (capacity_type, instance_type, zone)
        before = self._offerings.get(key)
        span = FIRST.total_seconds()
        if before is not None and now < before.until:
            span = before.span
        elif before is not None and now < before.until + FORGIVEN.total_seconds():
            span = min(2 * before.span, LONGEST.total_seconds())
        self._offerings[key] = _Mark(now + span, span)
        self._noticed.discard(key)
        self._bump(instance_type)

    def launched(self, capacity_type: CapacityType, instance_type: str, zone: str) -> None:
        """Note that the offering delivered an instance; on probation, more may try it now."""
        key = (capacity_type, instance_type, zone)
        mark = self._offerings.get(key)
        if mark is not None and self._clock.monotonic() >= mark.until:
            self._offerings[key] = attrs.evolve(mark, successes=mark.successes + 1)
            self._bump(instance_type)

    def launches_left(self, capacity_type: CapacityType, instance_type: str, zone: str) -> int | None:
        """Return how many claims may try an offering on probation at once; None without probation."""
        mark = self._offerings.get((capacity_type, instance_type, zone))
        return None if mark is None else 1 + mark.successes

    def mark_capacity_type(self, capacity_type: CapacityType) -> None:
        """Take every offering of a capacity type off the list."""
        self._capacity_types[capacity_type] = self._clock.monotonic() + FIRST.total_seconds()
        self._sequence_all += 1
        self.version += 1

    def mark_zone(self, zone: str) -> None:
        """Take every offering of a zone off the list, for want of addresses."""
        self._zones[zone] = self._clock.monotonic() + FIRST.total_seconds()
        self._sequence_all += 1
        self.version += 1

    def contains(self, capacity_type: CapacityType, instance_type: str, zone: str) -> bool:
        """Return whether the offering is off the list now."""
        now = self._clock.monotonic()
        mark = self._offerings.get((capacity_type, instance_type, zone))
        return (
            (mark is not None and now < mark.until)
            or now < self._capacity_types.get(capacity_type, 0.0)
            or now < self._zones.get(zone, 0.0)
        )

    def sequence(self, instance_type: str) -> tuple[int, int]:
        """Return a value that differs whenever a mark that concerns the type was set or ran out."""
        return self._sequence_all, self._sequences.get(instance_type, 0)

    def expire(self) -> None:
        """Notice marks that ran out, so that sequences and version change."""
        now = self._clock.monotonic()
        for key, mark in list(self._offerings.items()):
            if now >= mark.until and key not in self._noticed:
                self._noticed.add(key)
                self._bump(key[1])
            if now >= mark.until + FORGIVEN.total_seconds():
                del self._offerings[key]
                self._noticed.discard(key)
        before = len(self._capacity_types) + len(self._zones)
        self._capacity_types = {key: until for key, until in self._capacity_types.items() if now < until}
        self._zones = {key: until for key, until in self._zones.items() if now < until}
        if len(self._capacity_types) + len(self._zones) != before:
            self._sequence_all += 1
            self.version += 1

    def _bump(self, instance_type: str) -> None:
        self._sequences[instance_type] = self._sequences.get(instance_type, 0) + 1
        self.version += 1

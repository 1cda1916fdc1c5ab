"""How many instances each capacity reservation still holds (spec aws/instances §5).

Fed by every DescribeCapacityReservations, corrected by launches and endings in between. Owns the
counts and a version that changes with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from controller.clock import Clock
from controller.cloud.aws.gateway.records import ReservationRecord
from controller.cloud.aws.ttl import TtlCache

__all__ = ["ReservedCounts"]

_TTL: Final = timedelta(hours=24)


class ReservedCounts:
    """Available instances by reservation id; an id that nobody named has none."""

    def __init__(self, clock: Clock) -> None:
        """Start without any."""
        self._counts: TtlCache[str, int] = TtlCache(clock, _TTL)
        self.version = 0

    def available(self, identifier: str) -> int:
        """Return how many more instances the reservation takes."""
        return self._counts.get(identifier) or 0

    def observe(self, records: Iterable[ReservationRecord]) -> None:
        """Take EC2's own counts."""
        for record in records:
            self._set(record.id, record.available)

    def launched(self, identifier: str) -> None:
        """Count one launch."""
        self._set(identifier, max(self.available(identifier) - 1, 0))

    def ended(self, identifier: str) -> None:
        """Count one instance that is gone."""
        self._set(identifier, self.available(identifier) + 1)

    def exhausted(self, identifier: str) -> None:
        """Believe a launch that found the reservation full."""
        self._set(identifier, 0)

    def _set(self, identifier: str, count: int) -> None:
        if self._counts.get(identifier) != count:
            self.version += 1
        self._counts.put(identifier, count)

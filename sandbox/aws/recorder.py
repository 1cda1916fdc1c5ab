"""The log of requests the sandbox answered: a ring of the last 50,000, read by tests and the demo."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import attrs

__all__ = ["RequestLog", "RequestRecord"]

CAPACITY = 50_000
"""Enough for a run with 5,000 nodes; about 25 MiB when full."""


@attrs.frozen(kw_only=True)
class RequestRecord:
    """One answered request."""

    number: int
    """Counts up from 1; ask for those after the last one seen."""
    at: str
    """Instant, ISO 8601, UTC."""
    service: str
    region: str
    action: str
    status: int
    error: str | None
    """The error code the sandbox itself answered with (faults, not modelled, internal); else None."""
    milliseconds: float
    parameters: Mapping[str, Any] = attrs.field(repr=False)


@attrs.define
class RequestLog:
    """Records in order of completion; safe to use from every thread."""

    _records: deque[RequestRecord] = attrs.field(factory=lambda: deque(maxlen=CAPACITY))
    _lock: threading.Lock = attrs.field(factory=threading.Lock)
    _count: int = 0

    def add(self, record: RequestRecord) -> None:
        """Append a record under the next number."""
        with self._lock:
            self._count += 1
            self._records.append(attrs.evolve(record, number=self._count))

    def since(self, number: int = 0, action: str | None = None) -> tuple[RequestRecord, ...]:
        """Return the records after a number, of one action if given, oldest first."""
        with self._lock:
            records = tuple(self._records)
        return tuple(r for r in records if r.number > number and action in (None, r.action))

    def clear(self) -> None:
        """Forget all records; numbers keep counting."""
        with self._lock:
            self._records.clear()

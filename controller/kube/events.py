"""Events on objects, without flooding the API server.

Every controller publishes through one `Recorder`. It owns de-duplication in memory (same reason and
values within a time, spec core/observability §2), the global rate of noisy reasons, and one background
writer, so publishing never waits. An event that cannot be written is logged and dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Any, Final

import attrs
import structlog

from controller.clock import Clock
from controller.kube.client import Client
from controller.kube.errors import KubeError
from controller.kube.kinds import EVENT, Kind
from controller.kube.ratelimit import TokenBucket

__all__ = ["Event", "EventType", "ObjectRef", "Recorder"]

_log: Final = structlog.get_logger("controller")
_COMPONENT: Final = "karpenter"
"""The source that users' event filters expect."""
_LONGEST_MESSAGE: Final = 1024
"""The API refuses longer ones."""
_MOST_PENDING: Final = 2000
"""Events waiting for the writer; beyond, the oldest is dropped."""
_SWEEP_EVERY: Final = 512
"""New dedupe entries between two sweeps of old ones."""
_RATES: Final[Mapping[str, tuple[float, int]]] = {"Nominated": (5.0, 10)}
"""Events per second and burst of reasons that come in crowds."""


class EventType(StrEnum):
    """The two types the API knows."""

    NORMAL = "Normal"
    WARNING = "Warning"


@attrs.frozen(kw_only=True)
class ObjectRef:
    """The object an event is about."""

    kind: Kind
    name: str
    namespace: str | None = None
    uid: str = ""

    @classmethod
    def of(cls, kind: Kind, metadata: Any) -> ObjectRef:
        """Return the reference of an object with that metadata."""
        return cls(kind=kind, name=metadata.name, namespace=metadata.namespace or None, uid=metadata.uid)


@attrs.frozen(kw_only=True)
class Event:
    """Something a user should see on an object."""

    regarding: ObjectRef
    reason: str
    message: str
    type: EventType = EventType.NORMAL
    dedupe_values: tuple[str, ...] = ()
    """With the reason, the key of de-duplication; empty means the object's UID."""
    dedupe_for: timedelta = timedelta(minutes=2)
    """Zero: never a duplicate."""


class Recorder:
    """Takes events and writes those that are news."""

    def __init__(self, client: Client, *, clock: Clock, random: Random) -> None:
        """Keep the arguments; `run` does the writing."""
        self._client = client
        self._clock = clock
        self._random = random
        self._until: dict[tuple[str, ...], datetime] = {}
        self._since_sweep = 0
        self._buckets = {
            reason: TokenBucket(clock, rate=rate, burst=burst) for reason, (rate, burst) in _RATES.items()
        }
        self._pending: deque[Event] = deque(maxlen=_MOST_PENDING)
        self._news = asyncio.Event()

    def publish(self, *events: Event) -> None:
        """Queue the events for writing; duplicates and those over their reason's rate are dropped."""
        for event in events:
            if self._is_news(event):
                self._pending.append(event)
                self._news.set()

    async def run(self) -> None:
        """Write queued events until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._pending:
                await self._write(self._pending.popleft())

    def _is_news(self, event: Event) -> bool:
        now = self._clock.now()
        ref = event.regarding
        values = event.dedupe_values or (ref.uid or f"{ref.namespace}/{ref.name}",)
        key = (event.reason, ref.kind.kind, *values)
        if self._until.get(key, now) > now:
            return False
        bucket = self._buckets.get(event.reason)
        if bucket is not None and not bucket.try_take():
            return False
        self._remember(key, now, now + event.dedupe_for)
        return True

    def _remember(self, key: tuple[str, ...], now: datetime, until: datetime) -> None:
        self._until[key] = until
        self._since_sweep += 1
        if self._since_sweep >= _SWEEP_EVERY:
            self._since_sweep = 0
            self._until = {old: end for old, end in self._until.items() if end > now}

    async def _write(self, event: Event) -> None:
        stamp = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        ref = event.regarding
        namespace = ref.namespace or "default"
        body = {
            "metadata": {"name": f"{ref.name}.{self._random.getrandbits(64):016x}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": ref.kind.api_version,
                "kind": ref.kind.kind,
                "name": ref.name,
                **({"namespace": ref.namespace} if ref.namespace else {}),
                **({"uid": ref.uid} if ref.uid else {}),
            },
            "type": event.type.value,
            "reason": event.reason,
            "message": event.message[:_LONGEST_MESSAGE],
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        try:
            await self._client.create(EVENT, body, namespace)
        except KubeError as exc:
            _log.info("event could not be written", reason=event.reason, object=ref.name, error=str(exc))

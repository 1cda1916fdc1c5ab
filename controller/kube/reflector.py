"""Keeps a copy of one kind current: list, watch, and list again when the watch cannot go on.

Owned by the mirror, one per kind. Handles bookmarks, streams that end or break, versions that are too
old (410), kinds that are not installed, and missing permissions; backs off with jitter. Objects go to a
`Sink` as they are on the wire; nothing is kept here but the last resource version.
"""

from __future__ import annotations

from random import Random
from typing import Final, Protocol

import structlog

from controller.clock import Clock
from controller.kube.client import Client, WireObject
from controller.kube.errors import Forbidden, Gone, KubeError, NotFound
from controller.kube.kinds import Kind

__all__ = ["Reflector", "Sink"]

_log: Final = structlog.get_logger("controller")
_FIRST_BACKOFF_S: Final = 0.2
_LONGEST_BACKOFF_S: Final = 30.0
_ABSENT_RETRY_S: Final = 5.0
"""Between two looks for a kind that is not installed or not permitted."""
_WATCH_S: Final = (300, 600)
"""Shortest and longest life of one watch, as other clients do, to spread reconnections."""


class Sink(Protocol):
    """Where the objects of one kind go."""

    def upsert(self, obj: WireObject) -> None:
        """Take an object that is new, changed or the same."""
        ...

    def remove(self, obj: WireObject) -> None:
        """Drop an object that was deleted; its last state is given."""
        ...

    def keep_only(self, uids: frozenset[str], resource_version: str) -> None:
        """Drop what a complete list at that version did not hold; the first call means: synced."""
        ...

    def heard(self, at: float) -> None:
        """Take note that the server answered, at that monotonic second."""
        ...

    def absent(self) -> None:
        """Take note that the kind is not installed: it holds nothing."""
        ...


class Reflector:
    """One kind, from the API server into a sink."""

    def __init__(self, client: Client, kind: Kind, sink: Sink, *, clock: Clock, random: Random) -> None:
        """Keep the arguments; `run` does the work."""
        self._client = client
        self._kind = kind
        self._sink = sink
        self._clock = clock
        self._random = random
        self._version = ""
        self._failures = 0

    async def run(self) -> None:
        """Follow the kind until cancelled."""
        while True:
            try:
                if not self._version:
                    self._version = await self._list()
                await self._watch()
                self._failures = 0
            except Gone:
                self._version = ""
                _log.debug("watch is too far behind; listing again", kind=self._kind.kind)
            except (NotFound, Forbidden) as exc:
                await self._absent(exc)
            except KubeError as exc:
                self._failures += 1
                _log.info("watch interrupted", kind=self._kind.kind, error=str(exc))
                await self._clock.sleep(self._backoff())

    async def _list(self) -> str:
        uids: set[str] = set()
        token = ""
        while True:
            page = await self._client.list_page(self._kind, continue_token=token)
            self._sink.heard(self._clock.monotonic())
            for item in page.items:
                uids.add(item["metadata"]["uid"])
                self._sink.upsert(item)
            token = page.continue_token
            if not token:
                self._sink.keep_only(frozenset(uids), page.resource_version)
                return page.resource_version

    async def _watch(self) -> None:
        life = self._random.randint(*_WATCH_S)
        async for event in self._client.watch(self._kind, self._version, timeout_s=life):
            obj = event["object"]
            if event["type"] == "DELETED":
                self._sink.remove(obj)
            elif event["type"] != "BOOKMARK":
                self._sink.upsert(obj)
            self._version = obj["metadata"]["resourceVersion"]
            self._sink.heard(self._clock.monotonic())
            self._failures = 0

    async def _absent(self, exc: KubeError) -> None:
        """A kind that is not served or not permitted holds nothing; look again from time to time."""
        if isinstance(exc, Forbidden):
            _log.error("permission is missing; add it to the controller's role", error=str(exc))
        else:
            _log.debug("kind is not installed", kind=self._kind.kind)
            self._sink.absent()
            self._sink.heard(self._clock.monotonic())
        self._version = ""
        await self._clock.sleep(_ABSENT_RETRY_S)

    def _backoff(self) -> float:
        """Return seconds: doubled per failure, half of it by chance."""
        factor: int = 2 ** min(self._failures - 1, 20)
        longest = min(_FIRST_BACKOFF_S * factor, _LONGEST_BACKOFF_S)
        return longest * (0.5 + self._random.random() / 2)

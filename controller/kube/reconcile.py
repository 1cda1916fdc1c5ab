"""What a controller is: a reconciler, what wakes it, and the loop that runs it.

Every controller package implements `Reconciler`; `charpente run` makes a `ControllerSpec` of each and
runs them all with `Controller`. A loop owns the queue of keys, one worker per key at a time, the
back-off after errors, the reconcile metrics and the log context; it never looks at an object.

Controllers are level-triggered: `reconcile` reads the mirror, compares, acts, says when to come back.
Running it twice, or killing it anywhere, is harmless.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from random import Random
from typing import Any, Final, Protocol

import attrs
import structlog

from controller.clock import Clock
from controller.kube.errors import Conflict, Forbidden, KubeError, NotFound
from controller.kube.kinds import Kind
from controller.kube.workqueue import Key, WorkQueue
from controller.observability.metrics import Metrics
from framework.api import CharpenteError

__all__ = [
    "DONE",
    "NOW",
    "SINGLETON",
    "Backoff",
    "Change",
    "Changes",
    "Controller",
    "ControllerSpec",
    "Key",
    "Reconciler",
    "Requeue",
    "Watch",
    "own_key",
]

_log: Final = structlog.get_logger("controller")

SINGLETON: Final = Key(name="")
"""The one key of a controller that has no object."""


@attrs.frozen
class Requeue:
    """When a controller wants the key again; `after=None`: at the next change."""

    after: timedelta | None = None

    @classmethod
    def soonest(cls, *wishes: Requeue) -> Requeue:
        """Return the earliest of several wishes."""
        spans = [wish.after for wish in wishes if wish.after is not None]
        return cls(min(spans)) if spans else DONE


DONE: Final = Requeue()
NOW: Final = Requeue(timedelta())


class Reconciler(Protocol):
    """One controller's work; `name` is its name in logs and metrics."""

    @property
    def name(self) -> str:
        """Return the controller's name (spec core/lifecycle §2)."""
        ...

    async def reconcile(self, key: Key) -> Requeue:
        """Bring what the key names closer to what it should be, and say when to come back."""
        ...


@attrs.frozen
class Change:
    """One object appeared (`old` is None), changed, or went (`new` is None); objects are the mirror's."""

    kind: Kind
    old: Any
    new: Any

    @property
    def current(self) -> Any:
        """Return the newest form known: the new object, or the last one before it went."""
        return self.old if self.new is None else self.new


class Changes(Protocol):
    """Where changes come from; the mirror in production."""

    def subscribe(self, kind: Kind, listener: Callable[[Change], None]) -> None:
        """Call the listener for every change, and at once for every object already known."""
        ...


def own_key(change: Change) -> Iterable[Key]:
    """Return the changed object's own key; pods carry their names themselves."""
    meta = getattr(change.current, "metadata", change.current)
    return (Key(name=meta.name, namespace=getattr(meta, "namespace", None)),)


@attrs.frozen(kw_only=True)
class Watch:
    """Changes of a kind that wake a controller, and the keys each one wakes."""

    kind: Kind
    keys: Callable[[Change], Iterable[Key]] = own_key


@attrs.frozen(kw_only=True)
class Backoff:
    """Waits after errors: `first`, doubled each time, at most `longest`."""

    first: timedelta = timedelta(milliseconds=100)
    longest: timedelta = timedelta(seconds=30)

    def after(self, failures: int) -> timedelta:
        """Return the wait after that many failures in a row, from 1."""
        factor: int = 2 ** min(failures - 1, 30)
        return min(self.first * factor, self.longest)


@attrs.frozen(kw_only=True)
class ControllerSpec:
    """A reconciler with all the loop needs to run it."""

    reconciler: Reconciler
    watches: tuple[Watch, ...] = ()
    workers: int = 10
    """Keys worked on at the same time."""
    backoff: Backoff = Backoff()
    wakers: tuple[Callable[[Callable[[Key], None]], None], ...] = ()
    """Called once with the way to add keys, for what wakes the controller beside changes."""
    singleton: bool = False
    """Started with the one key `SINGLETON` and no object."""


class Controller:
    """The loop of one controller."""

    def __init__(self, spec: ControllerSpec, *, clock: Clock, metrics: Metrics, random: Random) -> None:
        """Keep the arguments; nothing runs until `run`."""
        self._spec = spec
        self._name = spec.reconciler.name
        self._clock = clock
        self._metrics = metrics
        self._random = random
        self._queue = WorkQueue(clock)
        self._failures: dict[Key, int] = {}

    @property
    def name(self) -> str:
        """Return the reconciler's name."""
        return self._name

    def add(self, key: Key) -> None:
        """Ask for a reconcile of the key as soon as a worker is free."""
        self._queue.add(key)
        self._metrics.runtime.queue_depth.labels(name=self._name).set(len(self._queue))

    def listen(self, changes: Changes) -> None:
        """Subscribe to what the spec watches; known objects are queued at once."""
        for watch in self._spec.watches:
            changes.subscribe(watch.kind, self._listener(watch))
        for waker in self._spec.wakers:
            waker(self.add)
        if self._spec.singleton:
            self.add(SINGLETON)

    async def run(self, stop: asyncio.Event) -> None:
        """Reconcile keys until `stop`, then let the ones in hand finish."""
        slots = asyncio.Semaphore(self._spec.workers)
        async with asyncio.TaskGroup() as group:
            timer = group.create_task(self._queue.run_timer())
            halt = group.create_task(self._close_on(stop))
            while True:
                await slots.acquire()
                key = await self._queue.take()
                if key is None:
                    break
                group.create_task(self._work(key, slots))
            timer.cancel()
            halt.cancel()

    async def _close_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._queue.close()

    def _listener(self, watch: Watch) -> Callable[[Change], None]:
        def listener(change: Change) -> None:
            for key in watch.keys(change):
                self.add(key)

        return listener

    async def _work(self, key: Key, slots: asyncio.Semaphore) -> None:
        structlog.contextvars.bind_contextvars(
            controller=self._name,
            reconcileID=f"{self._random.getrandbits(64):016x}",
            **({"name": key.name} if key.name else {}),
            **({"namespace": key.namespace} if key.namespace else {}),
        )
        started = self._clock.monotonic()
        try:
            outcome, requeue = await self._attempt(key)
        finally:
            slots.release()
            self._queue.finish(key)
        self._metrics.runtime.observe_reconcile(self._name, outcome, self._clock.monotonic() - started)
        self._metrics.runtime.queue_depth.labels(name=self._name).set(len(self._queue))
        self._queue.add_later(key, requeue.after)

    async def _attempt(self, key: Key) -> tuple[str, Requeue]:
        """Reconcile once; return the result's name in metrics and when to come back."""
        try:
            requeue = await self._spec.reconciler.reconcile(key)
        except Conflict as exc:
            _log.debug("object changed meanwhile", error=str(exc))
            return "requeue", self._after_failure(key)
        except NotFound as exc:
            _log.debug("object went meanwhile", error=str(exc))
            return "requeue", self._after_failure(key)
        except Forbidden as exc:
            _log.error("permission is missing; add it to the controller's role", error=str(exc))
            return "error", self._after_failure(key)
        except KubeError as exc:
            _log.error("API server refused", error=str(exc))
            return "error", self._after_failure(key)
        except CharpenteError as exc:
            _log.error("reconcile failed", error=str(exc))
            return "error", self._after_failure(key)
        except Exception as exc:  # noqa: BLE001 - the top of the loop: log, count, retry
            _log.error("reconciler error", error=str(exc) or type(exc).__name__, exc_info=exc)
            return "error", self._after_failure(key)
        self._failures.pop(key, None)
        return ("success" if requeue.after is None else "requeue_after"), requeue

    def _after_failure(self, key: Key) -> Requeue:
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        return Requeue(self._spec.backoff.after(failures))

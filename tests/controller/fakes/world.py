"""A small cluster: API server, mirror, cloud and clock, with the controllers of claims run by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from controller import nodeclaims
from controller.clock import FakeClock
from controller.cluster import Mirror, Shell, Writer
from controller.kube import DONE, SINGLETON, Change, ControllerSpec, Event, Key, Requeue, kinds
from controller.observability import Metrics
from tests.controller.fakes.api import FakeApi
from tests.controller.fakes.cloud import FakeCloud
from tests.controller.fakes.objects import a_node, a_node_class, a_pool

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Events:
    """Keeps what was published."""

    def __init__(self) -> None:
        self.seen: list[Event] = []

    def publish(self, *events: Event) -> None:
        self.seen += events

    def reasons(self) -> list[str]:
        return [event.reason for event in self.seen]


class World:
    def __init__(self, *, repair: bool = False, mirror: Mirror | None = None) -> None:
        self.clock = FakeClock(START)
        self.mirror = mirror or Mirror()
        self.api = FakeApi(self.clock, self.mirror)
        self.cloud = FakeCloud(self.clock)
        self.events = Events()
        self.metrics = Metrics()
        self.api.put(kinds.EC2NODECLASS, a_node_class())
        self.api.put(kinds.NODEPOOL, a_pool())
        self.api.complete_lists()
        client: Any = self.api
        recorder: Any = self.events
        self.shell = Shell(
            client=client,
            mirror=self.mirror,
            writer=Writer(client, self.mirror),
            recorder=recorder,
            metrics=self.metrics,
            clock=self.clock,
            random=Random(1),  # noqa: S311 - names, not secrets
        )
        self.repair = repair
        self.start()

    def start(self) -> None:
        """Make the controllers anew, as a restarted process would."""
        specs = nodeclaims.build(self.shell, self.cloud, repair=self.repair)
        self.specs: dict[str, ControllerSpec] = {spec.reconciler.name: spec for spec in specs}
        self.woken: dict[str, list[Key]] = {name: [] for name in self.specs}
        for name, spec in self.specs.items():
            for waker in spec.wakers:
                waker(self.woken[name].append)

    async def run(self, controller: str, name: str = "", namespace: str | None = None) -> Requeue:
        """Reconcile one key once."""
        key = Key(name=name, namespace=namespace) if name else SINGLETON
        return await self.specs[controller].reconciler.reconcile(key)

    async def lifecycle(self, name: str) -> Requeue:
        return await self.run("nodeclaim.lifecycle", name)

    async def launched(self, name: str = "default-abcde") -> str:
        """Launch a claim and return its provider id."""
        await self.lifecycle(name)
        return str(self.claim(name)["status"]["providerID"])

    async def initialized(self, name: str = "default-abcde", node: str = "node-1") -> None:
        """Launch a claim, have its node join ready, and initialize it."""
        provider_id = await self.launched(name)
        self.api.put(kinds.NODE, a_node(node, provider_id))
        await self.lifecycle(name)

    async def settle(self, name: str, node: str, seconds: int = 60) -> None:
        """Let deletion run: reconcile claim, node and evictions each second until both are gone."""
        for _ in range(seconds):
            if not self.api.exists(kinds.NODECLAIM, name) and not self.api.exists(kinds.NODE, node):
                return
            await self.lifecycle(name)
            await self.run("node.termination", node)
            await self.evict()
            await self.clock.advance(1)
        raise AssertionError(f"{name} or {node} did not go within {seconds} s")

    async def evict(self) -> None:
        keys, self.woken["eviction-queue"][:] = list(self.woken["eviction-queue"]), []
        for key in keys:
            requeue = await self.run("eviction-queue", key.name, key.namespace)
            if requeue != DONE:
                self.woken["eviction-queue"].append(key)

    def claim(self, name: str = "default-abcde") -> dict[str, Any]:
        return self.api.read(kinds.NODECLAIM, name)

    def condition(self, type: str, name: str = "default-abcde") -> tuple[str, str]:
        """Return status and reason of a claim's condition; empty when it has none."""
        for each in self.claim(name).get("status", {}).get("conditions", []):
            if each["type"] == type:
                return each["status"], each["reason"]
        return "", ""

    def message(self, type: str, name: str = "default-abcde") -> str:
        """Return the message of a claim's condition; empty when it has none."""
        found = self.claim(name).get("status", {}).get("conditions", [])
        return next((str(each["message"]) for each in found if each["type"] == type), "")

    def wakes(self, controller: str, change: Change) -> list[Key]:
        spec = self.specs[controller]
        return [key for watch in spec.watches if watch.kind == change.kind for key in watch.keys(change)]


def ago(seconds: float) -> str:
    return (START - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

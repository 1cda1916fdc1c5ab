"""A cluster and an account in memory, for teardowns: what is deleted goes as the real ones let it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from framework.api import labels
from framework.teardown import Instance, Interface, Kind, Leftover, Object, Pace, TearDown

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)


@attrs.define
class Clock:
    at: datetime = NOW

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@attrs.define(kw_only=True)
class FakeAccount:
    states: dict[str, str] = attrs.field(factory=dict)
    """Instance → state; one that is told to end is gone two looks later."""
    claims: dict[str, str] = attrs.field(factory=dict)
    """Instance → its claim."""
    stubborn: set[str] = attrs.field(factory=set)
    """Instances that EC2 keeps."""
    left: list[Leftover] = attrs.field(factory=list)
    enis: list[Interface] = attrs.field(factory=list)
    groups: frozenset[str] = frozenset({"sg-node"})
    exists: bool = True
    changes: list[str] = attrs.field(factory=list)

    def cluster_exists(self) -> bool:
        return self.exists

    def instances(self) -> Sequence[Instance]:
        seen = [Instance(id=i, state=s, claim=self.claims.get(i)) for i, s in self.states.items()]
        for each in seen:
            if each.state == "shutting-down" and each.id not in self.stubborn:
                self.states[each.id] = "terminated"
        return seen

    def terminate(self, ids: Sequence[str]) -> None:
        self.changes += [f"terminate {each}" for each in ids]
        self.states |= dict.fromkeys(ids, "shutting-down")

    def leftovers(self) -> Sequence[Leftover]:
        return tuple(self.left)

    def remove(self, leftover: Leftover) -> None:
        self.changes.append(f"remove {leftover.id}")
        self.left.remove(leftover)

    def node_groups(self) -> frozenset[str]:
        return self.groups

    def interfaces(self, groups: frozenset[str]) -> Sequence[Interface]:
        return [each for each in self.enis if each.groups & groups]

    def delete_interface(self, identifier: str) -> None:
        self.changes.append(f"delete {identifier}")
        self.enis = [each for each in self.enis if each.id != identifier]


@attrs.define(kw_only=True)
class FakeCluster:
    account: FakeAccount
    stored: dict[tuple[Kind, str], dict[str, Any]] = attrs.field(factory=dict)
    answers: bool = True
    controller: bool = True
    budgets: Sequence[str] = ()
    """While there are any, the controller ends a node only when it is told by when."""
    changes: list[str] = attrs.field(factory=list)
    let_go_alive: list[str] = attrs.field(factory=list)
    """Claims whose finalizer went while their instance was there."""

    def put(self, kind: Kind, raw: Mapping[str, Any]) -> None:
        self.stored[kind, raw["metadata"]["name"]] = {**raw, "metadata": dict(raw["metadata"])}

    def reachable(self) -> bool:
        return self.answers

    def objects(self, kind: Kind) -> Sequence[Object]:
        if self.controller:
            self._control()
        return [raw for (each, _), raw in list(self.stored.items()) if each is kind]

    def _control(self) -> None:
        for (kind, name), raw in list(self.stored.items()):
            metadata = raw["metadata"]
            told = labels.TERMINATION_TIMESTAMP in metadata.get("annotations", {})
            if "deletionTimestamp" in metadata and (kind is not Kind.CLAIM or told or not self.budgets):
                del self.stored[kind, name]
                self.account.states |= dict.fromkeys(_instances_of(self.account, raw), "terminated")

    def delete(self, kind: Kind, name: str) -> None:
        raw = self.stored.get((kind, name))
        if raw is not None:
            self.changes.append(f"delete {kind}/{name}")
            raw["metadata"]["deletionTimestamp"] = "2026-03-02T10:00:00Z"
            self._collect(kind, name)

    def annotate(self, kind: Kind, name: str, annotations: Mapping[str, str]) -> None:
        self.changes.append(f"annotate {kind}/{name}")
        self.stored[kind, name]["metadata"].setdefault("annotations", {}).update(annotations)

    def drop_finalizer(self, kind: Kind, name: str, finalizer: str) -> None:
        raw = self.stored.get((kind, name))
        if raw is None:
            return
        self.changes.append(f"let go {kind}/{name}")
        if any(self.account.states[each] != "terminated" for each in _instances_of(self.account, raw)):
            self.let_go_alive.append(name)
        finalizers = raw["metadata"].get("finalizers") or []
        raw["metadata"]["finalizers"] = [each for each in finalizers if each != finalizer]
        self._collect(kind, name)

    def _collect(self, kind: Kind, name: str) -> None:
        metadata = self.stored[kind, name]["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            del self.stored[kind, name]

    def blocking_budgets(self) -> Sequence[str]:
        return self.budgets

    def controller_answers(self) -> bool:
        return self.controller


def _instances_of(account: FakeAccount, raw: Mapping[str, Any]) -> list[str]:
    provider_id = str((raw.get("status") or {}).get("providerID") or "").rpartition("/")[2]
    return [each for each in account.states if each == provider_id]


@attrs.define(kw_only=True)
class Scene:
    """A cluster `demo` on its account, and a teardown of it."""

    account: FakeAccount = attrs.field(factory=FakeAccount)
    clock: Clock = attrs.field(factory=Clock)
    pace: Pace = attrs.field(factory=Pace)
    said: list[str] = attrs.field(factory=list)
    cluster: FakeCluster = attrs.field()

    @cluster.default
    def _cluster(self) -> FakeCluster:
        return FakeCluster(account=self.account)

    def teardown(self) -> TearDown:
        return TearDown(
            name="demo",
            cluster=self.cluster,
            account=self.account,
            pace=self.pace,
            now=self.clock.now,
            sleep=self.clock.sleep,
            tell=self.said.append,
        )

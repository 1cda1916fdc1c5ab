"""Cases of the claim's life: registration, termination, repair.

Runs the real controllers by hand on an API server and a cloud in memory, second by second.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import attrs

from controller.clock import FakeClock
from controller.cloud.provider import Instance, RepairPolicy
from controller.kube import kinds
from controller.kube.kinds import ALL_KINDS
from controller.observability.cluster import ClusterObserver
from tests.cases.files import Variant, duration
from tests.controller.fakes.world import World

_KNOWN = {
    *("node", "nodeclaim", "instanceTerminated", "waitedForPods", "conditionOrEventMustMention"),
    *("timeline", "mustNotWaitFor", "evicted", "claimsDeleted", "blocked", "metricPresent"),
}
_STEP_S, _LONGEST_S = 10, 300


def unreachable(variant: Variant) -> str | None:
    """Return why the case cannot be run here, None when it can."""
    if variant.when not in _RUNS:
        return f"when: {variant.when}"
    if "ec2" in variant.given:
        return "when: terminate-run with answers of EC2"
    unknown = sorted(set(variant.expect) - _KNOWN)
    return f"expects {', '.join(unknown)}" if unknown else None


def run(variant: Variant) -> list[str]:
    """Return what differs from the expectation; empty when the case passes."""
    return asyncio.run(_faults(variant))


async def _faults(variant: Variant) -> list[str]:
    stage = _Stage(variant)
    await _RUNS[variant.when](stage)
    return list(stage.differences())


class _Stage:
    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.world = World()
        self.world.clock = FakeClock(variant.now)
        self.world.api.clock = self.world.clock
        self.world.cloud.clock = self.world.clock
        self.world.shell = attrs.evolve(self.world.shell, clock=self.world.clock)
        self.world.api.objects.clear()
        self.deleted_at: dict[str, datetime] = {}
        self.left: set[str] = set()
        """Pods and attachments that were still there when the first instance was ended."""
        for raw in variant.given["objects"]:
            self._put(raw)
        gates = (variant.given.get("settings") or {}).get("featureGates") or {}
        self.world.repair = bool(gates.get("NodeRepair"))
        self.world.cloud.policies = tuple(
            RepairPolicy(condition_type="Ready", status=status, toleration=timedelta(minutes=30))
            for status in ("False", "Unknown")
        )
        self._watch_deletes()
        self.world.start()
        ClusterObserver(self.world.mirror, self.world.metrics, self.world.clock).follow()

    def _put(self, raw: dict[str, Any]) -> None:
        kind = next(each for each in ALL_KINDS if each.kind == raw["kind"])
        name = raw["metadata"]["name"]
        since = self.variant.given.get("notReadySince")
        if kind is kinds.NODE:
            raw["metadata"].setdefault("finalizers", ["karpenter.sh/termination"])
            for condition in raw["status"]["conditions"]:
                condition.setdefault("lastTransitionTime", since or "2026-03-02T09:00:00Z")
        if kind is kinds.NODECLAIM:
            raw["metadata"].setdefault("finalizers", ["karpenter.sh/termination"])
            raw["spec"].setdefault("requirements", [])
            raw["spec"].setdefault("startupTaints", self._startup_taints())
            self._machine(raw["status"]["providerID"])
        if kind is kinds.POD and "deletionTimestamp" in raw["metadata"]:
            raw["metadata"]["finalizers"] = ["test/kubelet"]
        self.world.api.objects.pop((kind, None, name), None)
        self.world.api.put(kind, raw)

    def _startup_taints(self) -> list[dict[str, Any]]:
        """Return those of the case's pool, which the provisioner wrote on every claim."""
        for raw in self.variant.given["objects"]:
            if raw["kind"] == "NodePool":
                return list(raw["spec"]["template"]["spec"].get("startupTaints", []))
        return []

    def _machine(self, provider_id: str) -> None:
        self.world.cloud.instances[provider_id] = Instance(
            provider_id=provider_id,
            image_id="ami-1",
            capacity={},
            allocatable={},
            labels={},
            annotations={},
            created=self.variant.now,
        )

    def _watch_deletes(self) -> None:
        delete = self.world.cloud.delete

        async def noted(provider_id: str) -> None:
            node = provider_id.rpartition("/i-")[2]
            if not self.deleted_at:
                self.left = {*self.world.api.names(kinds.POD), *self.world.api.names(kinds.VOLUMEATTACHMENT)}
            self.deleted_at.setdefault(node, self.world.clock.now())
            await delete(provider_id)

        self.world.cloud.delete = noted  # type: ignore[method-assign]

    async def hydrate(self) -> None:
        for name in self.world.api.names(kinds.NODECLAIM):
            await self.world.run("nodeclaim.hydration", name)
        for name in self.world.api.names(kinds.NODE):
            await self.world.run("node.hydration", name)

    async def terminate(self, seconds: int) -> None:
        """Run claims, nodes and evictions for that long, taking away what the case says leaves by itself."""
        removals = (self.variant.given.get("removeAt") or {}).items()
        leaves = {name: int(re.sub(r"\D", "", at)) for name, at in removals}
        for second in range(0, seconds, _STEP_S):
            for name, at in leaves.items():
                if second >= at and self.world.api.exists(kinds.VOLUMEATTACHMENT, name):
                    self.world.api.remove(kinds.VOLUMEATTACHMENT, name)
            for name in self.world.api.names(kinds.NODECLAIM):
                await self.world.lifecycle(name)
            for name in self.world.api.names(kinds.NODE):
                await self.world.run("node.termination", name)
            await self.world.evict()
            await self.world.clock.advance(_STEP_S)

    def differences(self) -> Iterator[str]:
        for key, wanted in self.variant.expect.items():
            found = getattr(self, f"_{key}")(wanted)
            if found is not None:
                yield f"{key}: {found}"

    # one method per key of `expect`: what differs, or None

    def _node(self, wanted: dict[str, Any]) -> str | None:
        node = self.world.api.read(kinds.NODE, wanted["name"])
        taints = [f"{each['key']}:{each['effect']}" for each in node["spec"]["taints"]]
        own = node["metadata"]["labels"]
        fits = taints == wanted["taintsExactly"] and wanted["labelsMustInclude"].items() <= own.items()
        return None if fits else f"taints {taints}, labels {own}"

    def _nodeclaim(self, wanted: dict[str, Any]) -> str | None:
        found = {type: self.world.condition(type, wanted["name"])[0] for type in wanted["conditions"]}
        return None if found == wanted["conditions"] else str(found)

    def _instanceTerminated(self, wanted: bool) -> str | None:
        return None if bool(self.deleted_at) is wanted else f"ended: {sorted(self.deleted_at)}"

    def _waitedForPods(self, wanted: list[str]) -> str | None:
        """Check that the instance was ended after these pods had gone, and without waiting for any other."""
        pods = {each["metadata"]["name"] for each in self.variant.given["objects"] if each["kind"] == "Pod"}
        gone = pods - self.left if self.deleted_at else set()
        if not self.deleted_at or gone != set(wanted):
            return f"ended at {self.deleted_at} when {sorted(gone)} had gone"
        late = [at for at in self.deleted_at.values() if at > self.variant.now + timedelta(seconds=_STEP_S)]
        return f"the drain waited until {late}" if late and not wanted else None

    def _conditionOrEventMustMention(self, words: list[str]) -> str | None:
        texts = [event.message for event in self.world.events.seen]
        for name in self.world.api.names(kinds.NODECLAIM):
            texts += [each.get("message", "") for each in self.world.claim(name)["status"]["conditions"]]
        missing = [word for word in words if not any(word in text for text in texts)]
        return f"nothing mentions {missing}" if missing else None

    def _timeline(self, wanted: list[dict[str, Any]]) -> str | None:
        for each in wanted:
            at = self.deleted_at.get(each["node"])
            if at is None or at < datetime.fromisoformat(str(each["notBefore"])):
                return f"{each['node']} ended at {at}"
        return None

    def _mustNotWaitFor(self, names: list[str]) -> str | None:
        """Check that the instance was ended while these were still there."""
        waited = sorted(set(names) - self.left)
        return f"ended at {self.deleted_at} without {waited}" if waited or not self.deleted_at else None

    def _metricPresent(self, name: str) -> str | None:
        """Check that a metric has a series; the name may lack the prefix."""
        shown = {family.name for family in self.world.metrics.registry.collect() if family.samples}
        return None if any(each.endswith(name) for each in shown) else f"not among {sorted(shown)}"

    def _evicted(self, wanted: list[str]) -> str | None:
        return None if self.world.api.evicted == wanted else str(self.world.api.evicted)

    def _claimsDeleted(self, wanted: list[str]) -> str | None:
        names = self.world.api.names(kinds.NODECLAIM)
        going = [name for name in names if "deletionTimestamp" in self.world.claim(name)["metadata"]]
        return None if going == wanted else str(going)

    def _blocked(self, wanted: dict[str, list[str]]) -> str | None:
        blocked = [each.message for each in self.world.events.seen if each.reason == "NodeRepairBlocked"]
        for pool, words in wanted.items():
            if not any(pool in text and all(word in text for word in words) for text in blocked):
                return f"{pool}: {blocked}"
        return None


async def _register(stage: _Stage) -> None:
    await stage.hydrate()
    for name in stage.world.api.names(kinds.NODECLAIM):
        await stage.world.lifecycle(name)


async def _terminate(stage: _Stage) -> None:
    await stage.hydrate()
    mirror = stage.world.mirror
    stage.world.api.protected = {
        pod.name
        for pod in mirror.pods
        for budget in mirror.budgets
        if budget.covers(pod.namespace, pod.labels) and budget.disruptions_allowed < 1
    }
    await stage.terminate(_LONGEST_S)
    clock = stage.variant.given.get("clock")
    if clock:
        await stage.world.clock.advance(max(0.0, duration(clock).total_seconds() - _LONGEST_S))
        await stage.terminate(_STEP_S)


async def _repair(stage: _Stage) -> None:
    for name in stage.world.api.names(kinds.NODE):
        await stage.world.run("node.health", name)


_RUNS: dict[str, Callable[[_Stage], Awaitable[None]]] = {
    "register": _register,
    "terminate-run": _terminate,
    "repair": _repair,
}

"""A small API server and its surroundings for the tests of the loop and the queue.

`FakeApi` keeps objects as JSON and feeds the real mirror, so that what is tested sees its own writes as
in production. Time stands still until a test moves it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random
from typing import Any, TypeVar

import orjson

from controller.clock import FakeClock
from controller.cluster import Mirror
from controller.disruption.build import Disruption, build
from controller.disruption.controller import LoopSettings
from controller.disruption.world import Gates
from controller.kube import SINGLETON, AlreadyExists, Conflict, Event, Kind, NotFound, PatchType, kinds
from controller.observability import Metrics
from controller.scheduling import InstanceType, Options, PlannedClaim, ReservedMode
from framework.api import NodePool, labels
from tests.controller.disruption.builders import CATALOGUE, CLASS_REF, NOW, a_condition

T = TypeVar("T")
Wire = dict[str, Any]


def stamp(span: timedelta = timedelta()) -> str:
    return (NOW - span).isoformat().replace("+00:00", "Z")


def wire_pool(name: str = "default", *, disruption: Wire | None = None, **spec: Any) -> Wire:
    settings = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}], **(disruption or {})}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "uid": f"pool-{name}", "generation": 1},
        "spec": {
            "template": {"spec": {"nodeClassRef": CLASS_REF, "requirements": []}},
            "disruption": settings,
            **spec,
        },
        "status": {"conditions": [a_condition("Ready", observedGeneration=1)]},
    }


def wire_claim(name: str, *, node: str = "", pool: str = "default", conditions: Sequence[Any] = ()) -> Wire:
    base = ["Launched", "Registered", "Initialized", "Ready", "Consolidatable"]
    listed = [a_condition(each) if isinstance(each, str) else each for each in (*base, *conditions)]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "generation": 1,
            "creationTimestamp": stamp(timedelta(hours=1)),
            "finalizers": [labels.TERMINATION_FINALIZER],
            "labels": {labels.NODEPOOL: pool, **_place("medium")},
        },
        "spec": {"nodeClassRef": CLASS_REF, "requirements": [], "expireAfter": "Never"},
        "status": {"providerID": f"aws:///{name}", "nodeName": node, "conditions": listed},
    }


def wire_node(name: str, *, claim: str, pool: str = "default", taints: Sequence[Wire] = ()) -> Wire:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {
                labels.NODEPOOL: pool,
                labels.HOSTNAME: name,
                labels.EC2NODECLASS: "default",
                labels.REGISTERED: "true",
                labels.INITIALIZED: "true",
                **_place("medium"),
            },
        },
        "spec": {"providerID": f"aws:///{claim}", "taints": list(taints)},
        "status": {"capacity": room, "allocatable": room, "conditions": [a_condition("Ready")]},
    }


def wire_pod(name: str, *, node: str | None, cpu: str = "1", **metadata: Any) -> Wire:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": stamp(timedelta(hours=1)),
            "ownerReferences": [owner],
            **metadata,
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running", "conditions": [a_condition("Ready")]},
    }


def _place(type: str) -> dict[str, str]:
    return {
        labels.INSTANCE_TYPE: type,
        labels.ZONE: "z-a",
        labels.CAPACITY_TYPE: "on-demand",
        labels.ARCH: "amd64",
        labels.OS: "linux",
    }


class FakeApi:
    """Objects by kind and name, with resource versions, finalizers and the mirror as the only watcher."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror
        self.objects: dict[tuple[Kind, str | None, str], Wire] = {}
        self.refused: dict[tuple[str, str], Exception] = {}
        """Errors by (verb, name)."""
        self._version = 0

    def put(self, kind: Kind, obj: Wire) -> None:
        meta = obj["metadata"]
        self._version += 1
        obj = orjson.loads(orjson.dumps(obj))
        obj["metadata"]["resourceVersion"] = str(self._version)
        self.objects[(kind, meta.get("namespace"), meta["name"])] = obj
        self.mirror.apply(kind, copy.deepcopy(obj))

    def drop(self, kind: Kind, name: str, namespace: str | None = None) -> None:
        self.mirror.store(kind).remove(self.objects.pop((kind, namespace, name)))

    def find(self, kind: Kind, name: str, namespace: str | None = None) -> Wire | None:
        return self.objects.get((kind, namespace, name))

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Wire:
        self._refuse("get", name)
        found = self.find(kind, name, namespace)
        if found is None:
            raise NotFound(f"get {kind.resource} {name}", "not found")
        return copy.deepcopy(found)

    async def create(self, kind: Kind, body: Wire, namespace: str | None = None) -> Wire:
        name = body["metadata"]["name"]
        self._refuse("create", name)
        if self.find(kind, name, namespace) is not None:
            raise AlreadyExists(f"create {kind.resource} {name}", "exists")
        self.put(kind, {"metadata": {}, **body})
        return await self.get(kind, name, namespace)

    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Wire,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        patch_type: PatchType = PatchType.MERGE,
    ) -> Wire:
        self._refuse("patch", name)
        found = await self.get(kind, name, namespace)
        wanted = body.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != found["metadata"]["resourceVersion"]:
            raise Conflict(f"patch {kind.resource} {name}", "changed")
        self.put(kind, _merged(found, body))
        return await self.get(kind, name, namespace)

    async def delete(self, kind: Kind, name: str, *, uid: str | None = None, **_: Any) -> None:
        self._refuse("delete", name)
        found = await self.get(kind, name)
        if uid is not None and uid != found["metadata"]["uid"]:
            raise Conflict(f"delete {kind.resource} {name}", "another uid")
        if found["metadata"].get("finalizers"):
            found["metadata"]["deletionTimestamp"] = stamp()
            self.put(kind, found)
        else:
            self.drop(kind, name)

    def _refuse(self, verb: str, name: str) -> None:
        error = self.refused.get((verb, name))
        if error is not None:
            raise error


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return copy.deepcopy(new)
    merged = {**old}
    for key, value in new.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(old.get(key), value)
    return merged


class FakeLauncher:
    """Creates claims that are launched but not registered, named after their pool."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.launched: list[tuple[str, str]] = []
        self.fails: Exception | None = None

    async def launch(self, planned: PlannedClaim, pool: NodePool, *, reason: str) -> str:
        return await self.launch_static(pool, reason=reason)

    async def launch_static(self, pool: NodePool, *, reason: str) -> str:
        if self.fails is not None:
            raise self.fails
        name = f"{pool.name}-new-{len(self.launched)}"
        self.launched.append((name, reason))
        claim = wire_claim(name, pool=pool.name)
        claim["status"]["conditions"] = [a_condition("Launched")]
        self.api.put(kinds.NODECLAIM, claim)
        return name


class Events:
    """Collects what is published."""

    def __init__(self) -> None:
        self.published: list[Event] = []

    def publish(self, *events: Event) -> None:
        self.published += events

    def reasons(self, name: str) -> list[str]:
        return [each.reason for each in self.published if each.regarding.name == name]

    def messages(self, reason: str) -> list[str]:
        return [each.message for each in self.published if each.reason == reason]


class Stage:
    """A cluster, disruption on it, and the clock."""

    def __init__(self, *objects: Wire, gates: Gates | None = None) -> None:
        self.mirror = Mirror()
        self.api = FakeApi(self.mirror)
        self.clock = FakeClock(NOW)
        self.events = Events()
        self.launcher = FakeLauncher(self.api)
        self.metrics = Metrics()
        self.types: Sequence[InstanceType] = CATALOGUE
        for kind in self.mirror.kinds:
            self.mirror.store(kind).keep_only(frozenset(), "0")
        for obj in objects:
            self.api.put(KINDS[obj["kind"]], obj)
        self.disruption: Disruption = build(
            client=self.api,
            cluster=self.mirror,
            instance_types=self._list_types,
            launcher=self.launcher,
            recorder=self.events,
            metrics=self.metrics,
            clock=self.clock,
            random=Random(7),  # noqa: S311 - names of decisions
            offload=_inline,
            settings=LoopSettings(
                options=Options(reserved_mode=ReservedMode.FALLBACK), gates=gates or Gates()
            ),
            nomination=timedelta(seconds=20),
        )

    async def pass_loop(self) -> timedelta | None:
        return (await self.disruption.loop.reconcile(SINGLETON)).after

    async def tick_queue(self, seconds: float = 1.0) -> None:
        await self.clock.advance(seconds)
        await self.disruption.queue.reconcile(SINGLETON)

    def taints(self, node: str) -> list[str]:
        found = self.api.find(kinds.NODE, node)
        return [taint["key"] for taint in found["spec"]["taints"]] if found else []

    def condition(self, claim: str, type: str) -> Wire | None:
        found = self.api.find(kinds.NODECLAIM, claim)
        listed = found["status"]["conditions"] if found else []
        return next((each for each in listed if each["type"] == type), None)

    def deleting(self, claim: str) -> bool:
        found = self.api.find(kinds.NODECLAIM, claim)
        return found is None or "deletionTimestamp" in found["metadata"]

    def set_condition(self, claim: str, type: str) -> None:
        found = self.api.find(kinds.NODECLAIM, claim)
        assert found is not None
        found = copy.deepcopy(found)
        found["status"]["conditions"].append(a_condition(type))
        self.api.put(kinds.NODECLAIM, found)

    async def _list_types(self, pool: NodePool) -> Sequence[InstanceType]:
        return self.types


async def _inline(work: Callable[[], T]) -> T:
    return work()


KINDS = {
    "NodePool": kinds.NODEPOOL,
    "NodeClaim": kinds.NODECLAIM,
    "Node": kinds.NODE,
    "Pod": kinds.POD,
    "PodDisruptionBudget": kinds.PDB,
    "SchedulingConfig": kinds.SCHEDULINGCONFIG,
}


def a_pair(name: str, **more: Any) -> tuple[Wire, Wire]:
    """Return a claim and its node."""
    taints = more.pop("taints", ())
    claim = wire_claim(f"claim-{name}", node=name, **more)
    return claim, wire_node(name, claim=f"claim-{name}", pool=more.get("pool", "default"), taints=taints)

"""An API server in memory, with the client's interface: versions, conflicts, finalizers, evictions.

What is written is shown to a mirror at once, as a quick watch would, unless `lagging` is set; then
`deliver` shows it.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterable
from typing import Any

from controller.clock import Clock
from controller.cluster import Mirror
from controller.kube import (
    AlreadyExists,
    Conflict,
    Kind,
    KubeError,
    NotFound,
    TooManyRequests,
    WireObject,
    kinds,
)
from controller.kube.client import PatchType

Place = tuple[Kind, str | None, str]


class FakeApi:
    def __init__(self, clock: Clock, mirror: Mirror | None = None) -> None:
        self.clock = clock
        self.mirror = mirror
        self.objects: dict[Place, WireObject] = {}
        self.lagging = False
        self.calls: list[tuple[str, Kind, str]] = []
        self.failures: list[KubeError] = []
        """Raised by the next calls that write, one each."""
        self.protected: set[str] = set()
        """Names of pods whose budget allows no eviction."""
        self.evicted: list[str] = []
        self._versions = itertools.count(1)
        self._uids = itertools.count(1)
        self._undelivered: list[tuple[str, Kind, WireObject]] = []

    # the client's interface

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> WireObject:
        return copy.deepcopy(self._found(kind, namespace, name))

    async def list(
        self, kind: Kind, namespace: str | None = None, *, params: object = None
    ) -> tuple[WireObject, ...]:
        return tuple(copy.deepcopy(obj) for place, obj in self.objects.items() if place[0] == kind)

    async def create(self, kind: Kind, body: WireObject, namespace: str | None = None) -> WireObject:
        self._begin("create", kind, body["metadata"]["name"])
        return self.put(kind, _wire(body), namespace)

    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Any,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        patch_type: PatchType = PatchType.MERGE,
    ) -> WireObject:
        self._begin("patch", kind, name)
        assert patch_type is PatchType.MERGE
        body = _wire(body)
        obj = self._found(kind, namespace, name)
        version = (body.get("metadata") or {}).get("resourceVersion")
        if version is not None and version != obj["metadata"]["resourceVersion"]:
            raise Conflict(f"patch {kind} {name}", "the object has been modified")
        spec = copy.deepcopy(obj.get("spec"))
        if subresource == "status":
            obj["status"] = _merged(obj.get("status") or {}, body.get("status") or {})
        else:
            status = obj.get("status")
            merged = _merged(obj, {key: value for key, value in body.items() if key != "status"})
            obj.clear()
            obj.update(merged)
            if status is not None:
                obj["status"] = status
        if obj.get("spec") != spec:
            obj["metadata"]["generation"] = obj["metadata"].get("generation", 1) + 1
        return self._stored(kind, namespace, obj)

    async def delete(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
    ) -> WireObject:
        self._begin("delete", kind, name)
        obj = self._found(kind, namespace, name)
        if uid is not None and uid != obj["metadata"]["uid"]:
            raise Conflict(f"delete {kind} {name}", "the UID is another")
        if "deletionTimestamp" not in obj["metadata"]:
            obj["metadata"]["deletionTimestamp"] = self._stamp()
        return self._stored(kind, namespace, obj)

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        self._begin("evict", kinds.POD, name)
        obj = self._found(kinds.POD, namespace, name)
        if obj["metadata"]["uid"] != uid:
            raise Conflict(f"evict {name}", "the UID is another")
        if name in self.protected:
            raise TooManyRequests(f"evict {name}", "the disruption budget web needs 1 healthy pods")
        self.evicted.append(name)
        self.remove(kinds.POD, name, namespace)

    # what tests do

    def put(self, kind: Kind, body: WireObject, namespace: str | None = None) -> WireObject:
        obj = copy.deepcopy(body)
        meta = obj.setdefault("metadata", {})
        namespace = namespace or meta.get("namespace")
        if kind.namespaced:
            meta["namespace"] = namespace = namespace or "default"
        place = (kind, namespace if kind.namespaced else None, meta["name"])
        if place in self.objects:
            raise AlreadyExists(f"create {kind} {meta['name']}", "exists")
        obj.setdefault("apiVersion", kind.api_version)
        obj.setdefault("kind", kind.kind)
        meta.setdefault("uid", f"uid-{next(self._uids)}")
        meta.setdefault("creationTimestamp", self._stamp())
        meta.setdefault("generation", 1)
        self.objects[place] = obj
        return self._stored(kind, namespace, obj)

    def change(self, kind: Kind, name: str, patch: WireObject, namespace: str | None = None) -> None:
        """Change an object as somebody else would, status included."""
        obj = self._found(kind, namespace, name)
        merged = _merged(obj, patch)
        obj.clear()
        obj.update(merged)
        self._stored(kind, namespace, obj)

    def remove(self, kind: Kind, name: str, namespace: str | None = None) -> None:
        obj = self.objects.pop((kind, namespace if kind.namespaced else None, name))
        self._tell("DELETED", kind, obj)

    def read(self, kind: Kind, name: str, namespace: str | None = None) -> WireObject:
        return self._found(kind, namespace, name)

    def exists(self, kind: Kind, name: str, namespace: str | None = None) -> bool:
        return (kind, namespace if kind.namespaced else None, name) in self.objects

    def names(self, kind: Kind) -> list[str]:
        return sorted(name for each, _, name in self.objects if each == kind)

    def deliver(self) -> None:
        """Show the mirror what it has not seen."""
        waiting, self._undelivered = self._undelivered, []
        for event, kind, obj in waiting:
            self._show(event, kind, obj)

    def complete_lists(self) -> None:
        """Tell the mirror that every kind was listed."""
        assert self.mirror is not None
        for kind in self.mirror.kinds:
            self.mirror.store(kind).keep_only(frozenset(self._uids_of(kind)), "0")

    def _uids_of(self, kind: Kind) -> Iterable[str]:
        return (obj["metadata"]["uid"] for place, obj in self.objects.items() if place[0] == kind)

    def _begin(self, verb: str, kind: Kind, name: str) -> None:
        self.calls.append((verb, kind, name))
        if self.failures:
            raise self.failures.pop(0)

    def _found(self, kind: Kind, namespace: str | None, name: str) -> WireObject:
        place = (kind, namespace if kind.namespaced else None, name)
        if place not in self.objects:
            raise NotFound(f"get {kind} {name}", "not found")
        return self.objects[place]

    def _stored(self, kind: Kind, namespace: str | None, obj: WireObject) -> WireObject:
        meta = obj["metadata"]
        meta["resourceVersion"] = str(next(self._versions))
        if "deletionTimestamp" in meta and not meta.get("finalizers"):
            self.remove(kind, meta["name"], namespace)
        else:
            self._tell("MODIFIED", kind, obj)
        return copy.deepcopy(obj)

    def _tell(self, event: str, kind: Kind, obj: WireObject) -> None:
        if self.lagging:
            self._undelivered.append((event, kind, copy.deepcopy(obj)))
        else:
            self._show(event, kind, copy.deepcopy(obj))

    def _show(self, event: str, kind: Kind, obj: WireObject) -> None:
        if self.mirror is None or kind not in self.mirror.kinds:
            return
        store = self.mirror.store(kind)
        store.remove(obj) if event == "DELETED" else store.upsert(obj)

    def _stamp(self) -> str:
        return self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _wire(body: Any) -> Any:
    """Return what arrives at the other end of a connection."""
    return json.loads(json.dumps(body))


def _merged(obj: WireObject, patch: WireObject) -> WireObject:
    found = dict(obj)
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict):
            inner = found.get(key)
            found[key] = _merged(inner if isinstance(inner, dict) else {}, value)
        else:
            found[key] = copy.deepcopy(value)
    return found

"""An API server small enough for one test, behind the mirror that the controllers read."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from controller.cluster import Mirror
from controller.kube import Conflict, Event, Kind, NotFound, kinds


def merge(target: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch (RFC 7396)."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            found = target.get(key)
            target[key] = merge(found if isinstance(found, dict) else {}, value)
        else:
            target[key] = value
    return target


class FakeApi:
    """Keeps objects, hands every change to the mirror, refuses writes to an old version."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self._versions = itertools.count(1)
        self._uids = itertools.count(1)

    def _store(self, kind: Kind, obj: dict[str, Any]) -> dict[str, Any]:
        obj["metadata"]["resourceVersion"] = str(next(self._versions))
        key = (kind.kind, obj["metadata"]["name"])
        meta = obj["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            self.objects.pop(key, None)
            self.mirror.store(kind).remove(obj)
        else:
            self.objects[key] = obj
            self.mirror.apply(kind, copy.deepcopy(obj))
        return copy.deepcopy(obj)

    def add(self, kind: Kind, obj: Mapping[str, Any], **meta: Any) -> dict[str, Any]:
        """Create an object, filling in what a server would."""
        body = copy.deepcopy(dict(obj))
        body.update(apiVersion=kind.api_version, kind=kind.kind)
        defaults = {
            "uid": f"00000000-0000-4000-8000-{next(self._uids):012d}",
            "generation": 1,
            "creationTimestamp": (datetime.now(UTC) + timedelta(seconds=2)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        body["metadata"] = {**defaults, **body.get("metadata", {}), **meta}
        return self._store(kind, body)

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> dict[str, Any]:
        try:
            return copy.deepcopy(self.objects[(kind.kind, name)])
        except KeyError:
            raise NotFound(f"get {kind} {name}", "no such object") from None

    async def patch(
        self, kind: Kind, name: str, body: Mapping[str, Any], *, subresource: str | None = None, **more: Any
    ) -> dict[str, Any]:
        stored = await self.get(kind, name)
        version = body.get("metadata", {}).get("resourceVersion")
        if version is not None and version != stored["metadata"]["resourceVersion"]:
            raise Conflict(f"patch {kind} {name}", "the object has been modified")
        return self._store(kind, merge(stored, json.loads(json.dumps(body))))  # as it arrives over a wire

    async def delete(self, kind: Kind, name: str, **more: Any) -> dict[str, Any]:
        stored = await self.get(kind, name)
        stored["metadata"]["deletionTimestamp"] = "2026-06-01T13:00:00Z"
        return self._store(kind, stored)

    def node_class(self, name: str = "default") -> Any:
        """Return the mirror's view of a class."""
        return self.mirror.ec2nodeclass(name)


class FakeRecorder:
    """Keeps the events that would be written."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, *events: Event) -> None:
        self.events.extend(events)


__all__ = ["FakeApi", "FakeRecorder", "kinds", "merge"]

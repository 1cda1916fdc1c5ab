"""The objects of one kind, typed and current, with everyone who wants to know of changes.

Filled by a reflector and by controllers that hand in the answers to their own writes; read by the mirror
and every controller. Newer versions win, so an answer to a write and the watch may come in any order,
and an object that was deleted does not come back by a late answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Set
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import attrs
import structlog

from controller.kube import Change, Key, Kind, WireObject
from framework.api import CharpenteError

__all__ = ["Index", "Malformed", "Store"]

T = TypeVar("T")
Listener = Callable[[Change], None]

_log: Final = structlog.get_logger("controller")
_GONE_KEPT: Final = 20_000
"""UIDs of deleted objects remembered against late answers."""


@attrs.frozen(kw_only=True)
class Malformed:
    """An object that cannot be read, such as one that the CRD of an older version let pass."""

    kind: Kind
    key: Key
    uid: str
    problem: str
    """What is wrong, for its owner."""


class Store(Generic[T]):
    """A `controller.kube.Sink` that keeps typed objects; malformed ones as they last could be read."""

    def __init__(self, kind: Kind, decode: Callable[[WireObject], T]) -> None:
        """Start empty and unsynced; `decode` raises CharpenteError or ValueError for bad objects."""
        self.kind = kind
        self._decode = decode
        self._objects: dict[Key, T] = {}
        self._by_name: dict[str, T] = {}
        self._versions: dict[Key, int] = {}
        self._uids: dict[Key, str] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._listeners: list[Listener] = []
        self._malformed: dict[Key, Malformed] = {}
        self._malformed_listeners: list[Callable[[], None]] = []
        self._synced = False
        self._installed = False
        self.heard_at = 0.0
        """Monotonic second of the server's last answer, bookmarks included."""

    @property
    def synced(self) -> bool:
        """Return whether a complete list was seen."""
        return self._synced

    @property
    def installed(self) -> bool:
        """Return whether the API server serves the kind, as far as is known."""
        return self._installed

    @property
    def objects(self) -> Mapping[Key, T]:
        """Return the live objects by key; a view, not a copy."""
        return MappingProxyType(self._objects)

    @property
    def by_name(self) -> Mapping[str, T]:
        """Return the live objects of a cluster-scoped kind by name; a view, not a copy."""
        return MappingProxyType(self._by_name)

    @property
    def malformed(self) -> tuple[Malformed, ...]:
        """Return the objects that cannot be read as they are now."""
        return tuple(self._malformed.values())

    def on_malformed(self, listener: Callable[[], None]) -> None:
        """Call the listener whenever the malformed objects are others."""
        self._malformed_listeners.append(listener)

    def get(self, name: str, namespace: str | None = None) -> T | None:
        """Return the object of that name, or None."""
        return self._objects.get(Key(name=name, namespace=namespace))

    def subscribe(self, listener: Listener) -> None:
        """Call the listener for every change, and at once for every object already known."""
        self._listeners.append(listener)
        for obj in tuple(self._objects.values()):
            listener(Change(self.kind, None, obj))

    def upsert(self, obj: WireObject) -> None:
        """Take an object unless a version as new is known or it is known to be gone."""
        meta = obj["metadata"]
        key, uid, version = _key(meta), meta["uid"], _version(meta["resourceVersion"])
        if uid in self._gone:
            return
        if self._uids.get(key, uid) != uid:
            if version < self._versions[key]:
                return
            self._drop(key)
        if self._versions.get(key, -1) >= version:
            return
        try:
            new = self._decode(obj)
        except (CharpenteError, ValueError, KeyError, TypeError, AttributeError) as exc:
            problem = str(exc) if isinstance(exc, CharpenteError) else f"{type(exc).__name__}: {exc}"
            self._take_malformed(Malformed(kind=self.kind, key=key, uid=uid, problem=problem))
            return
        self._forget_malformed({key})
        old = self._objects.get(key)
        self._objects[key], self._versions[key], self._uids[key] = new, version, uid
        if key.namespace is None:
            self._by_name[key.name] = new
        self._tell(Change(self.kind, old, new))

    def remove(self, obj: WireObject) -> None:
        """Drop an object that was deleted."""
        meta = obj["metadata"]
        key = _key(meta)
        self._remember_gone(meta["uid"])
        self._forget_malformed({each.key for each in self.malformed if each.uid == meta["uid"]})
        if self._uids.get(key) == meta["uid"]:
            self._drop(key)

    def keep_only(self, uids: frozenset[str], resource_version: str) -> None:
        """Drop what a complete list at that version did not hold, unless it is newer than the list."""
        version = _version(resource_version)
        stale = [key for key, uid in self._uids.items() if uid not in uids and self._versions[key] <= version]
        for key in stale:
            self._remember_gone(self._uids[key])
            self._drop(key)
        self._forget_malformed({each.key for each in self.malformed if each.uid not in uids})
        self._synced = self._installed = True

    def heard(self, at: float) -> None:
        """Take note that the server answered, at that monotonic second."""
        self.heard_at = at

    def absent(self) -> None:
        """Drop everything: the kind is not installed."""
        for key in tuple(self._objects):
            self._drop(key)
        self._forget_malformed(set(self._malformed))
        self._synced, self._installed = True, False

    def _drop(self, key: Key) -> None:
        old = self._objects.pop(key)
        self._by_name.pop(key.name, None)
        del self._versions[key], self._uids[key]
        self._tell(Change(self.kind, old, None))

    def _take_malformed(self, found: Malformed) -> None:
        if self._malformed.get(found.key) == found:
            return
        _log.error(
            f"{self.kind.kind} cannot be read; its last readable state counts",
            key=str(found.key),
            error=found.problem,
        )
        self._malformed[found.key] = found
        self._tell_of_malformed()

    def _forget_malformed(self, keys: Set[Key]) -> None:
        if self._malformed.keys() & keys:
            self._malformed = {key: each for key, each in self._malformed.items() if key not in keys}
            self._tell_of_malformed()

    def _tell_of_malformed(self) -> None:
        for listener in self._malformed_listeners:
            listener()

    def _remember_gone(self, uid: str) -> None:
        self._gone[uid] = None
        while len(self._gone) > _GONE_KEPT:
            self._gone.popitem(last=False)

    def _tell(self, change: Change) -> None:
        for listener in self._listeners:
            listener(change)


class Index(Generic[T]):
    """Objects of a store by something other than their name."""

    def __init__(self, store: Store[T], values: Callable[[T], Iterable[str]]) -> None:
        """Follow the store; `values` gives what an object is found under."""
        self._values = values
        self._found: dict[str, dict[Key, T]] = {}
        store.subscribe(self._follow)

    def get(self, value: str) -> tuple[T, ...]:
        """Return the objects found under the value, in the order in which they came."""
        return tuple(self._found.get(value, {}).values())

    def _follow(self, change: Change) -> None:
        if change.old is not None:
            key = _key_of(change.old)
            for value in self._values(change.old):
                found = self._found.get(value, {})
                found.pop(key, None)
                if not found:
                    self._found.pop(value, None)
        if change.new is not None:
            for value in self._values(change.new):
                self._found.setdefault(value, {})[_key_of(change.new)] = change.new


def _key(meta: Mapping[str, str]) -> Key:
    return Key(name=meta["name"], namespace=meta.get("namespace"))


def _key_of(obj: object) -> Key:
    meta: Any = getattr(obj, "metadata", obj)
    return Key(name=meta.name, namespace=getattr(meta, "namespace", None))


def _version(text: str) -> int:
    """Versions are compared as numbers; servers that count otherwise get no order (every write counts)."""
    return int(text) if text.isdigit() else 0

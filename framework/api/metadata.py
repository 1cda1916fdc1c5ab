"""What every Kubernetes object carries: metadata, owners, and the base class of our kinds.

Called by the modules of the kinds. Owns `ObjectMeta` and `Kind`; never talks to a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Self

import attrs

from framework.api.errors import InvalidField
from framework.api.schema import KindInfo, field, items, mapping
from framework.api.wire import Wire

__all__ = ["Kind", "ObjectMeta", "OwnerReference"]

_DROPPED = ("managedFields", "selfLink")
"""Bookkeeping of the API server, large and never ours to write."""


@attrs.frozen(kw_only=True)
class OwnerReference(Wire):
    """The object whose deletion takes this one along."""

    SHARED: ClassVar[bool] = True

    api_version: str = field("API version of the owner.")
    kind: str = field("Kind of the owner.")
    name: str = field("Name of the owner.")
    uid: str = field("UID of the owner.", default="")
    controller: bool | None = field("Whether the owner manages this object.", default=None)
    block_owner_deletion: bool | None = field(
        "Whether foreground deletion of the owner waits for this object.", default=None
    )


@attrs.frozen(kw_only=True)
class ObjectMeta(Wire):
    """Standard object metadata; the schema of it belongs to Kubernetes, not to our CRDs."""

    name: str = field("Name, unique per kind (and namespace).", default="")
    generate_name: str | None = field("Prefix from which the server makes a name.", default=None)
    namespace: str | None = field("Namespace, for kinds that have one.", default=None)
    uid: str = field("Identity of this very object.", default="")
    labels: Mapping[str, str] = mapping("Labels.")
    annotations: Mapping[str, str] = mapping("Annotations.")
    finalizers: tuple[str, ...] = items("Who still has work to do before the object may go.")
    owner_references: tuple[OwnerReference, ...] = items("Owners; garbage collection follows them.")
    generation: int = field("Counts changes of the spec.", default=0)
    resource_version: str = field("Version for optimistic locking.", default="")
    creation_timestamp: datetime | None = field("When the server accepted the object.", default=None)
    deletion_timestamp: datetime | None = field("When deletion was asked for.", default=None)
    deletion_grace_period_seconds: int | None = field("Grace of the deletion, in seconds.", default=None)


@attrs.frozen(kw_only=True)
class Kind(Wire):
    """Base of our kinds: `apiVersion`, `kind` and `metadata` around a spec and a status."""

    INFO: ClassVar[KindInfo]

    api_version: str = field("API version of the object.", default="")
    kind: str = field("Kind of the object.", default="")
    metadata: ObjectMeta = field("Standard object metadata.", default=ObjectMeta())

    def __attrs_post_init__(self) -> None:
        """Fill in version and kind, which are the same for every object of the class."""
        for name, value in self.implied().items():
            object.__setattr__(self, name, value)

    @classmethod
    def implied(cls) -> Mapping[str, Any]:
        """Return version and kind."""
        return {"api_version": cls.INFO.api_version, "kind": cls.INFO.kind}

    @property
    def name(self) -> str:
        """Return `metadata.name`."""
        return self.metadata.name

    @property
    def deleting(self) -> bool:
        """Return whether deletion has been asked for."""
        return self.metadata.deletion_timestamp is not None

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Self:
        """Return the object that JSON describes.

        Raises InvalidField for a value of the wrong type and for an object of another kind.
        """
        for key, expected in (("apiVersion", cls.INFO.api_version), ("kind", cls.INFO.kind)):
            if raw.get(key, expected) != expected:
                problem, remedy = f"is {raw[key]!r}", f"write {expected}"
                raise InvalidField(obj=cls.describe(raw), field=key, problem=problem, remedy=remedy)
        meta = raw.get("metadata")
        if isinstance(meta, Mapping) and not meta.keys().isdisjoint(_DROPPED):
            kept = {key: value for key, value in meta.items() if key not in _DROPPED}
            raw = {**raw, "metadata": kept}
        return super().from_wire(raw)

    @classmethod
    def describe(cls, raw: object) -> str:
        """Return `Kind/name`, with `?` for a name that cannot be read."""
        meta = raw.get("metadata") if isinstance(raw, Mapping) else None
        found = meta.get("name") or meta.get("generateName") if isinstance(meta, Mapping) else None
        return f"{cls.INFO.kind}/{found if isinstance(found, str) else '?'}"

    def __str__(self) -> str:
        """Return `Kind/name`, as events and errors name the object."""
        return f"{self.INFO.kind}/{self.name}"

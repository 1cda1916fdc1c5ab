"""Kubernetes objects that are not ours, cut down to what the controllers look at.

Decoded by the mirror from watched JSON; read by every controller. Frozen values; never written back:
controllers patch the few fields they own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

import attrs

from controller.scheduling import Resources, StorageClass, Taint
from controller.scheduling.podfields import parse_instant
from framework.api import ObjectMeta, parse_resources

__all__ = [
    "CSINode",
    "DaemonSet",
    "Namespace",
    "Node",
    "NodeCondition",
    "StorageClassObject",
    "VolumeAttachment",
    "admitted",
    "metadata_of",
]

_DROPPED = ("managedFields", "selfLink")


def metadata_of(raw: Mapping[str, Any]) -> ObjectMeta:
    """Return an object's metadata without the bookkeeping that nobody reads."""
    meta = raw.get("metadata") or {}
    return ObjectMeta.from_wire({key: value for key, value in meta.items() if key not in _DROPPED})


@attrs.frozen(kw_only=True)
class NodeCondition:
    """One condition of a Node; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    last_transition_time: datetime | None = None

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Self:
        """Return the condition."""
        return cls(
            type=str(raw.get("type") or ""),
            status=str(raw.get("status") or ""),
            reason=str(raw.get("reason") or ""),
            last_transition_time=parse_instant(raw.get("lastTransitionTime")),
        )


@attrs.frozen(kw_only=True)
class Node:
    """A Node."""

    metadata: ObjectMeta
    provider_id: str = ""
    taints: tuple[Taint, ...] = ()
    wire_taints: tuple[Mapping[str, Any], ...] = ()
    """The taints as written, with the time each was added; what a rewritten list must start from."""
    unschedulable: bool = False
    capacity: Resources = attrs.field(factory=dict)
    allocatable: Resources = attrs.field(factory=dict)
    conditions: tuple[NodeCondition, ...] = ()

    @property
    def name(self) -> str:
        """Return `metadata.name`."""
        return self.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        """Return `metadata.labels`."""
        return self.metadata.labels

    @property
    def deleting(self) -> bool:
        """Return whether deletion was asked for."""
        return self.metadata.deletion_timestamp is not None

    @property
    def ready(self) -> bool:
        """Return whether the Ready condition is True."""
        found = self.condition("Ready")
        return found is not None and found.status == "True"

    def condition(self, type: str) -> NodeCondition | None:
        """Return the condition of that type, or None."""
        return next((each for each in self.conditions if each.type == type), None)

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Self:
        """Return the node. Raises ValueError for a capacity that is not a quantity."""
        spec, status = raw.get("spec") or {}, raw.get("status") or {}
        return cls(
            metadata=metadata_of(raw),
            provider_id=str(spec.get("providerID") or ""),
            taints=tuple(Taint.from_wire(each) for each in spec.get("taints") or ()),
            wire_taints=tuple(spec.get("taints") or ()),
            unschedulable=bool(spec.get("unschedulable")),
            capacity=parse_resources(status.get("capacity")),
            allocatable=parse_resources(status.get("allocatable")),
            conditions=tuple(NodeCondition.from_wire(each) for each in status.get("conditions") or ()),
        )


@attrs.frozen(kw_only=True)
class DaemonSet:
    """A DaemonSet, with its pod template as a pod on the wire."""

    metadata: ObjectMeta
    template: Mapping[str, Any]

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Self:
        """Return the DaemonSet; its template keeps only what was asked for."""
        meta = metadata_of(raw)
        template = (raw.get("spec") or {}).get("template") or {}
        labels = template.get("metadata") or {}
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": meta.name, "uid": meta.uid}
        pod = {
            "metadata": {
                "name": meta.name,
                "namespace": meta.namespace,
                "uid": f"{meta.uid}-template",
                "labels": labels.get("labels") or {},
                "annotations": labels.get("annotations") or {},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": template.get("spec") or {},
        }
        return cls(metadata=meta, template=pod)

    def admitted(self, defaults: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the template with the requests its pods would be admitted with.

        Missing requests come from the container's limits, then from the namespace's `defaults`.
        """
        return {**self.template, "spec": admitted(self.template["spec"], defaults)}


def admitted(spec: Mapping[str, Any], defaults: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a pod's spec with the requests it would be admitted with: limits first, then `defaults`."""
    lists = {
        name: [_with_requests(each, defaults) for each in spec.get(name) or ()]
        for name in ("containers", "initContainers")
    }
    return {**spec, **lists}


def _with_requests(container: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    resources = container.get("resources") or {}
    requests = {**defaults, **(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}


@attrs.frozen(kw_only=True)
class LimitRange:
    """What containers of a namespace request unless they say so themselves."""

    metadata: ObjectMeta
    requests: Mapping[str, Any]
    """Quantities on the wire, by resource."""

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Self:
        """Return the container defaults; a default limit is a default request where none is given."""
        requests: dict[str, Any] = {}
        for item in (raw.get("spec") or {}).get("limits") or ():
            if item.get("type") == "Container":
                requests |= {**(item.get("default") or {}), **(item.get("defaultRequest") or {})}
        return cls(metadata=metadata_of(raw), requests=requests)


@attrs.frozen(kw_only=True)
class VolumeAttachment:
    """A volume attached, or being attached, to a node."""

    metadata: ObjectMeta
    node_name: str
    volume_name: str | None

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Self:
        """Return the attachment; `volume_name` is None for volumes written inline in a pod."""
        spec = raw.get("spec") or {}
        volume = (spec.get("source") or {}).get("persistentVolumeName")
        return cls(metadata=metadata_of(raw), node_name=str(spec.get("nodeName") or ""), volume_name=volume)


@attrs.frozen(kw_only=True)
class Namespace:
    """A Namespace; only its labels matter."""

    metadata: ObjectMeta

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Self:
        """Return the namespace."""
        return cls(metadata=metadata_of(raw))


@attrs.frozen(kw_only=True)
class CSINode:
    """How many volumes of each driver a node can attach."""

    metadata: ObjectMeta
    limits: Mapping[str, int]
    """By driver; drivers without a limit are missing."""

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Self:
        """Return the limits of one node."""
        drivers = (raw.get("spec") or {}).get("drivers") or ()
        counts = {str(each["name"]): (each.get("allocatable") or {}).get("count") for each in drivers}
        return cls(
            metadata=metadata_of(raw),
            limits={name: int(count) for name, count in counts.items() if count is not None},
        )


@attrs.frozen(kw_only=True)
class StorageClassObject:
    """A StorageClass, and whether claims without a class get it."""

    metadata: ObjectMeta
    storage_class: StorageClass
    is_default: bool

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Self:
        """Return the class."""
        meta = metadata_of(raw)
        return cls(
            metadata=meta,
            storage_class=StorageClass.from_wire(raw),
            is_default=meta.annotations.get("storageclass.kubernetes.io/is-default-class") == "true",
        )

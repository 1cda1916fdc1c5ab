"""Volumes as facts: claims, volumes, storage classes, attach limits (spec core/scheduling §13.4).

Filled by the mirror. `VolumeIndex` answers which nodes a pod's volumes allow and which driver slots
they take; it holds values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from controller.scheduling.podfields import node_term
from controller.scheduling.requirements import Requirement, Requirements
from framework.api import labels
from framework.api.requirement_spec import Operator

__all__ = ["PersistentVolume", "StorageClass", "VolumeClaim", "VolumeIndex", "VolumeProblem"]

_EBS: Final = "ebs.csi.aws.com"
_IN_TREE: Final = {"kubernetes.io/aws-ebs": _EBS, "kubernetes.io/no-provisioner": None}


class VolumeProblem(ValueError):
    """A volume that no node can satisfy: the claim and what is wrong with it."""

    def __init__(self, claim: str, problem: str) -> None:
        """Keep the claim's name next to the problem."""
        super().__init__(f"PersistentVolumeClaim {claim}: {problem}")
        self.claim = claim
        self.problem = problem


@attrs.frozen(kw_only=True)
class VolumeClaim:
    """A PersistentVolumeClaim."""

    namespace: str
    name: str
    storage_class: str | None = None
    volume_name: str | None = None
    deleting: bool = False
    lost: bool = False
    bind_completed: bool = False

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> VolumeClaim:
        """Return the claim."""
        metadata, spec = raw.get("metadata") or {}, raw.get("spec") or {}
        annotations = metadata.get("annotations") or {}
        return cls(
            namespace=str(metadata.get("namespace") or "default"),
            name=str(metadata.get("name") or ""),
            storage_class=spec.get("storageClassName")
            or annotations.get("volume.beta.kubernetes.io/storage-class"),
            volume_name=spec.get("volumeName") or None,
            deleting=bool(metadata.get("deletionTimestamp")),
            lost=(raw.get("status") or {}).get("phase") == "Lost",
            bind_completed=labels.PV_BIND_COMPLETED in annotations,
        )

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


@attrs.frozen(kw_only=True)
class PersistentVolume:
    """A PersistentVolume: where it can be used and who attaches it."""

    name: str
    terms: tuple[Requirements, ...] = ()
    """Alternatives of its required node affinity."""
    driver: str | None = None
    host_bound: bool = False
    """`local` or `hostPath`: host names in its affinity are not a constraint on new nodes."""
    deleting: bool = False

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> PersistentVolume:
        """Return the volume; raises ValueError for an affinity that cannot be read."""
        metadata, spec = raw.get("metadata") or {}, raw.get("spec") or {}
        required = (spec.get("nodeAffinity") or {}).get("required") or {}
        driver = (spec.get("csi") or {}).get("driver") or (_EBS if spec.get("awsElasticBlockStore") else None)
        return cls(
            name=str(metadata.get("name") or ""),
            terms=tuple(node_term(term) for term in required.get("nodeSelectorTerms") or ()),
            driver=driver,
            host_bound=bool(spec.get("local") or spec.get("hostPath")),
            deleting=bool(metadata.get("deletionTimestamp")),
        )


@attrs.frozen(kw_only=True)
class StorageClass:
    """A StorageClass."""

    name: str
    provisioner: str
    waits_for_consumer: bool = False
    topologies: tuple[Requirements, ...] = ()
    """Alternatives of its allowed topologies."""

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> StorageClass:
        """Return the class."""
        topologies = tuple(
            Requirements.of(
                *(
                    Requirement.new(entry["key"], Operator.IN, entry.get("values") or ())
                    for entry in term.get("matchLabelExpressions") or ()
                )
            )
            for term in raw.get("allowedTopologies") or ()
        )
        return cls(
            name=str((raw.get("metadata") or {}).get("name") or ""),
            provisioner=str(raw.get("provisioner") or ""),
            waits_for_consumer=raw.get("volumeBindingMode") == "WaitForFirstConsumer",
            topologies=topologies,
        )


@attrs.frozen(kw_only=True)
class VolumeIndex:
    """Every volume object of a snapshot by key, and the attach limits by node and driver."""

    claims: Mapping[str, VolumeClaim] = attrs.field(factory=dict)
    """By `namespace/name`."""
    volumes: Mapping[str, PersistentVolume] = attrs.field(factory=dict)
    classes: Mapping[str, StorageClass] = attrs.field(factory=dict)
    default_class: str | None = None
    attach_limits: Mapping[str, Mapping[str, int]] = attrs.field(factory=dict)
    """CSINode's `allocatable.count` by node name and driver."""

    def problem(self, key: str) -> str | None:
        """Return why a claim cannot be used (§13.4), or None."""
        claim = self.claims.get(key)
        if claim is None:
            return "not found"
        if claim.deleting:
            return "is being deleted"
        if claim.lost:
            return "has lost its volume"
        if claim.volume_name:
            return self._bound_problem(claim, claim.volume_name)
        return self._unbound_problem(claim)

    def _bound_problem(self, claim: VolumeClaim, volume_name: str) -> str | None:
        volume = self.volumes.get(volume_name)
        if volume is None:
            return f"PersistentVolume {volume_name} not found"
        if volume.deleting:
            return f"PersistentVolume {volume_name} is being deleted"
        return None if claim.bind_completed else f"not yet bound to PersistentVolume {volume_name}"

    def _unbound_problem(self, claim: VolumeClaim) -> str | None:
        name = claim.storage_class or self.default_class
        if not name:
            return "unbound and without a storage class"
        storage = self.classes.get(name)
        if storage is None:
            return f"StorageClass {name} not found"
        return (
            None
            if storage.waits_for_consumer
            else f"unbound with binding mode Immediate of StorageClass {name}"
        )

    def alternatives(self, key: str) -> tuple[Requirements, ...]:
        """Return the alternative node requirements of a claim; empty when any node will do."""
        claim = self.claims.get(key)
        if claim is None:
            return ()
        if claim.volume_name:
            volume = self.volumes.get(claim.volume_name)
            if volume is None:
                return ()
            terms = volume.terms
            if volume.host_bound:
                terms = tuple(term.without(labels.HOSTNAME) for term in terms)
            return () if any(not term for term in terms) else terms
        storage = self.classes.get(claim.storage_class or self.default_class or "")
        return storage.topologies if storage else ()

    def driver(self, key: str) -> str | None:
        """Return the CSI driver that attaches a claim's volume, None when it takes no tracked slot."""
        claim = self.claims.get(key)
        if claim is None:
            return None
        volume = self.volumes.get(claim.volume_name or "")
        if volume is not None and volume.driver:
            return volume.driver
        storage = self.classes.get(claim.storage_class or self.default_class or "")
        if storage is None:
            return None
        return _IN_TREE.get(storage.provisioner, storage.provisioner)

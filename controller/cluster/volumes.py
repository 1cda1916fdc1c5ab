"""The volume objects of the mirror, frozen on demand (spec core/scheduling §13.4).

Owned by the mirror; the frozen index is made again only after a change.
"""

from __future__ import annotations

from typing import Any

from controller.cluster.objects import CSINode, StorageClassObject
from controller.cluster.store import Store
from controller.kube import Change, kinds
from controller.scheduling import PersistentVolume, VolumeClaim, VolumeIndex
from framework.api import ObjectMeta

__all__ = ["Volumes"]


class Volumes:
    """Claims, volumes, storage classes and attach limits."""

    def __init__(self) -> None:
        """Start empty; the mirror has `stores` filled."""
        self._claims = Store(kinds.PERSISTENTVOLUMECLAIM, VolumeClaim.from_wire)
        self._volumes = Store(kinds.PERSISTENTVOLUME, PersistentVolume.from_wire)
        self._classes = Store(kinds.STORAGECLASS, StorageClassObject.from_wire)
        self._csi_nodes = Store(kinds.CSINODE, CSINode.from_wire)
        self._index: VolumeIndex | None = None
        for store in self.stores:
            store.subscribe(self._changed)

    @property
    def stores(self) -> tuple[Store[Any], ...]:
        """Return the stores to fill."""
        return (self._claims, self._volumes, self._classes, self._csi_nodes)

    def index(self) -> VolumeIndex:
        """Return everything, frozen."""
        if self._index is None:
            self._index = VolumeIndex(
                claims={each.key: each for each in self._claims.objects.values()},
                volumes=dict(self._volumes.by_name),
                classes={name: each.storage_class for name, each in self._classes.by_name.items()},
                default_class=self._default_class(),
                attach_limits={name: each.limits for name, each in self._csi_nodes.by_name.items()},
            )
        return self._index

    def claims_of_volume(self, volume_name: str) -> tuple[VolumeClaim, ...]:
        """Return the claims bound to a volume."""
        return tuple(each for each in self._claims.objects.values() if each.volume_name == volume_name)

    def _default_class(self) -> str | None:
        """Return the newest of the default classes, as the API server chooses; ties by name."""
        defaults = [each.metadata for each in self._classes.by_name.values() if each.is_default]
        return max(defaults, key=_age).name if defaults else None

    def _changed(self, change: Change) -> None:  # noqa: ARG002 - a listener's signature
        self._index = None


def _age(meta: ObjectMeta) -> tuple[float, str]:
    return (meta.creation_timestamp.timestamp() if meta.creation_timestamp else 0.0, meta.name)

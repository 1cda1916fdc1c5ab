"""The in-memory mirror of the cluster, from which snapshots are made."""

from __future__ import annotations

from controller.cluster.mirror import Mirror, class_label
from controller.cluster.objects import DaemonSet, Node, NodeCondition, VolumeAttachment
from controller.cluster.store import Index, Store
from controller.cluster.watching import watch_all

__all__ = [
    "DaemonSet",
    "Index",
    "Mirror",
    "Node",
    "NodeCondition",
    "Store",
    "VolumeAttachment",
    "class_label",
    "watch_all",
]

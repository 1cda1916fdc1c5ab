"""The in-memory mirror of the cluster, from which snapshots are made."""

from __future__ import annotations

from controller.cluster.mirror import Mirror, class_label
from controller.cluster.objects import DaemonSet, Node, NodeCondition, VolumeAttachment
from controller.cluster.shell import Shell
from controller.cluster.store import Index, Malformed, Store
from controller.cluster.watching import watch_all
from controller.cluster.writer import Writer, conditions_of, with_conditions

__all__ = [
    "DaemonSet",
    "Index",
    "Malformed",
    "Mirror",
    "Node",
    "NodeCondition",
    "Shell",
    "Store",
    "VolumeAttachment",
    "Writer",
    "class_label",
    "conditions_of",
    "watch_all",
    "with_conditions",
]

"""The codes of the reasons that `explain` adds to those of the engine and of disruption."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Fact"]


class Fact(StrEnum):
    """What is said of a pod, a node or a pool itself."""

    RUNS = "Runs"
    ENDED = "Ended"
    BEING_DELETED = "BeingDeleted"
    BOUND_TO_ITS_NODE = "BoundToItsNode"
    NOMINATED = "NominatedByScheduler"
    NOT_WAITING = "NotYetUnschedulable"
    NODE_POOL = "NodePool"
    CONDITION = "Condition"
    NODES = "Nodes"
    BUDGET = "DisruptionBudget"
    CALENDAR = "Calendar"

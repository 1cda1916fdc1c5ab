"""What a method decided, before anything is done: candidates and commands (spec core/disruption §3, §15).

Made by the survey and the methods, carried out by `controller.disruption.queue`. Frozen values that
print as one line and as JSON; they act on nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any

import attrs

from controller.scheduling import InstanceType, Placement, PlannedClaim, Pod, StateNode
from framework.api import DisruptionReason, NodeClaim, NodePool, labels

__all__ = ["Candidate", "Command", "ConsolidationType", "Decision"]


class ConsolidationType(StrEnum):
    """The `consolidation_type` label of the disruption metrics; empty for drift."""

    EMPTY = "empty"
    MULTI = "multi"
    SINGLE = "single"
    NONE = ""


class Decision(StrEnum):
    """What a command does first."""

    DELETE = "delete"
    REPLACE = "replace"


@attrs.frozen(kw_only=True)
class Candidate:
    """A node that may be disrupted, with all that the methods weigh."""

    node: StateNode
    claim: NodeClaim
    pool: NodePool
    instance_type: InstanceType | None
    """None when the node's type is no longer on offer."""
    price: float | None
    """USD per hour of the node, per-node cost included; None when unknown."""
    pods: tuple[Pod, ...]
    """The pods that would come back elsewhere."""
    disruption_cost: float
    headroom: int = 0
    """Virtual pods of headroom that no other node has room for."""

    @property
    def name(self) -> str:
        """Return the node's name."""
        return self.node.name

    @property
    def zone(self) -> str | None:
        """Return the zone label, or None."""
        return self.node.labels.get(labels.ZONE)

    @property
    def capacity_type(self) -> str | None:
        """Return the capacity type label, or None."""
        return self.node.labels.get(labels.CAPACITY_TYPE)

    @property
    def type_name(self) -> str:
        """Return the instance type label; empty when missing."""
        return self.node.labels.get(labels.INSTANCE_TYPE, "")

    @property
    def empty(self) -> bool:
        """Return whether no pod on it would have to go elsewhere, and no room on it is kept free."""
        return not self.pods and not self.headroom

    def describe(self) -> str:
        """Return the node for people, such as `n1 (m5.large/on-demand)`."""
        return f"{self.name} ({self.type_name or 'unknown type'}/{self.capacity_type or 'unknown'})"


@attrs.frozen(kw_only=True)
class Command:
    """Candidates to remove, and the claims that must be ready first."""

    reason: DisruptionReason
    consolidation_type: ConsolidationType
    candidates: tuple[Candidate, ...]
    """At least one; the first one's claim is the command's key."""
    replacements: tuple[PlannedClaim, ...] = ()
    static_replacements: tuple[str, ...] = ()
    """Static pools that get one claim each straight from their template."""
    placements: tuple[Placement, ...] = ()
    """Pods of the candidates and the existing nodes they are to go to."""
    savings: float | None = None
    """USD per hour, estimated; None for drift."""

    @property
    def key(self) -> str:
        """Return the first candidate's claim name."""
        return self.candidates[0].claim.name

    @property
    def decision(self) -> Decision:
        """Return whether claims have to come up before the candidates go."""
        return Decision.REPLACE if self.replacements or self.static_replacements else Decision.DELETE

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Return the candidates' node names."""
        return tuple(candidate.name for candidate in self.candidates)

    @property
    def pod_count(self) -> int:
        """Return how many pods have to move."""
        return sum(len(candidate.pods) for candidate in self.candidates)

    def text(self) -> str:
        """Return the command as one line for events and logs."""
        nodes = ", ".join(candidate.describe() for candidate in self.candidates)
        line = f"{self.reason.lower()}: {self.decision} {nodes}"
        new = [*map(_claim_text, self.replacements), *(f"a node of {p}" for p in self.static_replacements)]
        if new:
            line += f" by {', '.join(new)}"
        if self.savings is not None:
            line += f", saving ${self.savings:.2f} an hour"
        return line

    def to_json(self) -> Mapping[str, Any]:
        """Return the command for the decision log and `--json`."""
        return {
            "reason": str(self.reason),
            "consolidationType": str(self.consolidation_type),
            "decision": str(self.decision),
            "nodes": [_candidate_json(candidate) for candidate in self.candidates],
            "replacements": [
                {
                    "nodePool": planned.pool,
                    "instanceTypes": list(planned.instance_types),
                    "pods": list(planned.pod_keys),
                    "price": planned.price,
                }
                for planned in self.replacements
            ],
            "staticReplacements": list(self.static_replacements),
            "pods": self.pod_count,
            "estimatedSavings": self.savings,
        }


def by_cost(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, cheapest to disrupt first; ties by name (§5)."""
    return sorted(candidates, key=lambda candidate: (candidate.disruption_cost, candidate.name))


def _claim_text(planned: PlannedClaim) -> str:
    first = ", ".join(planned.instance_types[:3])
    more = len(planned.instance_types) - 3
    return f"a node of {planned.pool} [{first}{f' and {more} more' if more > 0 else ''}]"


def _candidate_json(candidate: Candidate) -> Mapping[str, Any]:
    return {
        "node": candidate.name,
        "nodeClaim": candidate.claim.name,
        "nodePool": candidate.pool.name,
        "instanceType": candidate.type_name,
        "capacityType": candidate.capacity_type,
        "zone": candidate.zone,
        "price": candidate.price,
        "pods": [pod.key for pod in candidate.pods],
        "disruptionCost": candidate.disruption_cost,
    }

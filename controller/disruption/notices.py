"""The events of disruption (spec core/observability §2).

Called by the loop and the queue. Pure: makes events, publishes none.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from controller.cluster import Node
from controller.disruption.budgets import Allowance
from controller.disruption.command import Candidate, Command
from controller.kube import Event, ObjectRef, kinds
from controller.scheduling import Pod, StateNode
from framework.api import NodeClaim, NodePool

__all__ = [
    "blocked_events",
    "budget_event",
    "candidate_events",
    "launching_event",
    "nominated_event",
    "terminating_events",
    "unconsolidatable_events",
    "waiting_event",
]

_UNCONSOLIDATABLE_FOR: Final = timedelta(minutes=15)
_BUDGET_FOR: Final = timedelta(minutes=1)


def _refs(node: Node | None, claim: NodeClaim | None) -> Iterable[ObjectRef]:
    if node is not None:
        yield ObjectRef.of(kinds.NODE, node.metadata)
    if claim is not None:
        yield ObjectRef.of(kinds.NODECLAIM, claim.metadata)


def blocked_events(node: Node | None, claim: NodeClaim | None, message: str) -> list[Event]:
    """Return that the node cannot be disrupted, on node and claim."""
    return [_event(ref, "DisruptionBlocked", message) for ref in _refs(node, claim)]


def unconsolidatable_events(node: Node | None, claim: NodeClaim, message: str) -> list[Event]:
    """Return why the node is not consolidated, on node and claim."""
    return [
        _event(ref, "Unconsolidatable", message, dedupe_for=_UNCONSOLIDATABLE_FOR)
        for ref in _refs(node, claim)
    ]


def candidate_events(node: Node | None, candidate: Candidate, command: Command) -> list[Event]:
    """Return what consolidation is about to do, on node and claim."""
    text = command.text()
    return [
        _event(ref, "ConsolidationCandidate", text, dedupe=(ref.uid, text))
        for ref in _refs(node, candidate.claim)
    ]


def rejected_events(node: Node | None, candidate: Candidate, command: Command, why: str) -> list[Event]:
    """Return that a command no longer held, on node and claim; `why` is budget, scheduling or churn."""
    text = f"{command.text()}: rejected, {why}"
    return [
        _event(ref, "ConsolidationRejected", text, dedupe=(ref.uid, text))
        for ref in _refs(node, candidate.claim)
    ]


def budget_event(pool: NodePool, allowance: Allowance) -> Event:
    """Return that the pool's budgets allow nothing for a reason."""
    ref = ObjectRef.of(kinds.NODEPOOL, pool.metadata)
    text = f"no disruption allowed for reason {allowance.reason} by budget: {allowance.decided_by}"
    return _event(
        ref, "DisruptionBlocked", text, dedupe=(ref.uid, str(allowance.reason)), dedupe_for=_BUDGET_FOR
    )


def launching_event(claim: NodeClaim, command: Command) -> Event:
    """Return that a replacement is being launched."""
    ref = ObjectRef.of(kinds.NODECLAIM, claim.metadata)
    text = f"launching to replace nodes: {command.reason.lower()}"
    return _event(ref, "DisruptionLaunching", text, dedupe=(ref.uid, str(command.reason)))


def waiting_event(claim: NodeClaim) -> Event:
    """Return that a replacement is not ready yet."""
    ref = ObjectRef.of(kinds.NODECLAIM, claim.metadata)
    return _event(ref, "DisruptionWaitingReadiness", "waiting for readiness before old nodes go")


def terminating_events(node: Node | None, claim: NodeClaim, command: Command) -> list[Event]:
    """Return that the node goes, on node and claim."""
    return [
        _event(
            ref,
            "DisruptionTerminating",
            f"disrupting node: {command.reason}",
            dedupe=(ref.uid, str(command.reason)),
        )
        for ref in _refs(node, claim)
    ]


def nominated_event(pod: Pod, node: StateNode) -> Event:
    """Return where the pod is expected to go."""
    ref = ObjectRef(kind=kinds.POD, name=pod.name, namespace=pod.namespace, uid=pod.uid)
    places = [
        *([f"nodeclaim/{node.claim_name}"] if node.claim_name else []),
        *([f"node/{node.node_name}"] if node.node_name else []),
    ]
    return _event(ref, "Nominated", f"pod should schedule on: {', '.join(places)}")


def _event(
    ref: ObjectRef,
    reason: str,
    message: str,
    *,
    dedupe: tuple[str, ...] = (),
    dedupe_for: timedelta = timedelta(minutes=2),
) -> Event:
    return Event(
        regarding=ref,
        reason=reason,
        message=message[:1].upper() + message[1:],
        dedupe_values=dedupe,
        dedupe_for=dedupe_for,
    )

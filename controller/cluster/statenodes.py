"""A Node and its NodeClaim seen as one (spec core/scheduling §10, §20).

Called by the mirror when it makes a snapshot. Pure: which of the two tells labels, taints and resources
depends on how far the node has come.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

from controller.cluster.objects import Node
from controller.scheduling import Pod, Resources, StateNode, Taint, is_ephemeral
from controller.scheduling.podfields import parse_instant
from framework.api import ClaimCondition, NodeClaim, labels, parse_resources
from framework.api.conditions import get, is_true

__all__ = ["Marks", "is_marked", "state_node"]


@attrs.frozen(kw_only=True)
class Marks:
    """What is known of a node in memory only."""

    marked_for_deletion: bool = False
    nominated: bool = False


def is_marked(node: Node | None, claim: NodeClaim | None) -> bool:
    """Tell whether the objects themselves say that the node goes away."""
    if claim is not None:
        return claim.deleting or is_true(claim.status.conditions, ClaimCondition.INSTANCE_TERMINATING)
    return node is not None and node.deleting


def state_node(node: Node | None, claim: NodeClaim | None, pods: tuple[Pod, ...], marks: Marks) -> StateNode:
    """Return the pair as one; at least one of the two must be there."""
    if claim is None:
        if node is None:
            raise ValueError("a state node needs a node or a claim")
        return _unmanaged(node, pods, marks)
    registered = node is not None and node.labels.get(labels.REGISTERED) == "true"
    initialized = registered and node is not None and node.labels.get(labels.INITIALIZED) == "true"
    source = node if registered and node is not None else claim
    initialization = get(claim.status.conditions, ClaimCondition.INITIALIZED)
    return StateNode(
        name=node.name if node is not None else claim.name,
        provider_id=claim.status.provider_id,
        node_name=node.name if node is not None else None,
        claim_name=claim.name,
        pool=claim.metadata.labels.get(labels.NODEPOOL),
        labels=source.metadata.labels,
        annotations=source.metadata.annotations,
        taints=_taints(node, claim, registered=registered, initialized=initialized),
        startup_taints=tuple(Taint.from_spec(each) for each in claim.spec.startup_taints),
        capacity=_resources(node, claim, "capacity", initialized=initialized),
        allocatable=_resources(node, claim, "allocatable", initialized=initialized),
        pods=pods,
        ready=node is not None and node.ready,
        registered=registered,
        initialized=initialized,
        managed=True,
        marked_for_deletion=marks.marked_for_deletion or is_marked(node, claim),
        deleting=claim.deleting or (node is not None and node.deleting),
        nominated=marks.nominated,
        created=claim.metadata.creation_timestamp,
        termination_deadline=_termination_deadline(claim),
        last_pod_event=claim.status.last_pod_event_time,
        initialized_at=initialization.last_transition_time if initialized and initialization else None,
    )


def _termination_deadline(claim: NodeClaim) -> datetime | None:
    """Return when the node is ended whatever runs on it: as annotated, else by its grace period."""
    written = claim.metadata.annotations.get(labels.TERMINATION_TIMESTAMP)
    if written:
        return parse_instant(written)
    deleted, grace = claim.metadata.deletion_timestamp, claim.spec.termination_grace_period
    return None if deleted is None or grace is None else deleted + grace


def _unmanaged(node: Node, pods: tuple[Pod, ...], marks: Marks) -> StateNode:
    return StateNode(
        name=node.name,
        provider_id=node.provider_id or None,
        node_name=node.name,
        pool=node.labels.get(labels.NODEPOOL),
        labels=node.labels,
        annotations=node.metadata.annotations,
        taints=node.taints,
        capacity=node.capacity,
        allocatable=node.allocatable,
        pods=pods,
        ready=node.ready,
        registered=True,
        initialized=True,
        managed=False,
        marked_for_deletion=marks.marked_for_deletion or node.deleting,
        deleting=node.deleting,
        nominated=marks.nominated,
        created=node.metadata.creation_timestamp,
    )


def _taints(node: Node | None, claim: NodeClaim, *, registered: bool, initialized: bool) -> tuple[Taint, ...]:
    if node is None or not registered:
        return tuple(Taint.from_spec(each) for each in claim.spec.taints)
    if initialized:
        return node.taints
    startup = {(each.key, str(each.effect)) for each in claim.spec.startup_taints}
    return tuple(
        taint for taint in node.taints if not is_ephemeral(taint) and (taint.key, taint.effect) not in startup
    )


def _resources(node: Node | None, claim: NodeClaim, which: str, *, initialized: bool) -> Resources:
    """Return the node's amounts, and until it is initialized the claim's where the node has none yet."""
    real: Mapping[str, int] = getattr(node, which) if node is not None else {}
    if initialized:
        return real
    there = {name: amount for name, amount in real.items() if amount}
    return {**parse_resources(getattr(claim.status, which)), **there}

"""Node repair: nodes that stay unhealthy are replaced at once (spec core/lifecycle §13).

Reconciles Nodes, behind the gate NodeRepair. A breaker stops it when too many nodes are unhealthy, for then
it is not the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from controller.clock import Clock
from controller.cloud.provider import Provider, RepairPolicy
from controller.cluster import Mirror, Node, Writer
from controller.kube import DONE, Event, EventType, Key, ObjectRef, Recorder, Requeue, kinds
from controller.nodeclaims.deletion import deadline_text
from controller.nodeclaims.ending import Ending
from controller.nodeclaims.step import pool_of
from controller.nodeclaims.termination import deadline_of
from controller.observability import Metrics
from framework.api import NodeClaim, labels

__all__ = ["Repair", "breaker_is_open", "due"]

_BLOCKED_AGAIN: Final = Requeue(timedelta(minutes=5))
_BLOCKED_DEDUPE: Final = timedelta(minutes=15)
_MOST_UNHEALTHY: Final = 0.20


def due(node: Node, policies: Sequence[RepairPolicy]) -> tuple[datetime, RepairPolicy] | None:
    """Return when the node is to be repaired and by which policy: the earliest that matches, or None."""
    found = []
    for policy in policies:
        condition = node.condition(policy.condition_type)
        if condition is None or condition.status != policy.status or condition.last_transition_time is None:
            continue
        found.append((condition.last_transition_time + policy.toleration, policy))
    return min(found, key=lambda each: (each[0], each[1].condition_type), default=None)


def breaker_is_open(nodes: Sequence[Node], policies: Sequence[RepairPolicy]) -> bool:
    """Tell whether more than a fifth of the nodes, rounded up, are unhealthy."""
    unhealthy = sum(due(node, policies) is not None for node in nodes)
    return unhealthy > math.ceil(_MOST_UNHEALTHY * len(nodes))


@attrs.frozen(kw_only=True, eq=False)
class Repair:
    """Ends unhealthy nodes."""

    mirror: Mirror
    writer: Writer
    ending: Ending
    provider: Provider
    recorder: Recorder
    metrics: Metrics
    clock: Clock

    name = "node.health"

    async def reconcile(self, key: Key) -> Requeue:
        """Judge one node."""
        node = self.mirror.nodes.get(key.name)
        claim = self.mirror.claim_of(node) if node is not None else None
        if node is None or claim is None or claim.deleting:
            return DONE
        policies = self.provider.repair_policies()
        found = due(node, policies)
        if found is None:
            return DONE
        when, policy = found
        now = self.clock.now()
        if now < when:
            return Requeue(when - now)
        peers = self._peers(claim)
        if breaker_is_open(peers, policies):
            self._blocked(node, claim, sum(due(each, policies) is not None for each in peers), len(peers))
            return _BLOCKED_AGAIN
        await self._end(claim, policy)
        return DONE

    async def _end(self, claim: NodeClaim, policy: RepairPolicy) -> None:
        now, deadline = self.clock.now(), deadline_of(claim)
        if deadline is None or deadline > now:
            annotations = {**claim.metadata.annotations, labels.TERMINATION_TIMESTAMP: deadline_text(now)}
            metadata = attrs.evolve(claim.metadata, annotations=annotations)
            claim = await self.writer.claim(claim, attrs.evolve(claim, metadata=metadata))
        if await self.ending.delete(claim, "unhealthy"):
            self.metrics.claims.unhealthy_disrupted.labels(
                condition=_snake(policy.condition_type),
                nodepool=pool_of(claim),
                capacity_type=claim.metadata.labels.get(labels.CAPACITY_TYPE, ""),
                image_id=claim.status.image_id or "",
            ).inc()

    def _peers(self, claim: NodeClaim) -> tuple[Node, ...]:
        pool = pool_of(claim)
        nodes = self.mirror.nodes.values()
        return tuple(node for node in nodes if not pool or node.labels.get(labels.NODEPOOL) == pool)

    def _blocked(self, node: Node, claim: NodeClaim, sick: int, total: int) -> None:
        where = f"nodepool {pool_of(claim)}" if pool_of(claim) else "the cluster"
        self.recorder.publish(
            Event(
                regarding=ObjectRef.of(kinds.NODE, node.metadata),
                type=EventType.WARNING,
                reason="NodeRepairBlocked",
                message=f"{sick} of {total} nodes in {where} are unhealthy, more than {_MOST_UNHEALTHY:.0%}",
                dedupe_values=(node.metadata.uid,),
                dedupe_for=_BLOCKED_DEDUPE,
            )
        )


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")

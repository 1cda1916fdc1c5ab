"""Deletion seen from the claim: its node first, then its instance, then its finalizer (lifecycle §7).

Called by the lifecycle for deleting claims, again and again until nothing is left. Draining is the node's
own termination; this only asks for it and waits.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs
import structlog

from controller.clock import Clock
from controller.cloud.provider import NodeClaimNotFound, Provider
from controller.cluster import Mirror, Writer, conditions_of, with_conditions
from controller.kube import DONE, Event, EventType, NotFound, ObjectRef, Recorder, Requeue, kinds
from controller.nodeclaims.step import pool_of
from controller.observability import Metrics
from controller.observability.logs import ref
from framework.api import ClaimCondition, NodeClaim, labels
from framework.api.conditions import get, is_true

__all__ = ["Deletion", "deadline_text"]

_log: Final = structlog.get_logger("controller")
_INSTANCE_POLL: Final = Requeue(timedelta(seconds=5))


@attrs.frozen(kw_only=True, eq=False)
class Deletion:
    """Finishes deleting claims."""

    mirror: Mirror
    writer: Writer
    provider: Provider
    recorder: Recorder
    metrics: Metrics
    clock: Clock

    async def finish(self, claim: NodeClaim) -> Requeue:
        """Take the next step of a deleting claim."""
        if labels.TERMINATION_FINALIZER not in claim.metadata.finalizers:
            return DONE
        claim = await self._with_deadline(claim)
        if is_true(claim.status.conditions, ClaimCondition.REGISTERED) and await self._nodes_remain(claim):
            return DONE
        if claim.status.provider_id:
            claim, gone = await end_instance(self.provider, self.writer, claim, self.clock)
            if not gone:
                return _INSTANCE_POLL
            self._observe_instance(claim)
        await self._remove_finalizer(claim)
        return DONE

    async def _with_deadline(self, claim: NodeClaim) -> NodeClaim:
        """Write by when the node must be gone, once, when the claim has a grace period."""
        deleted, grace = claim.metadata.deletion_timestamp, claim.spec.termination_grace_period
        if grace is None or deleted is None or labels.TERMINATION_TIMESTAMP in claim.metadata.annotations:
            return claim
        text = deadline_text(deleted + grace)
        annotations = {**claim.metadata.annotations, labels.TERMINATION_TIMESTAMP: text}
        after = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, annotations=annotations))
        stored = await self.writer.claim(claim, after)
        _log.info("annotated nodeclaim", NodeClaim=ref(claim.name), **{labels.TERMINATION_TIMESTAMP: text})
        self.recorder.publish(
            Event(
                regarding=ObjectRef.of(kinds.NODECLAIM, claim.metadata),
                type=EventType.WARNING,
                reason="TerminationGracePeriodExpiring",
                message=f"All pods will be deleted by {text}",
                dedupe_values=(claim.name,),
            )
        )
        return stored

    async def _nodes_remain(self, claim: NodeClaim) -> bool:
        nodes = self.mirror.nodes_of(claim)
        for node in nodes:
            await self.writer.delete_node(node)
        return bool(self.mirror.nodes_of(claim))

    def _observe_instance(self, claim: NodeClaim) -> None:
        began = get(claim.status.conditions, ClaimCondition.INSTANCE_TERMINATING)
        if began is not None and began.last_transition_time is not None:
            seconds = (self.clock.now() - began.last_transition_time).total_seconds()
            self.metrics.claims.instance_termination.labels(nodepool=pool_of(claim)).observe(seconds)

    async def _remove_finalizer(self, claim: NodeClaim) -> None:
        kept = tuple(each for each in claim.metadata.finalizers if each != labels.TERMINATION_FINALIZER)
        after = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, finalizers=kept))
        try:
            await self.writer.claim(claim, after)
        except NotFound:
            return
        pool = pool_of(claim)
        if claim.metadata.deletion_timestamp is not None:
            seconds = (self.clock.now() - claim.metadata.deletion_timestamp).total_seconds()
            self.metrics.claims.termination.labels(nodepool=pool).observe(seconds)
        capacity_type = claim.metadata.labels.get(labels.CAPACITY_TYPE, "")
        self.metrics.claims.terminated.labels(nodepool=pool, capacity_type=capacity_type).inc()
        _log.info("deleted nodeclaim", NodeClaim=ref(claim.name))


async def end_instance(
    provider: Provider, writer: Writer, claim: NodeClaim, clock: Clock
) -> tuple[NodeClaim, bool]:
    """Ask for the end of the claim's instance; return the claim as stored and whether it is gone."""
    gone = False
    try:
        await provider.delete(claim.status.provider_id or "")
    except NodeClaimNotFound:
        gone = True
    if not is_true(claim.status.conditions, ClaimCondition.INSTANCE_TERMINATING):
        conditions = conditions_of(claim).set_true(ClaimCondition.INSTANCE_TERMINATING, now=clock.now())
        claim = await writer.claim(claim, with_conditions(claim, conditions))
    return claim, gone


def deadline_text(instant: object) -> str:
    """Return an instant as the annotation spells it (RFC 3339, seconds, UTC)."""
    return format(instant, "%Y-%m-%dT%H:%M:%SZ")

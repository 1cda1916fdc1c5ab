"""Consistency: a node has what its claim promised (spec core/lifecycle §12).

Reconciles NodeClaims, each every ten minutes. Only reports: a condition, an event, a log line.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import structlog

from controller.clock import Clock
from controller.cluster import Mirror, Node, Writer, conditions_of, with_conditions
from controller.kube import DONE, Event, EventType, Key, ObjectRef, Recorder, Requeue, kinds
from controller.observability.logs import ref
from framework.api import ClaimCondition, NodeClaim, parse_resources
from framework.api.conditions import is_true

__all__ = ["Consistency", "shortfalls"]

_log: Final = structlog.get_logger("controller")
_EVERY: Final = Requeue(timedelta(minutes=10))
_LEAST_SHARE: Final = 0.90


def shortfalls(node: Node, claim: NodeClaim) -> tuple[str, ...]:
    """Return one sentence per requested resource of which the node has under 90 % of what was expected."""
    expected = parse_resources(claim.status.capacity)
    found = []
    for resource in sorted(claim.spec.resources.requests):
        wanted, has = expected.get(resource, 0), node.capacity.get(resource, 0)
        if wanted > 0 and has / wanted < _LEAST_SHARE:
            found.append(f"expected {wanted} of resource {resource}, but found {has} ({has / wanted:.1%})")
    return tuple(found)


class Consistency:
    """Checks initialized claims."""

    name = "nodeclaim.consistency"

    def __init__(self, mirror: Mirror, writer: Writer, recorder: Recorder, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer
        self._recorder = recorder
        self._clock = clock

    async def reconcile(self, key: Key) -> Requeue:
        """Check one claim."""
        claim = self._mirror.claims.get(key.name)
        if claim is None or claim.deleting or not self._mirror.is_ours(claim):
            return DONE
        if not is_true(claim.status.conditions, ClaimCondition.INITIALIZED):
            return DONE
        node = self._mirror.nodes.get(claim.status.node_name or "")
        if node is None:
            return _EVERY
        problems = shortfalls(node, claim)
        for problem in problems:
            self._tell(claim, problem)
        conditions, type, now = conditions_of(claim), ClaimCondition.CONSISTENT_STATE_FOUND, self._clock.now()
        if problems:
            conditions = conditions.set_false(type, "ConsistencyCheckFailed", "; ".join(problems), now=now)
        else:
            conditions = conditions.set_true(type, now=now)
        await self._writer.claim(claim, with_conditions(claim, conditions))
        return _EVERY

    def _tell(self, claim: NodeClaim, problem: str) -> None:
        _log.error("consistency error", NodeClaim=ref(claim.name), error=problem)
        self._recorder.publish(
            Event(
                regarding=ObjectRef.of(kinds.NODECLAIM, claim.metadata),
                type=EventType.WARNING,
                reason="FailedConsistencyCheck",
                message=problem,
                dedupe_values=(claim.metadata.uid, problem),
            )
        )

"""Deletes claims of our own will and counts why.

Called by launch, liveness, expiration, garbage collection, repair; disruption has its own queue. The
deletion itself is the claim's finalizer's work.
"""

from __future__ import annotations

from typing import Final

import structlog

from controller.cluster import Writer
from controller.nodeclaims.step import pool_of
from controller.observability import Metrics
from controller.observability.logs import ref
from framework.api import NodeClaim, labels

__all__ = ["Ending"]

_log: Final = structlog.get_logger("controller")


class Ending:
    """Asks for deletions."""

    def __init__(self, writer: Writer, metrics: Metrics) -> None:
        """Keep the arguments."""
        self._writer = writer
        self._metrics = metrics

    async def delete(self, claim: NodeClaim, reason: str) -> bool:
        """Delete the claim for a reason in snake case; False when it was going already."""
        if not await self._writer.delete_claim(claim):
            return False
        self._metrics.claims.disrupted.labels(
            reason=reason,
            nodepool=pool_of(claim),
            capacity_type=claim.metadata.labels.get(labels.CAPACITY_TYPE, ""),
        ).inc()
        _log.info("deleting nodeclaim", NodeClaim=ref(claim.name), reason=reason)
        return True

"""The conditions that disruption looks for: Consolidatable and Drifted (spec core/lifecycle §9, §10.1).

Reconciles NodeClaims of pools; the disruption loop reads what it writes. Consolidatable is about time only,
not about how much the node is used.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs
import structlog

from controller.clock import Clock
from controller.cloud.provider import CloudError
from controller.cluster import Mirror, Writer, conditions_of, with_conditions
from controller.kube import DONE, Key, Requeue
from controller.nodeclaims.drift import Drift
from controller.nodeclaims.step import pool_of
from controller.observability.logs import ref
from controller.scheduling import governing_config
from framework.api import ClaimCondition, ConditionSet, NodeClaim, NodePool
from framework.api.conditions import get, is_true

__all__ = ["DisruptionConditions", "consolidatable_at"]

_log: Final = structlog.get_logger("controller")
_DRIFT_EVERY: Final = Requeue(timedelta(minutes=5))


@attrs.frozen(kw_only=True, eq=False)
class DisruptionConditions:
    """Sets and clears both conditions."""

    mirror: Mirror
    writer: Writer
    drift: Drift
    clock: Clock

    name = "nodeclaim.disruption"

    async def reconcile(self, key: Key) -> Requeue:
        """Judge one claim."""
        claim = self.mirror.claims.get(key.name)
        if claim is None or claim.deleting or not self.mirror.is_ours(claim):
            return DONE
        pool = self.mirror.pools.get(pool_of(claim))
        if pool is None:
            return DONE
        before = conditions_of(claim)
        after, wait = self._consolidatable(before, claim, pool)
        after = await self._drifted(after, claim, pool)
        if after != before:
            await self.writer.claim(claim, with_conditions(claim, after))
        return Requeue.soonest(wait, _DRIFT_EVERY)

    def _consolidatable(
        self, conditions: ConditionSet, claim: NodeClaim, pool: NodePool
    ) -> tuple[ConditionSet, Requeue]:
        at = consolidatable_at(claim, pool)
        now = self.clock.now()
        if at is None or now < at:
            return _clear(conditions, ClaimCondition.CONSOLIDATABLE), Requeue(at - now) if at else DONE
        if not conditions.is_true(ClaimCondition.CONSOLIDATABLE):
            _log.debug("marking nodeclaim consolidatable", NodeClaim=ref(claim.name))
            conditions = conditions.set_true(ClaimCondition.CONSOLIDATABLE, now=now)
        return conditions, DONE

    async def _drifted(self, conditions: ConditionSet, claim: NodeClaim, pool: NodePool) -> ConditionSet:
        if not is_true(claim.status.conditions, ClaimCondition.LAUNCHED):
            return _clear(conditions, ClaimCondition.DRIFTED)
        config = governing_config(pool, tuple(self.mirror.scheduling_configs.values()))
        ignored = frozenset(config.spec.drift_ignore) if config is not None else frozenset()
        try:
            found = await self.drift.judge(claim, pool, ignored)
        except CloudError as exc:
            _log.error("drift cannot be judged", NodeClaim=ref(claim.name), error=str(exc))
            return conditions
        if found is None:
            return _clear(conditions, ClaimCondition.DRIFTED)
        if not conditions.is_true(ClaimCondition.DRIFTED):
            _log.debug("marking nodeclaim drifted", NodeClaim=ref(claim.name), reason=found.reason)
        return conditions.set_true(ClaimCondition.DRIFTED, found.reason, found.message, now=self.clock.now())


def consolidatable_at(claim: NodeClaim, pool: NodePool) -> datetime | None:
    """Return from when the claim may be consolidated; None while that is not to be said, or never."""
    after = pool.spec.disruption.consolidate_after
    if pool.spec.replicas is not None or after is None:
        return None
    initialized = get(claim.status.conditions, ClaimCondition.INITIALIZED)
    if initialized is None or not is_true((initialized,), ClaimCondition.INITIALIZED):
        return None
    base = claim.status.last_pod_event_time or initialized.last_transition_time
    return base + after if base is not None else None


def _clear(conditions: ConditionSet, type: ClaimCondition) -> ConditionSet:
    return conditions.clear(type) if conditions.get(type) is not None else conditions

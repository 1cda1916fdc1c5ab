"""Whether the nodes of a pool register: the last few results, and the pool's condition (lifecycle §11.4).

Told by registration and liveness, read by the pool's reconciler below and by metrics. Informational: it
does not stop planning.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import Final

import attrs

from controller.clock import Clock
from controller.cluster import Mirror, Writer, conditions_of, with_conditions
from controller.kube import DONE, Key, KubeError, Requeue
from controller.nodeclaims.step import state
from framework.api import ClaimCondition, ConditionStatus, NodeClaim, NodePool, labels
from framework.api.conditions import AWAITING_RECONCILIATION, get

__all__ = ["CONDITION", "Health", "RegistrationHealth", "RegistrationHealthReconciler", "judge"]

CONDITION: Final = "NodeRegistrationHealthy"
_SIZE: Final = 4
_UNHEALTHY_SHARE: Final = 0.5


class Health(StrEnum):
    """What the last results say."""

    UNKNOWN = "Unknown"
    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"


def judge(results: tuple[bool, ...]) -> Health:
    """Return the state of up to four results, oldest first; failures count against four in any case."""
    if not results:
        return Health.UNKNOWN
    failures = sum(not ok for ok in results[-_SIZE:])
    return Health.UNHEALTHY if failures / _SIZE >= _UNHEALTHY_SHARE else Health.HEALTHY


class RegistrationHealth:
    """The ring of results of every pool, by UID, in memory only."""

    def __init__(self, mirror: Mirror, writer: Writer, clock: Clock) -> None:
        """Start empty."""
        self._mirror = mirror
        self._writer = writer
        self._clock = clock
        self._rings: dict[str, deque[bool]] = {}

    def results(self, uid: str) -> tuple[bool, ...]:
        """Return a pool's results, oldest first."""
        return tuple(self._rings.get(uid, ()))

    def seed(self, uid: str, *results: bool) -> None:
        """Replace a pool's results."""
        self._rings[uid] = deque(results, maxlen=_SIZE)

    async def succeeded(self, claim: NodeClaim) -> None:
        """Note that a claim of the pool registered."""
        pool = self._pool(claim)
        if pool is None:
            return
        uid = pool.metadata.uid
        if judge((*self.results(uid), True)) is Health.HEALTHY:
            await self._set(pool, ConditionStatus.TRUE, CONDITION, "")
        self._record(uid, ok=True)

    async def failed(self, claim: NodeClaim) -> None:
        """Note that a claim of the pool never launched or never registered."""
        pool = self._pool(claim)
        if pool is None:
            return
        uid = pool.metadata.uid
        found = get(pool.status.conditions, CONDITION)
        known = found is not None and found.status is ConditionStatus.FALSE
        if judge((*self.results(uid), False)) is Health.UNHEALTHY and not known:
            launched = state(claim, ClaimCondition.LAUNCHED)
            if launched.status is ConditionStatus.TRUE:
                reason, message = "RegistrationFailed", "Failed to register node"
            else:
                reason, message = launched.reason or "LaunchFailed", launched.message
            await self._set(pool, ConditionStatus.FALSE, reason, message)
        self._record(uid, ok=False)

    def _record(self, uid: str, *, ok: bool) -> None:
        self._rings.setdefault(uid, deque(maxlen=_SIZE)).append(ok)

    def _pool(self, claim: NodeClaim) -> NodePool | None:
        pool = self._mirror.pools.get(claim.metadata.labels.get(labels.NODEPOOL, ""))
        if pool is None:
            return None
        owned = any(owner.uid == pool.metadata.uid for owner in claim.metadata.owner_references)
        return pool if owned else None

    async def _set(self, pool: NodePool, status: ConditionStatus, reason: str, message: str) -> None:
        """Write the condition; a conflict is left to the next result, nothing depends on it."""
        conditions = conditions_of(pool).set(CONDITION, status, reason, message, now=self._clock.now())
        try:
            await self._writer.pool(pool, with_conditions(pool, conditions))
        except KubeError:
            return


class RegistrationHealthReconciler:
    """Resets the condition when pool or class change, and seeds results after a restart."""

    name = "nodepool.registrationhealth"

    def __init__(self, mirror: Mirror, writer: Writer, health: RegistrationHealth, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer
        self._health = health
        self._clock = clock

    async def reconcile(self, key: Key) -> Requeue:
        """Bring one pool's condition in line with its generation and its class's."""
        pool = self._mirror.pools.get(key.name)
        if pool is None or not self._mirror.is_our_pool(pool):
            return DONE
        node_class = self._mirror.node_class(pool.spec.template.spec.node_class_ref)
        if node_class is None:
            return DONE
        generation = node_class.metadata.generation
        found = get(pool.status.conditions, CONDITION)
        if (
            found is None
            or pool.status.node_class_observed_generation != generation
            or found.observed_generation != pool.metadata.generation
        ):
            self._health.seed(pool.metadata.uid)
            conditions = conditions_of(pool).set_unknown(
                CONDITION, AWAITING_RECONCILIATION, "object is awaiting reconciliation", now=self._clock.now()
            )
            after = with_conditions(pool, conditions)
            status = attrs.evolve(after.status, node_class_observed_generation=generation)
            await self._writer.pool(pool, attrs.evolve(after, status=status))
        elif not self._health.results(pool.metadata.uid) and found.status is not ConditionStatus.UNKNOWN:
            ok = found.status is ConditionStatus.TRUE
            self._health.seed(pool.metadata.uid, *((True,) if ok else (False, False)))
        return DONE

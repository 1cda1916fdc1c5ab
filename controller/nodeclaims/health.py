"""Whether the nodes of a pool register: the last few results, and the pool's conditions (lifecycle §11.4).

Told by registration and liveness, read by the pool's reconciler below and by metrics.
`NodeRegistrationHealthy` is informational. `RegistrationPaused` is the breaker: set when launches in a row
never became nodes, it holds the pool back in planning (`controller.scheduling.breaker`) until one does, or
until pool or class change, so that a broken image does not buy instance after instance.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import Final

import attrs
import structlog

from controller.clock import Clock
from controller.cluster import Mirror, Writer, conditions_of, with_conditions
from controller.kube import DONE, Event, EventType, Key, KubeError, ObjectRef, Recorder, Requeue, kinds
from controller.nodeclaims.step import pool_of, state
from controller.observability.logs import ref
from controller.scheduling import PAUSE
from framework.api import ClaimCondition, ConditionSet, ConditionStatus, NodeClaim, NodePool
from framework.api.condition_types import PoolCondition
from framework.api.conditions import AWAITING_RECONCILIATION, get

__all__ = ["CONDITION", "PAUSED", "Health", "RegistrationHealth", "RegistrationHealthReconciler", "judge"]

CONDITION: Final = PoolCondition.NODE_REGISTRATION_HEALTHY
PAUSED: Final = PoolCondition.REGISTRATION_PAUSED
_log: Final = structlog.get_logger("controller")
_SIZE: Final = 4
_BREAKS_AT: Final = 4
"""Launches in a row that never registered before the pool is paused."""
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

    def __init__(self, mirror: Mirror, writer: Writer, recorder: Recorder, clock: Clock) -> None:
        """Start empty."""
        self._mirror = mirror
        self._writer = writer
        self._recorder = recorder
        self._clock = clock
        self._rings: dict[str, deque[bool]] = {}
        self._in_a_row: dict[str, int] = {}

    def results(self, uid: str) -> tuple[bool, ...]:
        """Return a pool's results, oldest first."""
        return tuple(self._rings.get(uid, ()))

    def seed(self, uid: str, *results: bool) -> None:
        """Replace a pool's results."""
        self._rings[uid] = deque(results, maxlen=_SIZE)
        self._in_a_row.pop(uid, None)

    async def succeeded(self, claim: NodeClaim) -> None:
        """Note that a claim of the pool registered."""
        pool = self._pool(claim)
        if pool is None:
            return
        uid, conditions = pool.metadata.uid, conditions_of(pool)
        if judge((*self.results(uid), True)) is Health.HEALTHY:
            conditions = conditions.set_true(CONDITION, now=self._clock.now())
        if conditions.get(PAUSED) is not None:
            _log.info("launches register again; nodepool resumes", NodePool=ref(pool.name))
            conditions = conditions.clear(PAUSED)
        await self._write(pool, conditions)
        self._in_a_row.pop(uid, None)
        self._record(uid, ok=True)

    async def failed(self, claim: NodeClaim) -> None:
        """Note that a claim of the pool never launched or never registered."""
        pool = self._pool(claim)
        if pool is None:
            return
        uid, conditions, now = pool.metadata.uid, conditions_of(pool), self._clock.now()
        launched = state(claim, ClaimCondition.LAUNCHED)
        has_launched = launched.status is ConditionStatus.TRUE
        found = get(pool.status.conditions, CONDITION)
        known = found is not None and found.status is ConditionStatus.FALSE
        if judge((*self.results(uid), False)) is Health.UNHEALTHY and not known:
            if has_launched:
                reason, message = "RegistrationFailed", "Failed to register node"
            else:
                reason, message = launched.reason or "LaunchFailed", launched.message
            conditions = conditions.set_false(CONDITION, reason, message, now=now)
        if has_launched and not self._registered_since(claim):
            self._in_a_row[uid] = self._in_a_row.get(uid, 0) + 1
        if self._in_a_row.get(uid, 0) >= _BREAKS_AT and not conditions.is_true(PAUSED):
            text = self._tell_paused(pool, claim)
            conditions = conditions.set_true(PAUSED, "RegistrationFailed", text, now=now)
        await self._write(pool, conditions)
        self._record(uid, ok=False)

    def _registered_since(self, claim: NodeClaim) -> bool:
        """Tell whether another claim of the pool registered after this one came: then it was bad luck."""
        born, pool = claim.metadata.creation_timestamp, pool_of(claim)
        registered = (
            get(each.status.conditions, ClaimCondition.REGISTERED)
            for each in self._mirror.claims.values()
            if pool_of(each) == pool
        )
        return any(
            found is not None
            and found.status is ConditionStatus.TRUE
            and (born is None or found.last_transition_time is None or found.last_transition_time > born)
            for found in registered
        )

    def _tell_paused(self, pool: NodePool, claim: NodeClaim) -> str:
        resumes = (self._clock.now() + PAUSE).strftime("%H:%M:%S UTC")
        text = (
            f"{_BREAKS_AT} launches in a row did not register, NodeClaim {claim.name} the last; "
            f"nothing is launched until {resumes}, then one node at a time until one registers; "
            "a changed NodePool or node class is tried at once"
        )
        _log.error("nodepool is paused", NodePool=ref(pool.name), error=text)
        regarding = ObjectRef.of(kinds.NODEPOOL, pool.metadata)
        self._recorder.publish(
            Event(regarding=regarding, type=EventType.WARNING, reason=PAUSED, message=text)
        )
        return text

    def _record(self, uid: str, *, ok: bool) -> None:
        self._rings.setdefault(uid, deque(maxlen=_SIZE)).append(ok)

    def _pool(self, claim: NodeClaim) -> NodePool | None:
        pool = self._mirror.pools.get(pool_of(claim))
        if pool is None:
            return None
        owned = any(owner.uid == pool.metadata.uid for owner in claim.metadata.owner_references)
        return pool if owned else None

    async def _write(self, pool: NodePool, conditions: ConditionSet) -> None:
        """Write the conditions; a conflict is left to the next result."""
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
        pool = self._mirror.our_pool(key.name)
        if pool is None:
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
            conditions = conditions.clear(PAUSED)
            after = with_conditions(pool, conditions)
            status = attrs.evolve(after.status, node_class_observed_generation=generation)
            await self._writer.pool(pool, attrs.evolve(after, status=status))
        elif not self._health.results(pool.metadata.uid) and found.status is not ConditionStatus.UNKNOWN:
            ok = found.status is ConditionStatus.TRUE
            self._health.seed(pool.metadata.uid, *((True,) if ok else (False, False)))
        return DONE

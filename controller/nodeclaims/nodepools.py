"""The pool's own controllers: hash, readiness, validation, counter (spec core/lifecycle §9.2, §11).

Reconcile NodePools. Each writes only its own part: annotations, one condition, or the counts.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs

from controller.clock import Clock
from controller.cluster import Mirror, Writer, conditions_of, with_conditions
from controller.kube import DONE, Key, Requeue
from controller.nodeclaims.step import pool_of
from controller.observability import Metrics
from framework.api import (
    NODEPOOL_HASH_VERSION,
    ClaimCondition,
    ConditionSet,
    ConditionStatus,
    NodeClaim,
    NodePool,
    format_resources,
    labels,
    nodepool_hash,
    parse_quantity,
    parse_resources,
)
from framework.api.condition_types import PoolCondition
from framework.api.conditions import READY, get, is_true
from framework.api.hashes import HashedDocument, nodepool_document
from framework.api.validation import validate_nodepool

__all__ = ["PoolCounter", "PoolHash", "PoolReadiness", "PoolValidation"]

_COUNT_EVERY: Final = Requeue(timedelta(seconds=5))
_UNSYNCED: Final = Requeue(timedelta(seconds=1))
_COUNTED: Final = ("cpu", "ephemeral-storage", "memory", "nodes", "pods")
"""Present in every pool's status, zero or not."""


class PoolHash:
    """Writes what the template hashes to, on the pool and, after a change of version, on its claims."""

    name = "nodepool.hash"

    def __init__(self, mirror: Mirror, writer: Writer) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer

    async def reconcile(self, key: Key) -> Requeue:
        """Bring one pool's annotations up to date."""
        pool = self._mirror.our_pool(key.name)
        if pool is None or pool.deleting:
            return DONE
        current = nodepool_document(pool)
        if pool.metadata.annotations.get(labels.NODEPOOL_HASH_VERSION) != NODEPOOL_HASH_VERSION:
            for claim in tuple(self._mirror.claims.values()):
                if pool_of(claim) == pool.name and not claim.deleting:
                    await self._migrate(claim, current)
        await self._writer.pool(pool, _annotated_pool(pool, current.hash))
        return DONE

    async def _migrate(self, claim: NodeClaim, current: HashedDocument) -> None:
        """Give a claim of another version ours; one that drifted keeps its hash and stays drifted."""
        if claim.metadata.annotations.get(labels.NODEPOOL_HASH_VERSION) == NODEPOOL_HASH_VERSION:
            return
        drifted = is_true(claim.status.conditions, ClaimCondition.DRIFTED)
        made_from = {labels.NODEPOOL_HASH: current.hash, labels.NODEPOOL_HASH_DOCUMENT: current.text}
        annotations = {
            **claim.metadata.annotations,
            labels.NODEPOOL_HASH_VERSION: NODEPOOL_HASH_VERSION,
            **({} if drifted else made_from),
        }
        metadata = attrs.evolve(claim.metadata, annotations=annotations)
        await self._writer.claim(claim, attrs.evolve(claim, metadata=metadata))


def _annotated_pool(pool: NodePool, current: str) -> NodePool:
    annotations = {
        **pool.metadata.annotations,
        labels.NODEPOOL_HASH: current,
        labels.NODEPOOL_HASH_VERSION: NODEPOOL_HASH_VERSION,
    }
    return attrs.evolve(pool, metadata=attrs.evolve(pool.metadata, annotations=annotations))


class PoolReadiness:
    """Says whether the pool's node class can be launched with (core/api §3.2)."""

    name = "nodepool.readiness"

    def __init__(self, mirror: Mirror, writer: Writer, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer
        self._clock = clock

    async def reconcile(self, key: Key) -> Requeue:
        """Judge one pool."""
        pool = self._mirror.our_pool(key.name)
        if pool is None or pool.deleting:
            return DONE
        conditions = self._judged(conditions_of(pool), pool)
        await self._writer.pool(pool, with_conditions(pool, conditions))
        return DONE

    def _judged(self, conditions: ConditionSet, pool: NodePool) -> ConditionSet:
        reference, now = pool.spec.template.spec.node_class_ref, self._clock.now()
        type = PoolCondition.NODE_CLASS_READY
        node_class = self._mirror.node_class(reference)
        if node_class is None:
            text = f"{reference.kind} {reference.name} not found"
            return conditions.set_false(type, "NodeClassNotFound", text, now=now)
        if node_class.deleting:
            text = f"{reference.kind} {reference.name} is being deleted"
            return conditions.set_false(type, "NodeClassTerminating", text, now=now)
        ready = get(node_class.status.conditions, READY)
        if ready is None or ready.status is ConditionStatus.UNKNOWN:
            text = f"{reference.kind} {reference.name} has not been judged yet"
            return conditions.set_false(type, "NodeClassReadinessUnknown", text, now=now)
        if ready.status is ConditionStatus.FALSE:
            return conditions.set_false(type, ready.reason, ready.message, now=now)
        return conditions.set_true(type, now=now)


class PoolValidation:
    """Checks what the schema cannot (core/api §10)."""

    name = "nodepool.validation"

    def __init__(self, mirror: Mirror, writer: Writer, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer
        self._clock = clock

    async def reconcile(self, key: Key) -> Requeue:
        """Judge one pool."""
        pool = self._mirror.our_pool(key.name)
        if pool is None or pool.deleting:
            return DONE
        conditions, now = conditions_of(pool), self._clock.now()
        type = PoolCondition.VALIDATION_SUCCEEDED
        problems = validate_nodepool(pool)
        if problems:
            text = "; ".join(str(problem) for problem in problems)
            conditions = conditions.set_false(type, "NodePoolValidationFailed", text, now=now)
        else:
            conditions = conditions.set_true(type, now=now)
        await self._writer.pool(pool, with_conditions(pool, conditions))
        return DONE


class PoolCounter:
    """Counts what the pool's nodes have and whether they are as it asks (spec core/lifecycle §11.3).

    GitOps tools judge a rollout by one object: `observedGeneration`, `drifted` and RolloutComplete are
    written together.
    """

    name = "nodepool.counter"

    def __init__(self, mirror: Mirror, writer: Writer, metrics: Metrics, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer
        self._metrics = metrics
        self._clock = clock

    async def reconcile(self, key: Key) -> Requeue:
        """Write one pool's counts."""
        pool = self._mirror.our_pool(key.name)
        if pool is None:
            return DONE
        if not self._mirror.is_synced():
            return _UNSYNCED
        usage = dict.fromkeys(_COUNTED, 0) | dict(self._mirror.usage(pool.name))
        resources = {name: parse_quantity(text) for name, text in format_resources(usage).items()}
        drifted = self._drifted(pool)
        judged = with_conditions(pool, self._rollout(conditions_of(pool), drifted))
        status = attrs.evolve(
            judged.status,
            resources=resources,
            nodes=usage["nodes"],
            drifted=drifted,
            observed_generation=pool.metadata.generation,
        )
        await self._writer.pool(pool, attrs.evolve(judged, status=status))
        self._show(pool, usage)
        return _COUNT_EVERY

    def _drifted(self, pool: NodePool) -> int:
        """Return how many of the pool's claims that stay are drifted, by condition or by hash."""
        current = nodepool_hash(pool)
        return sum(
            pool_of(claim) == pool.name
            and not claim.deleting
            and (is_true(claim.status.conditions, ClaimCondition.DRIFTED) or _of_another_hash(claim, current))
            for claim in tuple(self._mirror.claims.values())
        )

    def _rollout(self, conditions: ConditionSet, drifted: int) -> ConditionSet:
        now = self._clock.now()
        if drifted:
            return conditions.set_false(
                PoolCondition.ROLLOUT_COMPLETE, "NodesDrifted", f"{drifted} to replace", now=now
            )
        return conditions.set_true(PoolCondition.ROLLOUT_COMPLETE, now=now)

    def _show(self, pool: NodePool, usage: dict[str, int]) -> None:
        pools = self._metrics.pools
        for gauge, amounts in ((pools.usage, usage), (pools.limit, parse_resources(pool.spec.limits))):
            for resource, amount in amounts.items():
                value = amount / 1000 if resource == "cpu" else amount
                label = resource.lower().replace("-", "_")
                gauge.labels(resource_type=label, nodepool=pool.name).set(value)


def _of_another_hash(claim: NodeClaim, current: str) -> bool:
    """Tell whether the claim was made from another template, where the hashes can be compared."""
    annotations = claim.metadata.annotations
    return (
        annotations.get(labels.NODEPOOL_HASH_VERSION) == NODEPOOL_HASH_VERSION
        and annotations.get(labels.NODEPOOL_HASH, current) != current
    )

"""Static pools: as many nodes as `spec.replicas` says, whether pods need them or not (core/scheduling §17).

Two reconcilers of NodePools behind the gate StaticCapacity, one that adds claims and one that takes them
away. Disruption budgets do not apply; drift of static pools is disruption's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final, Protocol

import attrs
import structlog

from controller.clock import Clock
from controller.cluster import Mirror, Writer
from controller.kube import DONE, Change, Key, Requeue
from controller.observability.logs import ref
from controller.provisioning.pools import is_ready
from controller.scheduling import Pod, StateNode, has_do_not_disrupt, is_daemonset, launch_slots
from framework.api import ClaimCondition, NodeClaim, NodePool, labels, parse_resources
from framework.api.conditions import is_true

__all__ = ["StaticDeprovisioning", "StaticProvisioning", "pool_keys", "victims"]

_log: Final = structlog.get_logger("controller")
_EVERY: Final = Requeue(timedelta(minutes=1))
_AT_LIMIT: Final = Requeue(timedelta(seconds=30))
_UNLISTED: Final = Requeue(timedelta(seconds=1))


Cost = Callable[[Iterable[Pod], timedelta | None, timedelta], float]
"""What disrupting a node costs by its pods, life and age; no unit (core/disruption §5)."""


class StaticLauncher(Protocol):
    """Creates claims from a template; `ClaimWriter` in production."""

    async def launch_static(self, pool: NodePool, *, reason: str) -> str:
        """Create the claim and return its name."""
        ...


@attrs.frozen(kw_only=True)
class _Count:
    """A static pool's claims by what becomes of them."""

    active: tuple[NodeClaim, ...]
    leaving: int
    """Being replaced by a command, still serving."""
    deleting: int

    @classmethod
    def of(cls, mirror: Mirror, pool: NodePool) -> _Count:
        mine = [c for c in mirror.claims.values() if c.metadata.labels.get(labels.NODEPOOL) == pool.name]
        alive = [claim for claim in mine if not claim.deleting]
        active = tuple(claim for claim in alive if not mirror.is_marked(claim))
        return cls(active=active, leaving=len(alive) - len(active), deleting=len(mine) - len(alive))

    @property
    def unregistered(self) -> int:
        """How many are on their way."""
        registered = ClaimCondition.REGISTERED
        return sum(not is_true(each.status.conditions, registered) for each in self.active)

    @property
    def total(self) -> int:
        return len(self.active) + self.leaving + self.deleting


class StaticProvisioning:
    """Adds claims up to the pool's replicas."""

    name = "static.provisioning"

    def __init__(self, mirror: Mirror, launcher: StaticLauncher, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._launcher = launcher
        self._clock = clock

    async def reconcile(self, key: Key) -> Requeue:
        """Create what one pool lacks."""
        pool = self._mirror.our_pool(key.name)
        if pool is None or pool.spec.replicas is None or pool.deleting:
            return DONE
        if not self._mirror.listed:
            return _UNLISTED
        count = _Count.of(self._mirror, pool)
        if not is_ready(pool) or len(count.active) + count.leaving >= pool.spec.replicas:
            return _EVERY
        wanted = pool.spec.replicas - len(count.active)
        limit = parse_resources(pool.spec.limits).get("nodes")
        granted = wanted if limit is None else min(wanted, limit - count.total)
        granted = min(granted, self._shared(pool, granted))
        slots = launch_slots(pool, self._clock.now())
        if slots is not None and slots - count.unregistered < granted:
            granted = slots - count.unregistered
            _log.info("pool is held back until a launch registers", NodePool=ref(pool.name), granted=granted)
        elif granted <= 0:
            _log.info("node limit reached", NodePool=ref(pool.name), limit=limit, wanted=wanted)
            return _AT_LIMIT
        launches = (self._launcher.launch_static(pool, reason="provisioned") for _ in range(granted))
        await asyncio.gather(*launches)
        return _EVERY

    def _shared(self, pool: NodePool, wanted: int) -> int:
        """Return how many of the wanted nodes the limit leaves that the pool shares with others."""
        config = self._mirror.config_of(pool)
        limit = parse_resources(config.spec.limits).get("nodes") if config is not None else None
        if config is None or limit is None:
            return wanted
        return limit - sum(_Count.of(self._mirror, each).total for each in self._mirror.governed_by(config))


@attrs.frozen(kw_only=True, eq=False)
class StaticDeprovisioning:
    """Takes claims away down to the pool's replicas."""

    mirror: Mirror
    writer: Writer
    clock: Clock
    cost: Cost

    name = "static.deprovisioning"

    async def reconcile(self, key: Key) -> Requeue:
        """Delete what one pool has too many."""
        pool = self.mirror.our_pool(key.name)
        if pool is None or pool.spec.replicas is None or pool.deleting:
            return DONE
        if not self.mirror.listed:
            return _UNLISTED
        active = _Count.of(self.mirror, pool).active
        excess = len(active) - pool.spec.replicas
        if excess > 0:
            nodes = {node.claim_name: node for node in self.mirror.state_nodes() if node.claim_name}
            for claim in victims(active, nodes, self.clock.now(), self.cost)[:excess]:
                _log.info("deleting nodeclaim", NodeClaim=ref(claim.name), reason="replicas")
                await self.writer.delete_claim(claim)
        return _EVERY


def victims(
    claims: Iterable[NodeClaim],
    nodes: dict[str, StateNode],
    now: datetime,
    cost: Cost,
) -> tuple[NodeClaim, ...]:
    """Return the claims in the order in which they go.

    First those that never launched, then empty nodes, then nodes without do-not-disrupt pods, then the
    rest; within each the cheapest to disrupt first, ties by name.
    """

    def rank(claim: NodeClaim) -> tuple[int, float, str]:
        node = nodes.get(claim.name)
        if not claim.status.provider_id or node is None:
            return (0, 0.0, claim.name)
        protected = any(has_do_not_disrupt(pod, now) for pod in node.pods)
        empty = not protected and all(is_daemonset(pod) for pod in node.pods)
        age = now - claim.metadata.creation_timestamp if claim.metadata.creation_timestamp else timedelta()
        own = cost(node.pods, claim.spec.expire_after, age)
        return (1 if empty else 3 if protected else 2, own, claim.name)

    return tuple(sorted(claims, key=rank))


def pool_keys(change: Change) -> Iterable[Key]:
    """Return the key of the pool that a changed claim belongs to, when a claim came, went or is going."""
    old, new = change.old, change.new
    if old is not None and new is not None and old.deleting == new.deleting:
        return ()
    name = change.current.metadata.labels.get(labels.NODEPOOL)
    return (Key(name=name),) if name else ()

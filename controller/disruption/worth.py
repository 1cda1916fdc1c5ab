"""Whether a consolidation is worth the trouble (design: SchedulingConfig; spec core/disruption §17).

Asked by multi-node and single-node consolidation after price and simulation said yes. Pure. Without a
SchedulingConfig and without the Balanced policy every cheaper plan is worth it, as with the peer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import Final

import attrs

from controller.disruption.command import Candidate, Command
from controller.disruption.costs import node_price, reschedule_cost
from controller.disruption.policy import MinSavings
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.world import World
from controller.scheduling import Reason, StateNode, is_active, is_daemonset
from framework.api import ConsolidationPolicy, labels

__all__ = ["BALANCED_THRESHOLD", "PoolTotals", "Worth", "pool_totals", "resting", "score"]

BALANCED_THRESHOLD: Final = 0.5
"""A move's share of savings must be at least this part of its share of disruption (1/k, k = 2)."""
_DOUBLE_RUNNING: Final = timedelta(minutes=10)
"""How long old and new nodes run side by side: boot, start of the pods, drain; for the payback period."""
_LONGEST_BACKOFF: Final = timedelta(hours=24)


@attrs.frozen(kw_only=True)
class PoolTotals:
    """What a pool costs, in USD per hour, and what disrupting all of it would."""

    cost: float
    disruption: float


def pool_totals(world: World) -> Mapping[str, PoolTotals]:
    """Return the totals of every pool, over all its nodes."""
    cost = dict.fromkeys(world.pools, 0.0)
    disruption = dict.fromkeys(world.pools, 0.0)
    for node in world.snapshot.nodes:
        if node.pool in cost and node.managed:
            cost[node.pool] += _price(world, node)
            movable = (pod for pod in node.pods if is_active(pod) and not is_daemonset(pod))
            disruption[node.pool] += reschedule_cost(movable)
    return {name: PoolTotals(cost=cost[name], disruption=disruption[name]) for name in cost}


def score(savings: float, disruption: float, totals: PoolTotals) -> float:
    """Return the share of savings over the share of disruption; infinite when nothing is disrupted."""
    if savings <= 0 or totals.cost <= 0 or totals.disruption <= 0:
        return 0.0
    if disruption <= 0:
        return math.inf
    return (savings / totals.cost) / (disruption / totals.disruption)


class Worth:
    """Judges commands on one picture; the pools' totals are worked out once."""

    def __init__(self, world: World) -> None:
        """Keep the picture."""
        self._world = world

    @cached_property
    def totals(self) -> Mapping[str, PoolTotals]:
        """Return the totals of every pool."""
        return pool_totals(self._world)

    def objection(self, command: Command) -> Reason | None:
        """Return why the consolidation is not worth it, or None; every pool concerned must agree."""
        for pool in sorted({candidate.pool.name for candidate in command.candidates}):
            reason = (
                _too_small(command, self._world.policy(pool).min_savings)
                or _swings(command, self._world, pool)
                or self._unbalanced(command, pool)
            )
            if reason is not None:
                return reason
        return None

    def score_of(self, command: Command, pool: str) -> float:
        """Return the pool's score of the command; its part of the savings goes by its part of the price."""
        own = [candidate for candidate in command.candidates if candidate.pool.name == pool]
        source = sum(candidate.price or 0.0 for candidate in command.candidates)
        share = sum(candidate.price or 0.0 for candidate in own) / source if source > 0 else 0.0
        disruption = sum(reschedule_cost(candidate.pods) for candidate in own)
        return score((command.savings or 0.0) * share, disruption, self.totals[pool])

    def _unbalanced(self, command: Command, pool: str) -> Reason | None:
        policy = self._world.pools[pool].spec.disruption.consolidation_policy
        if policy is not ConsolidationPolicy.BALANCED:
            return None
        value = self.score_of(command, pool)
        if value >= BALANCED_THRESHOLD:
            return None
        text = (
            f"its share of the savings is {value:.2f} of its share of the disruption, and policy Balanced"
            f" asks for {BALANCED_THRESHOLD}"
        )
        return blocked(BlockCode.BALANCED, text, obj=f"NodePool/{pool}")


def resting(candidate: Candidate, world: World) -> Reason | None:
    """Return that the candidate's pool had a command less than its cooldown ago, or None."""
    policy = world.policy(candidate.pool.name)
    if not policy.cooldown:
        return None
    governed = [name for name in world.pools if world.policy(name).config == policy.config]
    last = [world.history.last_command[name] for name in governed if name in world.history.last_command]
    if not last or world.now - max(last) >= policy.cooldown:
        return None
    text = (
        f"SchedulingConfig {policy.config} asks for {policy.cooldown} of quiet after each command,"
        f" and the last one was {_whole(world.now - max(last))} ago"
    )
    return blocked(BlockCode.COOLDOWN, text, obj=f"NodePool/{candidate.pool.name}")


def _too_small(command: Command, wanted: MinSavings) -> Reason | None:
    savings = command.savings or 0.0
    before = sum(candidate.price or 0.0 for candidate in command.candidates)
    new = sum(planned.price for planned in command.replacements)
    if wanted.per_hour is not None and savings < wanted.per_hour:
        text = f"it would save ${savings:.4f} an hour, less than minSavings.perHour ${wanted.per_hour:.4f}"
    elif wanted.percent is not None and savings * 100 < wanted.percent * before:
        share = 100 * savings / before if before else 0.0
        text = f"it would save {share:.1f}%, less than minSavings.percent {wanted.percent}"
    elif wanted.payback is not None and savings * wanted.payback < new * _DOUBLE_RUNNING:
        text = (
            f"${savings:.4f} an hour would not pay within {wanted.payback} for running old and new nodes"
            f" side by side (minSavings.paybackPeriod)"
        )
    else:
        return None
    return blocked(BlockCode.SAVINGS_TOO_SMALL, text)


def _swings(command: Command, world: World, pool: str) -> Reason | None:
    """Return that the pool goes back and forth between types and is to rest, longer each time."""
    cooldown = world.policy(pool).cooldown
    if not cooldown or not command.replacements:
        return None
    before = frozenset(candidate.type_name for candidate in command.candidates)
    after = frozenset(name for planned in command.replacements for name in planned.instance_types[:1])
    times = world.history.reversals(pool, before, after)
    if not times:
        return None
    last = max(move.at for move in world.history.moves if move.pool == pool)
    wait = min(cooldown * 2**times, _LONGEST_BACKOFF)
    if world.now - last >= wait:
        return None
    text = (
        f"NodePool {pool} goes back and forth between {', '.join(sorted(before))} and"
        f" {', '.join(sorted(after))} ({times} times in 24 h); it rests for {_whole(wait)}"
    )
    return blocked(BlockCode.OSCILLATION, text, obj=f"NodePool/{pool}")


def _price(world: World, node: StateNode) -> float:
    found = world.types_by_name.get(node.pool or "", {}).get(node.labels.get(labels.INSTANCE_TYPE, ""))
    return (node_price(found, node.labels) or 0.0) if found is not None else 0.0


def _whole(span: timedelta) -> timedelta:
    return timedelta(seconds=round(span.total_seconds()))

"""How fast drift goes through a pool: delay, canary, pause on failure (design: SchedulingConfig.rollout).

Asked by drift before it simulates; the loop writes the pool's condition by `pauses`. Pure. Off unless a
SchedulingConfig asks for it. A pause holds until what the nodes drift from changes, so it survives a
restart: the condition on the pool carries the target it was set for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from controller.disruption.command import Candidate
from controller.disruption.drifting import drifted_since
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.world import World
from controller.scheduling import Reason
from framework.api import ClaimCondition, ConditionStatus, NodePool, conditions, labels

__all__ = ["PAUSED", "held_by_rollout", "pauses", "target_of"]

PAUSED: Final = "RolloutPaused"
"""The pool's condition while failed replacements stop its rollout."""
_FAILURES: Final = 2
"""Replacements in a row that must fail: a single one may be bad luck with one machine."""


def target_of(world: World, pool: str) -> str:
    """Return a short name of what the pool's nodes drift from now; empty when none is drifted."""
    facts = set()
    for claim in world.claims.values():
        if claim.metadata.labels.get(labels.NODEPOOL) == pool:
            drifted = conditions.get(claim.status.conditions, ClaimCondition.DRIFTED)
            if drifted is not None and drifted.status is ConditionStatus.TRUE:
                facts.add(f"{drifted.reason}/{drifted.message}")
    return hashlib.sha256("\n".join(sorted(facts)).encode()).hexdigest()[:8] if facts else ""


def held_by_rollout(candidate: Candidate, world: World) -> Reason | None:
    """Return why the rollout of the candidate's pool leaves it alone for now, or None."""
    pool = candidate.pool
    rollout = world.policy(pool.name).rollout
    text = None
    drifted = world.now - drifted_since(candidate)
    if drifted < rollout.delay:
        text = f"it is drifted for {drifted}, and rollout.delay is {rollout.delay}"
    elif rollout.pause_on_failure and is_paused(pool, target_of(world, pool.name)):
        text = f"the rollout of NodePool {pool.name} is paused, since replacements failed to register"
    elif rollout.canary is not None and _canaries(world, pool.name) >= rollout.canary:
        done = world.history.drift_successes.get(pool.name, 0)
        if done < rollout.canary:
            text = f"{done} of the first {rollout.canary} replacements (rollout.canary) are ready"
    if text is None:
        return None
    return blocked(BlockCode.ROLLOUT, text, obj=f"NodePool/{pool.name}")


def is_paused(pool: NodePool, target: str) -> bool:
    """Return whether the pool's rollout to that target is paused."""
    condition = conditions.get(pool.status.conditions, PAUSED)
    return (
        condition is not None
        and condition.status is ConditionStatus.TRUE
        and condition.message.endswith(_mark(target))
    )


def pauses(world: World) -> Mapping[str, str | None]:
    """Return which pools' condition must change: to paused with that message, or back with None."""
    wanted: dict[str, str | None] = {}
    for name, pool in sorted(world.pools.items()):
        target, rollout = target_of(world, name), world.policy(name).rollout
        failures = world.history.drift_failures.get(name, 0)
        condition = conditions.get(pool.status.conditions, PAUSED)
        stands = condition is not None and condition.status is ConditionStatus.TRUE
        if rollout.pause_on_failure and target and failures >= _FAILURES and not is_paused(pool, target):
            wanted[name] = (
                f"{failures} replacements in a row failed to come up (launch or registration); the rollout"
                f" stops until its target changes {_mark(target)}"
            )
        elif stands and not (rollout.pause_on_failure and is_paused(pool, target)):
            wanted[name] = None
    return wanted


def _canaries(world: World, pool: str) -> int:
    """Return how many replacements of the rollout are ready or on their way."""
    running = 0
    for name in world.busy:
        claim = world.claims.get(name)
        if claim is not None and claim.metadata.labels.get(labels.NODEPOOL) == pool:
            running += conditions.is_true(claim.status.conditions, ClaimCondition.DRIFTED)
    return running + world.history.drift_successes.get(pool, 0)


def _mark(target: str) -> str:
    return f"[target {target}]"

"""What the SchedulingConfig that governs a pool says about disrupting its nodes (design: SchedulingConfig).

Read by the methods through `World.policy`. The defaults are Karpenter's rules: without a
SchedulingConfig nothing here changes a decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

import attrs

from controller.scheduling.pools import governing_config
from framework.api import NodePool, SchedulingConfig
from framework.api.schedulingconfig import StaticDriftOrder

__all__ = ["DEFAULT_POLICY", "MinSavings", "Policies", "PoolPolicy", "Rollout", "policies"]

_SPOT_FLOOR: Final = 15
"""The floor of cheaper types that a SchedulingConfig has unless it says otherwise."""


@attrs.frozen(kw_only=True)
class MinSavings:
    """What a consolidation must at least save; every part that is set must hold."""

    percent: float | None = None
    """Of the candidates' price."""
    per_hour: float | None = None
    """USD per hour."""
    payback: timedelta | None = None
    """Longest time in which the savings must have paid for running old and new nodes side by side."""


@attrs.frozen(kw_only=True)
class Rollout:
    """How drift is rolled out over a pool."""

    delay: timedelta = timedelta(0)
    """How long a node must have been drifted."""
    canary: int | None = None
    """Nodes to replace first; the rest waits until they are initialized. None for no canary."""
    pause_on_failure: bool = False
    """Whether replacements that fail to come up stop the rollout."""


@attrs.frozen(kw_only=True)
class PoolPolicy:
    """How disruption treats one pool beyond what its NodePool says."""

    config: str | None = None
    """Name of the SchedulingConfig; None when no one governs the pool."""
    node_cost: float = 0.0
    """USD per hour added to the price of each node."""
    min_cheaper_types: int | None = None
    """Floor of cheaper types for spot-to-spot; None leaves 15 and the feature gate."""
    min_savings: MinSavings = MinSavings()
    cooldown: timedelta = timedelta(0)
    """Quiet time after a command in a governed pool."""
    rollout: Rollout = Rollout()
    static_drift_deletes_first: bool = False
    """Whether a static pool at its limit deletes a drifted node before making its replacement."""


DEFAULT_POLICY: Final = PoolPolicy()

Policies = Mapping[str, PoolPolicy]
"""By pool name; a pool that is missing has the defaults."""


def policies(pools: Iterable[NodePool], configs: Sequence[SchedulingConfig]) -> Policies:
    """Return what the SchedulingConfigs say about each pool that one of them governs."""
    found = {}
    for pool in pools:
        config = governing_config(pool, configs)
        if config is not None:
            found[pool.name] = _policy(config)
    return found


def _policy(config: SchedulingConfig) -> PoolPolicy:
    spec = config.spec
    savings, rollout = spec.disruption.min_savings, spec.rollout
    floor = spec.spot.min_cheaper_types
    return PoolPolicy(
        config=config.name,
        node_cost=spec.node_cost,
        min_cheaper_types=floor if floor != _SPOT_FLOOR else None,
        min_savings=MinSavings()
        if savings is None
        else MinSavings(percent=savings.percent, per_hour=savings.per_hour, payback=savings.payback_period),
        cooldown=spec.disruption.cooldown,
        rollout=Rollout()
        if rollout is None
        else Rollout(
            delay=rollout.delay,
            canary=rollout.canary,
            pause_on_failure=bool(rollout.pause_on_failure),
        ),
        static_drift_deletes_first=rollout is not None
        and rollout.static_drift is StaticDriftOrder.DELETE_FIRST,
    )

"""The frozen picture that every disruption decision is made from.

Built by the loop (`controller.disruption.controller`) before each method, by tests and by the case
runner; read by the survey, the methods, validation and `explain`. Holds values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

import attrs

from controller.disruption.headroom import kept_rooms
from controller.disruption.history import History
from controller.disruption.policy import DEFAULT_POLICY, Policies, PoolPolicy
from controller.scheduling import InstanceType, Options, Pod, PodDisruptionBudget, Snapshot, StateNode
from controller.scheduling.overlays import overlaid_types
from framework.api import NodeClaim, NodePool, conditions

__all__ = ["Gates", "World"]


@attrs.frozen(kw_only=True)
class Gates:
    """What an operator switched on; the defaults are those of v1.9 (observability §6)."""

    spot_to_spot: bool = False
    """Spot nodes may be replaced by cheaper spot nodes (§11)."""
    protect_settling_nodes: bool = False
    """A node inside its consolidateAfter takes no pods of consolidated nodes ([1.14], scheduling §10)."""


@attrs.frozen(kw_only=True)
class World:
    """Everything a decision may look at, as of `now`."""

    snapshot: Snapshot
    claims: Mapping[str, NodeClaim]
    """Every claim by name, with its conditions."""
    instance_types: Mapping[str, tuple[InstanceType, ...]]
    """By pool name; a pool whose types could not be listed is missing."""
    options: Options
    """What the engine is to be asked with; methods only change what they must."""
    busy: frozenset[str] = frozenset()
    """Names of the claims that belong to a running command."""
    gates: Gates = Gates()
    history: History = attrs.field(factory=History)
    """What was done lately."""
    policies: Policies = attrs.field(factory=dict)
    """What SchedulingConfigs say, by pool name."""

    @property
    def now(self) -> datetime:
        """Return the instant the picture was taken at."""
        return self.snapshot.now

    @cached_property
    def pools(self) -> Mapping[str, NodePool]:
        """Return the pools by name."""
        return {pool.name: pool for pool in self.snapshot.pools}

    @cached_property
    def nodes(self) -> Mapping[str, StateNode]:
        """Return the state nodes by name."""
        return {node.name: node for node in self.snapshot.nodes}

    @cached_property
    def types_by_name(self) -> Mapping[str, Mapping[str, InstanceType]]:
        """Return instance types by pool and name, with the prices and capacities that overlays give them."""
        overlays = self.snapshot.node_overlays
        return {
            name: {
                each.name: each
                for each in (
                    overlaid_types(self.pools[name], types, overlays) if name in self.pools else types
                )
            }
            for name, types in self.instance_types.items()
        }

    @cached_property
    def launchable(self) -> Mapping[str, tuple[InstanceType, ...]]:
        """Return the instance types of the pools that could launch a replacement now (scheduling §4)."""
        return {
            name: types
            for name, types in self.instance_types.items()
            if name in self.pools and _may_launch(self.pools[name])
        }

    @cached_property
    def budgets_by_namespace(self) -> Mapping[str, tuple[PodDisruptionBudget, ...]]:
        """Return the PodDisruptionBudgets of each namespace, by name."""
        found: dict[str, list[PodDisruptionBudget]] = {}
        for budget in self.snapshot.pdbs:
            found.setdefault(budget.namespace, []).append(budget)
        return {space: tuple(sorted(each, key=lambda b: b.name)) for space, each in found.items()}

    def pod_budgets(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the PodDisruptionBudgets that select the pod."""
        inside = self.budgets_by_namespace.get(pod.namespace, ())
        return tuple(budget for budget in inside if budget.covers(pod.namespace, pod.labels))

    def claim_of(self, node: StateNode) -> NodeClaim | None:
        """Return the node's claim, or None for a node that is not ours."""
        return self.claims.get(node.claim_name) if node.claim_name is not None else None

    @cached_property
    def kept_rooms(self) -> Mapping[str, int]:
        """Return by name of idle node how many virtual pods of headroom only it has room for."""
        return kept_rooms(self)

    def policy(self, pool: str) -> PoolPolicy:
        """Return what the governing SchedulingConfig says about the pool, or the defaults."""
        return self.policies.get(pool, DEFAULT_POLICY)


def _may_launch(pool: NodePool) -> bool:
    ready = conditions.is_true(pool.status.conditions, conditions.READY, generation=pool.metadata.generation)
    return ready and pool.spec.replicas is None and not pool.deleting

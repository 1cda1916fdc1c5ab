"""Where the pods would go if some nodes were not there (spec core/disruption §6).

Called by drift, consolidation and validation with one `World`. The only place in this package that
runs the engine. Pure; never marks or moves anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

import attrs

from controller.disruption.command import Candidate
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.world import World
from controller.scheduling import (
    Placement,
    Plan,
    PlannedClaim,
    Pod,
    Problem,
    Reason,
    Snapshot,
    StateNode,
    Taint,
    Toleration,
    headroom_pods,
    is_currently_reschedulable,
    is_provisionable,
    solve,
)
from framework.api import labels

__all__ = ["Expired", "Simulation", "Simulator", "never"]

Expired = Callable[[], bool]
"""Whether the time for the search is over; asked often."""

_SHOWN_PODS: Final = 5
_SETTLING: Final = Taint(f"{labels.GROUP}/settling")
"""Exists in simulations only."""
_MAY_SETTLE: Final = Toleration(key=_SETTLING.key, operator="Exists")
"""Room kept free may be on any node: nothing is moved there."""


def never() -> bool:
    """Return that there is always time left."""
    return False


def _always() -> bool:
    return True


@attrs.frozen(kw_only=True)
class Simulation:
    """What the engine made of the cluster without the candidates."""

    claims: tuple[PlannedClaim, ...] = ()
    """All claims that would be opened, those for pods that were pending anyway included."""
    placements: tuple[Placement, ...] = ()
    """The candidates' pods that would go to existing nodes."""
    failures: tuple[tuple[str, Reason], ...] = ()
    """Pods that run now and would find no place, by `namespace/name`."""
    deleting: bool = False
    """A candidate is being deleted already: the attempt is to be dropped quietly."""

    @property
    def ok(self) -> bool:
        """Return whether every pod that runs now would have a place."""
        return not self.deleting and not self.failures

    def reason(self) -> Reason | None:
        """Return why it is not ok, five pods in the text and all of them below it; None if it is."""
        if self.deleting:
            return blocked(BlockCode.CANDIDATE_DELETING, "a candidate is being deleted already")
        if not self.failures:
            return None
        shown = "; ".join(f"{key} => {reason.short()}" for key, reason in self.failures[:_SHOWN_PODS])
        more = len(self.failures) - _SHOWN_PODS
        text = f"not all pods would schedule: {shown}" + (f" and {more} other(s)" if more > 0 else "")
        return blocked(BlockCode.PODS_DO_NOT_FIT, text, of=(reason for _, reason in self.failures))


class Simulator:
    """Runs simulations on one picture; what does not depend on the candidates is worked out once."""

    def __init__(self, world: World, *, consolidating: bool = False) -> None:
        """Collect the pods that every simulation has to place as well.

        When `consolidating`, new nodes are planned by first fit whatever the objective: a command may have
        one, and the cheapest mix of machines is often two. Nodes that only just came or filled take no pods,
        where that is asked for: by the gate ProtectSettlingNodes or the cooldown of a SchedulingConfig.
        """
        self._world = world
        self._search_is_over = _always if consolidating else never
        self._snapshot = _without_room_on_settling(world) if consolidating else world.snapshot
        self._pending = tuple(pod for pod in world.snapshot.pods if is_provisionable(pod))
        self._leaving = tuple(
            pod
            for node in sorted(world.snapshot.nodes, key=lambda each: each.name)
            if node.marked_for_deletion or node.deleting
            for pod in node.pods
            if self._moves(pod)
        )
        self._spare = tuple(
            attrs.evolve(pod, tolerations=(*pod.tolerations, _MAY_SETTLE))
            for pod in headroom_pods(world.snapshot)
        )
        self._spare_uids = frozenset(pod.uid for pod in self._spare)
        self._leaving_uids = frozenset(pod.uid for pod in self._leaving)
        self._pending_uids = frozenset(pod.uid for pod in self._pending)

    def without(self, candidates: Sequence[Candidate], *, expired: Expired = never) -> Simulation:
        """Return where the pods would go if the candidates' nodes were not there."""
        if any(each.node.marked_for_deletion or each.node.deleting for each in candidates):
            return Simulation(deleting=True)
        moving = tuple(pod for each in candidates for pod in each.node.pods if self._moves(pod))
        names = frozenset(each.name for each in candidates)
        plan = self._solve((*self._pending, *moving, *self._leaving, *self._spare), names, expired)
        uids = frozenset(pod.uid for pod in moving)
        return Simulation(
            claims=plan.claims,
            placements=tuple(placed for placed in plan.placements if placed.pod_uid in uids),
            failures=self._failures(plan),
        )

    def homeless(self, candidates: Sequence[Candidate]) -> tuple[Reason, ...]:
        """Return, for the candidates' pods that no other node takes, why each node does not; by pod."""
        moving = tuple(pod for each in candidates for pod in each.node.pods if self._moves(pod))
        problem = Problem(
            snapshot=self._snapshot,
            pods=moving,
            instance_types={},
            options=attrs.evolve(self._world.options, excluded=frozenset(each.name for each in candidates)),
        )
        return tuple(each.reason for each in solve(problem).unplaced)

    def _solve(self, pods: tuple[Pod, ...], excluded: frozenset[str], expired: Expired) -> Plan:
        problem = Problem(
            snapshot=self._snapshot,
            pods=pods,
            instance_types=self._world.launchable,
            options=attrs.evolve(self._world.options, excluded=excluded),
        )
        return solve(problem, expired=expired, searched=self._search_is_over)

    @cached_property
    def _lacking(self) -> frozenset[str]:
        """The virtual pods that there is no room for anyway; they keep nothing where it is."""
        plan = self._solve((*self._pending, *self._leaving, *self._spare), frozenset(), never)
        return frozenset(each.pod_uid for each in plan.unplaced)

    def _moves(self, pod: Pod) -> bool:
        budgets = self._world.budgets_by_namespace.get(pod.namespace, ())
        return is_currently_reschedulable(pod, budgets, self._world.now)

    def _failures(self, plan: Plan) -> tuple[tuple[str, Reason], ...]:
        failed = {
            each.pod_key: each.reason
            for each in plan.unplaced
            if each.pod_uid not in self._pending_uids and each.pod_uid not in self._spare_uids
        }
        spare = [each for each in plan.unplaced if each.pod_uid in self._spare_uids]
        if spare:
            failed |= {e.pod_key: e.reason for e in spare if e.pod_uid not in self._lacking}
        waiting = self._leaving_uids | self._pending_uids | self._spare_uids
        for placed in plan.placements:
            if placed.pod_uid in waiting:
                continue
            node = self._world.nodes[placed.node]
            if node.managed and not node.initialized:
                text = f"pod {placed.pod_key} would go to {node.name}, which is uninitialized"
                failed[placed.pod_key] = blocked(BlockCode.NOT_INITIALIZED, text, obj=f"Pod/{placed.pod_key}")
        return tuple(sorted(failed.items()))


def _without_room_on_settling(world: World) -> Snapshot:
    """Return the snapshot with a taint on every settling node, so that none is packed onto it."""
    if not world.gates.protect_settling_nodes and not any(each.cooldown for each in world.policies.values()):
        return world.snapshot
    nodes = tuple(
        attrs.evolve(node, taints=(*node.taints, _SETTLING)) if _settles(world, node) else node
        for node in world.snapshot.nodes
    )
    return attrs.evolve(world.snapshot, nodes=nodes)


def _settles(world: World, node: StateNode) -> bool:
    """Return whether the node is too young, or was too lately filled, to take pods of consolidated nodes."""
    pool = world.pools.get(node.pool or "")
    if pool is None or node.initialized_at is None:
        return False
    if world.now - node.initialized_at < world.policy(pool.name).cooldown:
        return True
    after = pool.spec.disruption.consolidate_after
    if not world.gates.protect_settling_nodes or after is None:
        return False
    return world.now - (node.last_pod_event or node.initialized_at) < after

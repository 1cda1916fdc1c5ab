"""Which nodes may be disrupted at all, and what keeps the others (spec core/disruption §3, §4).

Called once per loop and again by validation. Pure: a `World` in, a `Survey` out; the methods apply
their own predicates to it afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import attrs

from controller.disruption.budgets import Allowance, PoolCount, allowance
from controller.disruption.command import Candidate
from controller.disruption.costs import disruption_cost, node_price
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.world import World
from controller.scheduling import (
    Pod,
    Reason,
    StateNode,
    has_do_not_disrupt,
    is_active,
    is_evictable,
    is_reschedulable,
)
from framework.api import ClaimCondition, DisruptionReason, NodeClaim, NodePool, conditions, labels

__all__ = ["Blocked", "Survey", "allowances", "pod_block", "pool_counts", "survey"]


@attrs.frozen(kw_only=True)
class Blocked:
    """A node that no graceful method may touch, and why."""

    node: StateNode
    claim: NodeClaim | None
    reason: Reason
    waived: Candidate | None = None
    """The candidate it is for eventual methods: only pods block it and its claim has a grace period."""

    @property
    def silent(self) -> bool:
        """Whether no event is due: the node is not ours, or is being disrupted already."""
        return self.reason.code in (BlockCode.IN_COMMAND, BlockCode.UNMANAGED)


@attrs.frozen(kw_only=True)
class Survey:
    """Every node of the picture, either a candidate or blocked."""

    candidates: tuple[Candidate, ...]
    blocked: tuple[Blocked, ...]

    @property
    def awaits_pods(self) -> bool:
        """Whether a node is kept for pods promised to it: a rule that lifts with time, without any change."""
        return any(each.reason.code is BlockCode.NOMINATED for each in self.blocked)

    @cached_property
    def eventual(self) -> tuple[Candidate, ...]:
        """Return the candidates of methods that go over pods' heads where a grace period bounds the drain."""
        waived = [each.waived for each in self.blocked if each.waived is not None]
        return tuple(sorted((*self.candidates, *waived), key=lambda candidate: candidate.name))

    @cached_property
    def by_name(self) -> Mapping[str, Candidate]:
        """Return all candidates, eventual ones too, by node name."""
        return {candidate.name: candidate for candidate in self.eventual}


def survey(world: World) -> Survey:
    """Return which nodes may be disrupted, and for the others the first rule that forbids it."""
    found: list[Candidate] = []
    others: list[Blocked] = []
    for node in sorted(world.snapshot.nodes, key=lambda each: each.name):
        claim = world.claim_of(node)
        reason = _node_block(world, node, claim)
        if reason is not None or claim is None:
            others.append(Blocked(node=node, claim=claim, reason=reason or _unmanaged(node)))
            continue
        candidate = _candidate(world, node, claim)
        pod_reason = pod_block(world, node)
        if pod_reason is None:
            found.append(candidate)
        else:
            graced = claim.spec.termination_grace_period is not None
            waived = candidate if graced else None
            others.append(Blocked(node=node, claim=claim, reason=pod_reason, waived=waived))
    return Survey(candidates=tuple(found), blocked=tuple(others))


def pool_counts(world: World) -> Mapping[str, PoolCount]:
    """Return for every pool how many nodes its budgets count, and how many of these use budget up."""
    nodes = dict.fromkeys(world.pools, 0)
    disrupting = dict.fromkeys(world.pools, 0)
    for node in world.snapshot.nodes:
        claim = world.claim_of(node)
        if claim is None or node.pool not in nodes or not node.initialized:
            continue
        if conditions.is_true(claim.status.conditions, ClaimCondition.INSTANCE_TERMINATING):
            continue
        nodes[node.pool] += 1
        disrupting[node.pool] += not node.ready or node.marked_for_deletion
    return {pool: PoolCount(nodes=nodes[pool], disrupting=disrupting[pool]) for pool in nodes}


def allowances(world: World, reason: DisruptionReason) -> Mapping[str, Allowance]:
    """Return what the budgets of each pool allow for the reason now."""
    counts = pool_counts(world)
    return {
        name: allowance(pool, reason, counts[name], world.now) for name, pool in sorted(world.pools.items())
    }


def _candidate(world: World, node: StateNode, claim: NodeClaim) -> Candidate:
    pool = world.pools[node.pool or ""]
    found = world.types_by_name[pool.name].get(node.labels.get(labels.INSTANCE_TYPE, ""))
    price = node_price(found, node.labels) if found is not None else None
    born = claim.metadata.creation_timestamp or world.now
    return Candidate(
        node=node,
        claim=claim,
        pool=pool,
        instance_type=found,
        price=price + world.policy(pool.name).node_cost if price is not None else None,
        pods=tuple(pod for pod in node.pods if is_reschedulable(pod)),
        disruption_cost=disruption_cost(node.pods, claim.spec.expire_after, world.now - born),
        headroom=world.kept_rooms.get(node.name, 0),
    )


def _unmanaged(node: StateNode) -> Reason:
    return blocked(BlockCode.UNMANAGED, "the node has no NodeClaim", obj=f"Node/{node.name}")


def _node_block(world: World, node: StateNode, claim: NodeClaim | None) -> Reason | None:
    """Return the first rule about the node itself that forbids disrupting it, or None."""
    if claim is None:
        return _unmanaged(node)
    at = f"Node/{node.name}" if node.node_name else f"NodeClaim/{claim.name}"
    rules: tuple[tuple[bool, BlockCode, str], ...] = (
        (claim.name in world.busy, BlockCode.IN_COMMAND, "the node belongs to a running disruption command"),
        (node.node_name is None, BlockCode.NO_NODE, "the claim has no node yet"),
        (not node.initialized, BlockCode.NOT_INITIALIZED, "the node is not initialized"),
        (
            node.marked_for_deletion or node.deleting,
            BlockCode.MARKED_FOR_DELETION,
            "the node is being deleted or marked for deletion",
        ),
        (node.nominated, BlockCode.NOMINATED, "the node is nominated for a pending pod"),
        (
            node.annotations.get(labels.DO_NOT_DISRUPT) == "true",
            BlockCode.NODE_DO_NOT_DISRUPT,
            f"the node carries the annotation {labels.DO_NOT_DISRUPT}",
        ),
        (not node.pool, BlockCode.NO_POOL_LABEL, f"the node has no label {labels.NODEPOOL}"),
    )
    for broken, code, text in rules:
        if broken:
            return blocked(code, text, obj=at)
    return _pool_block(world, world.pools.get(node.pool or ""), node, at)


def _pool_block(world: World, pool: NodePool | None, node: StateNode, at: str) -> Reason | None:
    if pool is None:
        return blocked(BlockCode.POOL_NOT_FOUND, f"NodePool {node.pool} not found", obj=at)
    if not world.instance_types.get(pool.name):
        text = f"the instance types of NodePool {pool.name} could not be listed"
        return blocked(BlockCode.POOL_WITHOUT_TYPES, text, obj=at)
    return None


def pod_block(world: World, node: StateNode) -> Reason | None:
    """Return what the pods on the node forbid: every pod that does, under one reason; None for nothing."""
    found = list(_pod_reasons(world, node))
    if not found:
        return None
    first = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return attrs.evolve(first, text=first.text + more, children=tuple(found) if len(found) > 1 else ())


def _pod_reasons(world: World, node: StateNode) -> Iterator[Reason]:
    for pod in node.pods:
        if is_active(pod) and has_do_not_disrupt(pod, world.now):
            text = f"pod {pod.key} carries the annotation {labels.DO_NOT_DISRUPT}"
            yield blocked(BlockCode.POD_DO_NOT_DISRUPT, text, obj=f"Pod/{pod.key}")
    for pod in node.pods:
        if pod.namespace in world.budgets_by_namespace and is_evictable(pod, world.now):
            reason = _budget_reason(world, pod)
            if reason is not None:
                yield reason


def _budget_reason(world: World, pod: Pod) -> Reason | None:
    found = [b for b in world.pod_budgets(pod) if not (b.always_allow_unhealthy and not pod.ready)]
    names = ", ".join(f"{budget.namespace}/{budget.name}" for budget in found)
    at = f"Pod/{pod.key}"
    if len(found) > 1:
        text = f"pod {pod.key} is selected by several PodDisruptionBudgets ({names}), so it cannot be evicted"
        return blocked(BlockCode.SEVERAL_BUDGETS, text, obj=at)
    if found and found[0].disruptions_allowed <= 0:
        text = f"PodDisruptionBudget {names} allows no disruption of pod {pod.key} now"
        return blocked(BlockCode.POD_DISRUPTION_BUDGET, text, obj=at)
    return None

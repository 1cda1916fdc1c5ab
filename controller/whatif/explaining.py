"""Why things are as they are: a pod without a node, a node that stays, what a pool may do.

Called by `charpente explain`. The engine and disruption give the reasons; here they are only asked for the
one object in question.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from controller.clock import Clock
from controller.disruption import methods
from controller.disruption.budgets import UNLIMITED, CalendarEntry, budget_problems, calendar
from controller.disruption.candidates import allowances, pool_counts
from controller.disruption.explain import NodeReport
from controller.disruption.explain import explain_node as node_report
from controller.scheduling import (
    Pod,
    Reason,
    StateNode,
    is_daemonset,
    is_mirror,
    is_provisionable,
    is_terminal,
    is_terminating,
    why_placed,
)
from controller.whatif.changes import Impossible
from controller.whatif.facts import Fact
from controller.whatif.forecast import Picture, planned
from framework.api import ConditionStatus, DisruptionReason, NodePool

__all__ = ["explain_budgets", "explain_node", "explain_pod", "explain_pool"]

_ALIKE: Final = 0.5
"""How alike a name must be to be suggested."""


def explain_pod(picture: Picture, key: str, clock: Clock) -> Reason:
    """Return where the pod runs or would go, or why it finds no place. Raises Impossible for an unknown one.

    `key` is `namespace/name`, or a name in the namespace `default`.
    """
    key = key if "/" in key else f"default/{key}"
    found = _pods(picture)
    if key not in found:
        raise Impossible(f"there is no Pod {key}{_nearest(key, found)}")
    pod, node = found[key]
    settled = _settled(pod, node)
    if settled is not None:
        return settled
    plan = planned(picture.problem, clock)
    for each in plan.unplaced:
        if each.pod_uid == pod.uid:
            return each.reason
    placed = why_placed(picture.problem, plan, pod.key)
    if placed is None:
        raise AssertionError(f"the plan says nothing of {key}, a pod of its problem")
    return placed


def _pods(picture: Picture) -> Mapping[str, tuple[Pod, StateNode | None]]:
    bound = {pod.key: (pod, node) for node in picture.snapshot.nodes for pod in node.pods}
    return {**bound, **{pod.key: (pod, None) for pod in picture.snapshot.pods}}


def _settled(pod: Pod, node: StateNode | None) -> Reason | None:
    """Return why no node is looked for on behalf of the pod, None when one is."""
    at = f"Pod/{pod.key}"
    if is_terminal(pod):
        return Reason(code=Fact.ENDED, text="the pod has ended", obj=at)
    if is_terminating(pod):
        return Reason(code=Fact.BEING_DELETED, text="the pod is being deleted", obj=at)
    if node is not None:
        return Reason(
            code=Fact.RUNS, text=f"is bound to node {node.name} of pool {node.pool or 'none'}", obj=at
        )
    if is_daemonset(pod) or is_mirror(pod):
        text = "the pod belongs to one node; no other is made for it"
        return Reason(code=Fact.BOUND_TO_ITS_NODE, text=text, obj=at)
    if pod.nominated_node_name:
        text = f"the scheduler makes room for it on node {pod.nominated_node_name}"
        return Reason(code=Fact.NOMINATED, text=text, obj=at)
    if not is_provisionable(pod):
        text = "the scheduler has not given it up yet: its condition PodScheduled is not False, Unschedulable"
        return Reason(code=Fact.NOT_WAITING, text=text, obj=at)
    return None


def explain_node(picture: Picture, name: str) -> NodeReport:
    """Return why the node stays, or how it may go. Raises Impossible for an unknown one."""
    known = picture.world.nodes
    if name not in known:
        raise Impossible(f"there is no Node {name}{_nearest(name, known)}")
    return node_report(picture.world, name, methods())


def explain_pool(picture: Picture, name: str) -> Reason:
    """Return what the pool can do now: its conditions, its nodes, its budgets. Raises Impossible."""
    pool = _pool(picture, name)
    nodes = [each for each in picture.nodes if each.pool == name]
    prices = [picture.price(each) for each in nodes]
    cost = sum(price for price in prices if price is not None)
    wrong = [each for each in pool.status.conditions if each.status is not ConditionStatus.TRUE]
    facts = [
        Reason(code=Fact.CONDITION, text=f"{each.type} is {each.status}", nearest=each.message or each.reason)
        for each in wrong
    ]
    number = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    facts.append(Reason(code=Fact.NODES, text=f"{number}, ${cost:.4f} an hour"))
    facts += _budgets(picture, pool)
    return Reason(
        code=Fact.NODE_POOL, text="what it may do now", obj=f"NodePool/{name}", children=tuple(facts)
    )


def explain_budgets(picture: Picture, name: str) -> Reason:
    """Return how many nodes of the pool may be disrupted, now and in the next 24 hours. Raises Impossible."""
    pool = _pool(picture, name)
    facts = list(_budgets(picture, pool))
    if not budget_problems(pool):
        spans = calendar(pool, pool_counts(picture.world)[name], picture.snapshot.now)
        facts += [Reason(code=Fact.CALENDAR, text=_span(entry)) for entry in spans]
    text = "disruption budgets, nodes at a time"
    return Reason(code=Fact.NODE_POOL, text=text, obj=f"NodePool/{name}", children=tuple(facts))


def _budgets(picture: Picture, pool: NodePool) -> Iterator[Reason]:
    for problem in budget_problems(pool):
        yield Reason(code=Fact.BUDGET, text=problem)
    for reason in DisruptionReason:
        allowed = allowances(picture.world, reason)[pool.name]
        yield Reason(code=Fact.BUDGET, text=allowed.sentence())


def _span(entry: CalendarEntry) -> str:
    limits = ", ".join(
        f"{reason} {'any number' if limit >= UNLIMITED else limit}" for reason, limit in entry.limits.items()
    )
    return f"{entry.start:%a %H:%M} to {entry.end:%a %H:%M} UTC: {limits}"


def _pool(picture: Picture, name: str) -> NodePool:
    known = picture.world.pools
    if name not in known:
        raise Impossible(f"there is no NodePool {name}{_nearest(name, known)}")
    return known[name]


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=_ALIKE)
    return f"; did you mean {near[0]}?" if near else "; nothing there has a name like it"

"""An independent check of a plan: every hard constraint, by the plainest code that can be read.

Called by tests, benchmarks and `simulate --verify`. Shares nothing with the engine but the data
classes, so that a mistake there is not repeated here; slow on purpose where that is clearer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from controller.scheduling.instancetypes import InstanceType
from controller.scheduling.plan import Plan, PlannedClaim, Problem
from controller.scheduling.pods import Pod
from controller.scheduling.requirements import Requirement, Requirements
from controller.scheduling.snapshot import StateNode
from controller.scheduling.taints import Taint, Toleration
from controller.scheduling.verifyconfigs import check_configs
from controller.scheduling.verifypods import check_pod_rules
from framework.api import labels
from framework.api.nodepool import NodePool
from framework.api.quantity import parse_resources

__all__ = ["verify"]

_MOST_TYPES = 600


def verify(problem: Problem, plan: Plan) -> tuple[str, ...]:
    """Return every violated constraint in words; empty when the plan holds."""
    pods = {pod.uid: pod for pod in problem.pods}
    return (
        *_each_pod_once(problem, plan),
        *_nodes(problem, plan, pods),
        *_claims(problem, plan, pods),
        *_limits(problem, plan),
        *_paused(problem, plan),
        *check_configs(problem, plan),
        *check_pod_rules(problem, plan),
    )


def _each_pod_once(problem: Problem, plan: Plan) -> Iterator[str]:
    seen = Counter(uid for claim in plan.claims for uid in claim.pods)
    seen.update(placement.pod_uid for placement in plan.placements)
    seen.update(unplaced.pod_uid for unplaced in plan.unplaced)
    known = {pod.uid for pod in problem.pods}
    yield from (f"pod {uid} is planned {times} times" for uid, times in sorted(seen.items()) if times > 1)
    yield from (f"pod {uid} is planned but was not asked about" for uid in sorted(set(seen) - known))
    missing = known - set(seen)
    if len(missing) > plan.stats.ignored:
        yield f"{len(missing)} pods are neither planned nor reported: {sorted(missing)[:5]}"


# Existing nodes


def _nodes(problem: Problem, plan: Plan, pods: dict[str, Pod]) -> Iterator[str]:
    nodes = {node.name: node for node in problem.snapshot.nodes}
    arrivals: dict[str, list[Pod]] = {}
    for placement in plan.placements:
        node = nodes.get(placement.node)
        if node is None:
            yield f"pod {placement.pod_key} is on node {placement.node}, which does not exist"
        elif node.marked_for_deletion or node.deleting or node.name in problem.options.excluded:
            yield f"pod {placement.pod_key} is on node {placement.node}, which is going away"
        else:
            arrivals.setdefault(node.name, []).append(pods[placement.pod_uid])
    for name, arrived in sorted(arrivals.items()):
        yield from _node(problem, nodes[name], arrived)


def _node(problem: Problem, node: StateNode, arrived: list[Pod]) -> Iterator[str]:
    staying = [pod for pod in node.pods if pod.phase not in ("Succeeded", "Failed")]
    for resource in sorted({name for pod in arrived for name, amount in pod.requests.items() if amount}):
        used = sum(pod.requests.get(resource, 0) for pod in (*staying, *arrived))
        if used > node.allocatable.get(resource, 0):
            yield f"node {node.name} would use {used} of {node.allocatable.get(resource, 0)} {resource}"
    described = {labels.HOSTNAME: node.name, **node.labels}
    for pod in arrived:
        yield from _untolerated(pod, node.taints, f"node {node.name}")
        if not _wants_labels(pod, described):
            yield f"node {node.name} does not have the labels that pod {pod.key} requires"
        yield from _misplaced_volumes(problem, pod, described, node.name)
    yield from _port_conflicts([*staying, *arrived], arrived, f"node {node.name}")
    yield from _too_many_volumes(problem, node, staying, arrived)


def _untolerated(pod: Pod, taints: tuple[Taint, ...], where: str) -> Iterator[str]:
    for taint in taints:
        if taint.effect != "PreferNoSchedule" and not any(_covers(t, taint) for t in pod.tolerations):
            yield f"pod {pod.key} does not tolerate {taint} of {where}"


def _covers(toleration: Toleration, taint: Taint) -> bool:
    same_effect = toleration.effect in ("", taint.effect)
    same_key = toleration.key in ("", taint.key)
    if toleration.operator == "Exists":
        return same_effect and same_key
    if toleration.operator in ("Gt", "Lt"):
        return toleration.covers(taint)
    return same_effect and toleration.key == taint.key and toleration.value == taint.value


def _wants_labels(pod: Pod, described: dict[str, str]) -> bool:
    if not _holds(pod.node_selector, described):
        return False
    return not pod.required_terms or any(_holds(term, described) for term in pod.required_terms)


def _holds(term: Requirements, described: dict[str, str]) -> bool:
    for key, requirement in term.items():
        value = described.get(key)
        if value is None:
            if requirement.operator not in ("NotIn", "DoesNotExist"):
                return False
        elif not requirement.has(value):
            return False
    return True


def _misplaced_volumes(problem: Problem, pod: Pod, described: dict[str, str], where: str) -> Iterator[str]:
    for claim in pod.volume_claims:
        terms = problem.snapshot.volumes.alternatives(f"{pod.namespace}/{claim}")
        if terms and not any(_holds(term, described) for term in terms):
            yield f"volume claim {claim} of pod {pod.key} cannot be used on {where}"


def _port_conflicts(everyone: list[Pod], arrived: list[Pod], where: str) -> Iterator[str]:
    for pod in arrived:
        for other in everyone:
            if other is pod:
                continue
            for mine in pod.host_ports:
                if any(mine.conflicts(theirs) for theirs in other.host_ports):
                    yield f"pods {pod.key} and {other.key} both take host port {mine} of {where}"


def _too_many_volumes(
    problem: Problem, node: StateNode, staying: list[Pod], arrived: list[Pod]
) -> Iterator[str]:
    volumes = problem.snapshot.volumes
    limits = volumes.attach_limits.get(node.node_name or "", {})
    if not any(pod.volume_claims for pod in arrived):
        return
    keys = {f"{pod.namespace}/{claim}" for pod in (*staying, *arrived) for claim in pod.volume_claims}
    for driver, limit in sorted(limits.items()):
        attached = sum(volumes.driver(key) == driver for key in keys)
        if attached > limit:
            yield f"node {node.name} would attach {attached} volumes of {driver}, at most {limit} allowed"


# New claims


class _Prices:
    """Cheapest prices by what decides them, as many claims ask for the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, tuple[Requirement | None, ...]], float | None] = {}

    def cheapest(self, instance_type: InstanceType, claim: PlannedClaim) -> float | None:
        keys = sorted({key for offering in instance_type.offerings for key in offering.requirements})
        identity = (id(instance_type), tuple(claim.requirements.get(key) for key in keys))
        if identity not in self._known:
            offering = instance_type.cheapest(claim.requirements)
            self._known[identity] = None if offering is None else offering.sort_price
        return self._known[identity]


def _claims(problem: Problem, plan: Plan, pods: dict[str, Pod]) -> Iterator[str]:
    prices = _Prices()
    pools = {pool.name: pool for pool in problem.snapshot.pools}
    for number, claim in enumerate(plan.claims):
        where = f"claim {number} of pool {claim.pool}"
        pool = pools.get(claim.pool)
        if pool is None or pool.spec.replicas is not None or pool.metadata.deletion_timestamp is not None:
            yield f"{where}: the pool does not exist, is static or is being deleted"
            continue
        members = [pods[uid] for uid in claim.pods if uid in pods]
        types = {t.name: t for t in problem.instance_types.get(pool.name, ())}
        if not claim.instance_types or len(claim.instance_types) > _MOST_TYPES:
            yield f"{where} names {len(claim.instance_types)} instance types"
        taints = tuple(Taint.from_spec(taint) for taint in pool.spec.template.spec.taints)
        for pod in members:
            yield from _untolerated(pod, taints, where)
            if not _pod_agrees(pod, claim, types):
                yield f"{where} may become a node without the labels that pod {pod.key} requires"
            yield from _claim_volumes(problem, pod, claim, where)
        yield from _port_conflicts(members, members, where)
        yield from _claim_types(problem, pool, claim, members, where)
        yield from _too_few_values(claim, types, where)
        if not problem.snapshot.node_overlays:
            yield from _price_order(types, claim, where, prices)


def _claim_types(
    problem: Problem, pool: NodePool, claim: PlannedClaim, members: list[Pod], where: str
) -> Iterator[str]:
    types = {t.name: t for t in problem.instance_types.get(pool.name, ())}
    needed: Counter[str] = Counter()
    for pod in members:
        needed.update({name: amount for name, amount in pod.requests.items() if amount})
    for name in claim.instance_types:
        instance_type = types.get(name)
        if instance_type is None:
            yield f"{where} names the instance type {name}, which the pool cannot launch"
            continue
        if not claim.requirements.intersects(instance_type.requirements):
            yield f"{where}: type {name} does not satisfy its requirements"
        overhead = _daemon_requests(problem, pool, instance_type) if problem.snapshot.daemonsets else {}
        for resource, amount in needed.items():
            room = instance_type.allocatable.get(resource, 0) - overhead.get(resource, 0)
            if amount > room:
                yield f"{where}: pods need {amount} {resource}, type {name} leaves {room}"


def _price_order(
    types: dict[str, InstanceType], claim: PlannedClaim, where: str, book: _Prices
) -> Iterator[str]:
    known = [types[name] for name in claim.instance_types if name in types]
    found = [book.cheapest(instance_type, claim) for instance_type in known]
    prices = [price for price in found if price is not None]
    if len(prices) < len(known):
        yield f"{where}: {len(known) - len(prices)} of its types are not on offer"
    if prices != sorted(prices):
        yield f"{where}: its types are not in order of price"
    if prices and prices[0] != claim.price:
        yield f"{where}: its price is {claim.price}, its cheapest offering costs {prices[0]}"


def _daemon_requests(problem: Problem, pool: NodePool, instance_type: InstanceType) -> Counter[str]:
    """What DaemonSets take of such a node for certain: those that its fixed labels allow."""
    total: Counter[str] = Counter()
    spec = pool.spec.template
    taints = tuple(Taint.from_spec(taint) for taint in spec.spec.taints)
    node = Requirements.from_specs(spec.spec.requirements).union(
        Requirements.from_labels({**spec.metadata.labels, labels.NODEPOOL: pool.name})
    )
    for daemon in problem.snapshot.daemonsets:
        hard = [taint for taint in taints if taint.effect != "PreferNoSchedule"]
        if any(not any(_covers(t, taint) for t in daemon.tolerations) for taint in hard):
            continue
        terms = [daemon.node_selector.union(term) for term in daemon.required_terms] or [daemon.node_selector]
        if any(not term for term in terms) or any(
            all(key in node or key in instance_type.requirements for key in term)
            and node.intersects(term)
            and instance_type.requirements.intersects(term)
            for term in terms
        ):
            total.update(daemon.requests)
    return total


def _pod_agrees(pod: Pod, claim: PlannedClaim, types: dict[str, InstanceType]) -> bool:
    """Tell whether every node that the claim may become satisfies the pod's hard node rules.

    Of alternative terms one must hold for the claim as a whole, which is what narrowing guarantees.
    """
    terms = pod.required_terms or (Requirements({}),)
    return any(
        all(_surely(requirement, claim, types) for requirement in pod.node_selector.union(term).values())
        for term in terms
    )


def _surely(wanted: Requirement, claim: PlannedClaim, types: dict[str, InstanceType]) -> bool:
    if wanted.key == labels.HOSTNAME:
        return wanted.complement and wanted.gte is None and wanted.lte is None
    label = claim.labels.get(wanted.key)
    if label is not None:
        return wanted.has(label)
    narrowed = claim.requirements.get(wanted.key)
    for name in claim.instance_types:
        own = types[name].requirements.get(wanted.key) if name in types else None
        both = own if narrowed is None else narrowed if own is None else narrowed.intersect(own)
        if both is None or (not both.complement and not both.values):
            if wanted.operator not in ("NotIn", "DoesNotExist"):
                return False
        elif both.complement:
            if not (wanted.operator in ("NotIn", "DoesNotExist") or wanted.operator == "Exists"):
                return False
        elif not all(wanted.has(value) for value in both.values):
            return False
    return True


def _claim_volumes(problem: Problem, pod: Pod, claim: PlannedClaim, where: str) -> Iterator[str]:
    for name in pod.volume_claims:
        terms = problem.snapshot.volumes.alternatives(f"{pod.namespace}/{name}")
        if terms and not any(
            all(
                key in claim.requirements
                and not claim.requirements[key].complement
                and all(requirement.has(value) for value in claim.requirements[key].values)
                for key, requirement in term.items()
            )
            for term in terms
        ):
            yield f"{where}: volume claim {name} of pod {pod.key} cannot be used on it"


def _too_few_values(claim: PlannedClaim, types: dict[str, InstanceType], where: str) -> Iterator[str]:
    for key, requirement in claim.requirements.items():
        if requirement.min_values is None:
            continue
        values = {
            value
            for name in claim.instance_types
            if name in types and key in types[name].requirements
            for value in types[name].requirements[key].values
        }
        if len(values) < requirement.min_values:
            yield f"{where}: {key} has {len(values)} values, minValues is {requirement.min_values}"


def _limits(problem: Problem, plan: Plan) -> Iterator[str]:
    for pool in problem.snapshot.pools:
        claims = [claim for claim in plan.claims if claim.pool == pool.name]
        if not pool.spec.limits or not claims:
            continue
        types = {t.name: {"nodes": 1, **t.capacity} for t in problem.instance_types.get(pool.name, ())}
        nodes = [
            node
            for node in problem.snapshot.nodes
            if node.pool == pool.name and node.name not in problem.options.excluded
        ]
        for resource, limit in parse_resources(pool.spec.limits).items():
            used = sum(1 if resource == "nodes" else node.capacity.get(resource, 0) for node in nodes)
            added = sum(
                max(
                    (types[name].get(resource, 0) for name in claim.instance_types if name in types),
                    default=0,
                )
                for claim in claims
            )
            if added and used + added > limit:
                yield f"pool {pool.name} would use {used + added} {resource}, its limit is {limit}"


def _paused(problem: Problem, plan: Plan) -> Iterator[str]:
    """Check that pools whose launches do not register get no node, or one at a time after ten minutes."""
    for pool in problem.snapshot.pools:
        for condition in pool.status.conditions:
            current = condition.observed_generation == pool.metadata.generation
            if condition.type != "RegistrationPaused" or condition.status != "True" or not current:
                continue
            since = condition.last_transition_time
            waits = since is not None and problem.snapshot.now - since < timedelta(minutes=10)
            claims = sum(claim.pool == pool.name for claim in plan.claims)
            coming = sum(node.pool == pool.name and not node.registered for node in problem.snapshot.nodes)
            if claims and (waits or claims + coming > 1):
                yield f"pool {pool.name} is paused and would get {claims} nodes with {coming} on their way"

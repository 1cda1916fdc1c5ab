"""The verifier's checks of rules about other pods. Plain on purpose; used by `verify` alone.

A claim's domain is certain when its requirement for the key has one value; a pod whose domain is not
certain is left out of counts, as the cluster will only know it later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from controller.scheduling.plan import Plan, PlannedClaim, Problem
from controller.scheduling.podfields import PodAffinityTerm, TopologySpread
from controller.scheduling.pods import Pod
from controller.scheduling.requirements import Requirements
from controller.scheduling.snapshot import StateNode
from controller.scheduling.taints import Taint
from framework.api import labels

__all__ = ["check_pod_rules"]


@attrs.frozen(eq=False)
class _Where:
    """A place of pods: its labels as sets of possible values, and whether it was planned now."""

    host: str
    values: dict[str, frozenset[str]]
    taints: tuple[Taint, ...]

    def domains(self, key: str) -> frozenset[str]:
        return frozenset({self.host}) if key == labels.HOSTNAME else self.values.get(key, frozenset())


@attrs.frozen(eq=False)
class _Seat:
    pod: Pod
    where: _Where
    planned: bool


def check_pod_rules(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield every broken required affinity, anti-affinity and hard spread of a planned pod."""
    seats = list(_seats(problem, plan))
    by_label = _Finder(seats)
    for seat in seats:
        for term in seat.pod.anti_affinity:
            yield from _anti_affinity(problem, seat, term, by_label)
        if seat.planned:
            for term in seat.pod.affinity:
                yield from _affinity(problem, seat, term, by_label)
    yield from _spreads(problem, plan, seats, by_label)


def _seats(problem: Problem, plan: Plan) -> Iterator[_Seat]:
    asked = {pod.uid: pod for pod in problem.pods}
    places = {node.name: _node_place(node) for node in problem.snapshot.nodes}
    for node in problem.snapshot.nodes:
        for pod in node.pods:
            active = pod.phase not in ("Succeeded", "Failed") and pod.deletion_timestamp is None
            if active and pod.uid not in asked:
                yield _Seat(pod, places[node.name], planned=False)
    for placement in plan.placements:
        yield _Seat(asked[placement.pod_uid], places[placement.node], planned=True)
    for number, claim in enumerate(plan.claims):
        where = _claim_place(number, claim)
        for uid in claim.pods:
            yield _Seat(asked[uid], where, planned=True)


def _node_place(node: StateNode) -> _Where:
    values = {key: frozenset({value}) for key, value in node.labels.items()}
    return _Where(node.name, values, node.taints)


def _claim_place(number: int, claim: PlannedClaim) -> _Where:
    concrete = {key: r.values for key, r in claim.requirements.items() if not r.complement}
    chosen = {key: frozenset({value}) for key, value in claim.labels.items()}
    return _Where(f"claim-{number}", {**chosen, **concrete}, claim.taints)


class _Finder:
    """Seats by label, so that a term with an exact label need not look at every pod."""

    def __init__(self, seats: list[_Seat]) -> None:
        self._all = seats
        self._by_label: dict[tuple[str, str], list[_Seat]] = {}
        for seat in seats:
            for pair in seat.pod.labels.items():
                self._by_label.setdefault(pair, []).append(seat)

    def selected(self, problem: Problem, owner: Pod, term: PodAffinityTerm) -> Iterable[_Seat]:
        selector = term.selector
        if selector is None:
            return []
        exact = next((t for t in selector.terms if t.operator == "In" and len(t.values) == 1), None)
        pool = self._all if exact is None else self._by_label.get((exact.key, exact.values[0]), [])
        return [seat for seat in pool if _means(problem, owner, term, seat.pod)]


def _in_namespaces(problem: Problem, owner: Pod, term: PodAffinityTerm, other: Pod) -> bool:
    if not term.namespaces and term.namespace_selector is None:
        return other.namespace == owner.namespace
    if other.namespace in term.namespaces:
        return True
    selector = term.namespace_selector
    return selector is not None and selector.matches(problem.snapshot.namespaces.get(other.namespace, {}))


def _anti_affinity(problem: Problem, seat: _Seat, term: PodAffinityTerm, finder: _Finder) -> Iterator[str]:
    mine = seat.where.domains(term.topology_key)
    for other in finder.selected(problem, seat.pod, term):
        if other.pod is seat.pod or not (seat.planned or other.planned):
            continue
        if mine & other.where.domains(term.topology_key):
            yield (
                f"pods {seat.pod.key} and {other.pod.key} may share {term.topology_key} "
                f"{sorted(mine)} against the anti-affinity of the first"
            )


def _affinity(problem: Problem, seat: _Seat, term: PodAffinityTerm, finder: _Finder) -> Iterator[str]:
    mine = seat.where.domains(term.topology_key)
    # Only pods that all terms of the pod mean count for any of them.
    mates = [
        other
        for other in finder.selected(problem, seat.pod, term)
        if other.pod is not seat.pod
        and all(_means(problem, seat.pod, each, other.pod) for each in seat.pod.affinity)
    ]
    if any(other.where.domains(term.topology_key) & mine for other in mates):
        return
    itself = all(_means(problem, seat.pod, each, seat.pod) for each in seat.pod.affinity)
    # The first pod of a group may start anywhere, unless a mate that need not wait for it is elsewhere.
    certain = [
        mate
        for mate in mates
        if len(mate.where.domains(term.topology_key)) == 1
        and not (mate.planned and _is_tied(problem, mate.pod, seat.pod))
    ]
    if itself and not certain:
        return
    yield f"pod {seat.pod.key} is in {term.topology_key} {sorted(mine)}, where no pod of its affinity is"


def _is_tied(problem: Problem, pod: Pod, other: Pod) -> bool:
    """Tell whether some affinity of the pod is one to the other."""
    return any(_means(problem, pod, term, other) for term in pod.affinity)


def _means(problem: Problem, owner: Pod, term: PodAffinityTerm, other: Pod) -> bool:
    """Tell whether a term of the owner picks the other pod."""
    if term.selector is None or not term.selector.matches(other.labels):
        return False
    return _in_namespaces(problem, owner, term, other)


def _spreads(problem: Problem, plan: Plan, seats: list[_Seat], finder: _Finder) -> Iterator[str]:
    """Check groups in which every planned pod that counts carries the constraint itself.

    Other pods may come after the constrained ones and raise the skew without breaking a rule.
    """
    owners: dict[tuple[str, TopologySpread], list[_Seat]] = {}
    for seat in seats:
        for constraint in seat.pod.topology_spread:
            if constraint.hard and seat.planned:
                owners.setdefault((seat.pod.namespace, constraint), []).append(seat)
    for (namespace, constraint), mine in owners.items():
        term = PodAffinityTerm(constraint.topology_key, constraint.selector)
        counted = [s for s in finder.selected(problem, mine[0].pod, term) if s.pod.namespace == namespace]
        own = {id(seat) for seat in mine}
        if all(id(seat) in own for seat in counted if seat.planned):
            yield from _spread(problem, _hosts(problem, plan), constraint, mine, counted)


def _spread(
    problem: Problem, hosts: list[_Where], constraint: TopologySpread, mine: list[_Seat], counted: list[_Seat]
) -> Iterator[str]:
    key = constraint.topology_key
    counts: dict[str, int] = {}
    for seat in counted:
        domains = seat.where.domains(key)
        if len(domains) == 1 and _looked_at(constraint, mine[0].pod, seat.where):
            counts[min(domains)] = counts.get(min(domains), 0) + 1
    for seat in mine:
        domains = seat.where.domains(key)
        if not domains:
            yield f"pod {seat.pod.key} is where {key} is unknown against its topology spread"
            continue
        if key == labels.HOSTNAME:
            lowest = _emptiest_host(hosts, constraint, seat.pod, counts)
        else:
            eligible = _eligible(problem, constraint, seat.pod, counts)
            lowest = min((counts.get(domain, 0) for domain in eligible), default=0)
            if constraint.min_domains is not None and len(eligible) < constraint.min_domains:
                lowest = 0
        most = max(counts.get(domain, 0) for domain in domains)
        if most - lowest > constraint.max_skew and constraint.selector is not None:
            yield f"pod {seat.pod.key}: {key} {sorted(domains)} has {most}, the emptiest has {lowest}"


def _looked_at(constraint: TopologySpread, owner: Pod, where: _Where) -> bool:
    """Tell whether the place counts for the constraint, by the pod's own node affinity and tolerations."""
    repelling = [taint for taint in where.taints if taint.effect != "PreferNoSchedule"]
    tolerated = all(any(t.covers(taint) for t in owner.tolerations) for taint in repelling)
    if constraint.honor_taints and not tolerated:
        return False
    if not constraint.honor_affinity:
        return True
    return any(_may_hold(term, where) for term in _alternatives(owner))


def _alternatives(pod: Pod) -> list[Requirements]:
    return [pod.node_selector.union(term) for term in pod.required_terms] or [pod.node_selector]


def _may_hold(term: Requirements, where: _Where) -> bool:
    for key, requirement in term.items():
        values = where.domains(key)
        if values and not any(requirement.has(value) for value in values):
            return False
    return True


def _eligible(problem: Problem, constraint: TopologySpread, pod: Pod, counts: dict[str, int]) -> set[str]:
    """Domains that nodes have or will have and that the constraint looks at: at least these count."""
    key = constraint.topology_key
    found = set(counts)
    for node in _staying(problem):
        if key in node.labels and _looked_at(constraint, pod, _node_place(node)):
            found.add(node.labels[key])
    if not constraint.honor_affinity:
        return found
    terms = _alternatives(pod)
    return {value for value in found if any(key not in term or term[key].has(value) for term in terms)}


def _staying(problem: Problem) -> list[StateNode]:
    return [
        node
        for node in problem.snapshot.nodes
        if not (node.marked_for_deletion or node.deleting or node.name in problem.options.excluded)
    ]


def _hosts(problem: Problem, plan: Plan) -> list[_Where]:
    """Nodes that stay and nodes that join."""
    joining = [_claim_place(number, claim) for number, claim in enumerate(plan.claims)]
    return [*map(_node_place, _staying(problem)), *joining]


def _emptiest_host(hosts: list[_Where], constraint: TopologySpread, pod: Pod, counts: dict[str, int]) -> int:
    """The least count on a host that the constraint looks at; 0 when a new one can always be made."""
    if not constraint.honor_taints:
        return 0
    looked_at = [counts.get(host.host, 0) for host in hosts if _looked_at(constraint, pod, host)]
    return min(looked_at, default=0)

"""One run of the engine: queue, tries, result (spec core/scheduling §9). Private to the engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from itertools import groupby

from controller.scheduling.claimpacking import ClaimPacking
from controller.scheduling.claimshapes import ShapeTable
from controller.scheduling.classing import Classing
from controller.scheduling.explain import Explainer
from controller.scheduling.finishing import Finisher
from controller.scheduling.nodepacking import NodePacking
from controller.scheduling.nodetable import node_table
from controller.scheduling.plan import Placement, Plan, PlannedClaim, Problem, Stats, Unplaced
from controller.scheduling.podclasses import PodClass, Variant
from controller.scheduling.podrules import AffinityRule
from controller.scheduling.pods import Pod
from controller.scheduling.podshapes import PodConstraints
from controller.scheduling.pools import make_templates, preference_policy_of
from controller.scheduling.reasons import Reason, ReasonCode
from controller.scheduling.reservations import Reservations, ReservedRefusal
from controller.scheduling.topology import Topology
from controller.scheduling.validation import pod_problem, stays_off_managed_nodes
from controller.scheduling.virtualpods import is_virtual

__all__ = ["Run", "queue_order"]


class _Outcome(Enum):
    PLACED = "placed"
    FAILED = "failed"
    RESERVED = "waits for a reservation"
    TIMED_OUT = "time was up"


def queue_order(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods as they are tried: most cpu, most memory, oldest, then by uid (§9).

    Room that is only kept free comes after every pod that exists, so that it never takes what little a
    limit leaves.
    """

    def key(pod: Pod) -> tuple[bool, int, int, float, str]:
        created: datetime | None = pod.created
        requests = pod.requests
        age = 0.0 if created is None else created.timestamp()
        return (is_virtual(pod), -requests.get("cpu", 0), -requests.get("memory", 0), age, pod.uid)

    return sorted(pods, key=key)


def resource_columns(problem: Problem) -> tuple[str, ...]:
    """Return every resource that some pod or DaemonSet of the problem asks for, sorted."""
    names = {name for shape in {pod.shape for pod in problem.pods} for name, _ in shape.requests}
    for daemon in problem.snapshot.daemonsets:
        names.update(name for name, amount in daemon.requests.items() if amount)
    return tuple(sorted(names))


def _runs(queue: Iterable[Pod], class_of: Mapping[str, PodClass]) -> Iterator[tuple[PodClass, Sequence[Pod]]]:
    """Yield pods of one class that follow each other together."""
    for _, pods in groupby(queue, key=lambda pod: id(class_of[pod.uid])):
        run = list(pods)
        yield class_of[run[0].uid], run


class Run:
    """Scratch of one run; mutable, never shared."""

    def __init__(self, problem: Problem, *, nodes_alone: bool = False) -> None:
        """Validate the pods and lay nodes, templates, counters and classes out.

        With `nodes_alone` pods may go where they fit only if no node joins (see `stands`).
        """
        options, snapshot = problem.options, problem.snapshot
        self.problem = problem
        self.unplaced: list[tuple[Pod, _Outcome]] = []
        self.invalid: list[Unplaced] = []
        self.valid = self._validate()
        self.resources = resource_columns(problem)
        self.pools = make_templates(problem, self.resources)
        gone = {n.name for n in snapshot.nodes if n.marked_for_deletion or n.deleting}
        self.nodes = node_table(snapshot, self.resources, without=gone | options.excluded)
        self.topology = Topology(
            self.pools.templates, snapshot.namespaces, options.well_known, self.nodes.size
        )
        policy = preference_policy_of(problem)
        self.classing = Classing(self.valid, snapshot, self.nodes, self.topology, policy)
        self.shapes = ShapeTable(len(self.resources), options.well_known)
        self.on_nodes = NodePacking(self.nodes, alone=nodes_alone)
        reservations = Reservations(self.pools.templates, options.reserved_mode)
        self.on_claims = ClaimPacking(self.shapes, len(self.resources), reservations)
        columns = {name: column for column, name in enumerate(self.resources)}
        self.class_of = {pod.uid: self.classing.class_of(pod, columns) for pod in self.valid}
        self.placed = 0
        self.tries = 0
        self.relaxed = 0
        self.timed_out = False

    def _validate(self) -> list[Pod]:
        volumes, options = self.problem.snapshot.volumes, self.problem.options
        valid = []
        fine: set[PodConstraints] = set()
        self.ignored = 0
        for pod in self.problem.pods:
            constraints = pod.shape.constraints
            if constraints in fine and pod.problem is None:
                valid.append(pod)
                continue
            if not pod.node_name and stays_off_managed_nodes(pod):
                self.ignored += 1
                continue
            reason = pod_problem(pod, volumes, options)
            if reason is None:
                valid.append(pod)
                if not pod.node_name and not constraints.volume_claims:
                    fine.add(constraints)
                continue
            self.ignored += 1
            self.invalid.append(Unplaced(pod_key=pod.key, pod_uid=pod.uid, reason=reason))
        return valid

    def drain(self, expired: Callable[[], bool], skip: Collection[str] = ()) -> None:
        """Try pods in order, runs of one class together, until a whole cycle brings nothing.

        Pods whose UID is in `skip` have their place already.
        """
        waiting: deque[Pod] = deque()
        outcomes: dict[str, _Outcome] = {}
        size: tuple[int, int] | None = None
        tried: set[PodClass] = set()
        for cls, pods in _runs(queue_order(pod for pod in self.valid if pod.uid not in skip), self.class_of):
            level = (pods[0].requests.get("cpu", 0), pods[0].requests.get("memory", 0))
            if level != size:
                for seen in tried:
                    seen.views.clear()
                tried.clear()
                size = level
            tried.add(cls)
            done = 0
            while done < len(pods):
                if expired():
                    self.timed_out = True
                    break
                count, outcome = self.place(pods[done:] if done else pods, cls)
                if not count:
                    outcomes[pods[done].uid] = outcome
                    waiting.append(pods[done])
                    count = 1
                done += count
            waiting.extend(pods[done:])
        self._stop_awaiting(waiting)
        self._retry(waiting, outcomes, expired)
        ended = _Outcome.TIMED_OUT if self.timed_out else _Outcome.FAILED
        self.unplaced = [(pod, outcomes.get(pod.uid, ended)) for pod in waiting]

    def _stop_awaiting(self, waiting: Iterable[Pod]) -> None:
        """Let groups start now that every pod has had its first try."""
        for counter in self.topology.counters.values():
            counter.awaited = False
        for pod in waiting:
            self.class_of[pod.uid].failed_at = -1

    def _retry(self, waiting: deque[Pod], outcomes: dict[str, _Outcome], expired: Callable[[], bool]) -> None:
        """Try again those that failed, as others may have made room for them; stop without progress."""
        idle = 0
        while waiting and idle < len(waiting) and not self.timed_out:
            if expired():
                self.timed_out = True
                return
            pod = waiting.popleft()
            count, outcomes[pod.uid] = self.place((pod,), self.class_of[pod.uid])
            if count:
                idle = 0
            else:
                waiting.append(pod)
                idle += 1

    def place(self, pods: Sequence[Pod], cls: PodClass) -> tuple[int, _Outcome]:
        """Try the first of the pods, all of the class, with all its relaxations (§6, §9).

        Return how many were placed, since others may go along with it.
        """
        if cls.failed_at == self.placed:
            return 0, _Outcome.FAILED
        variants = cls.rules.variants or self.classing.variants(
            cls.rules, soft_taints=self.pools.has_soft_taints
        )
        for rung, variant in enumerate(variants):
            self.tries += 1
            try:
                count = self._place(pods, cls, variant)
            except ReservedRefusal:
                return 0, _Outcome.RESERVED
            if count:
                self.placed += count
                self.relaxed += count if rung else 0
                return count, _Outcome.PLACED
        cls.failed_at = self.placed
        return 0, _Outcome.FAILED

    def _place(self, pods: Sequence[Pod], cls: PodClass, variant: Variant) -> int:
        for rule in variant.domain_rules:
            if isinstance(rule, AffinityRule) and rule.settles:
                self.on_claims.settle_group(rule.counter, cls, variant, self.pools.templates)
        if self.nodes.size and self.on_nodes.place(pods[0], cls, variant):
            return 1
        count = self.on_claims.place(pods, cls, variant)
        if count:
            return count
        return int(any(self.on_claims.open_new(pods[0], cls, variant, t) for t in self.pools.templates))

    @property
    def stands(self) -> bool:
        """Whether nothing was placed on the assumption that no node joins, although some do."""
        return not (self.on_nodes.relied_on_alone and self.on_claims.open.claims)

    def plan(self) -> Plan:
        """Freeze what was decided."""
        finisher = Finisher(self.shapes, self.resources, self.problem.options.well_known)
        explainer = Explainer(self)
        claims: list[PlannedClaim] = []
        unplaced = list(self.invalid)
        for claim in self.on_claims.open.claims:
            planned = finisher.freeze(claim)
            if planned is not None:
                claims.append(planned)
                continue
            reason = explainer.too_few_values(claim)
            unplaced += [Unplaced(pod_key=p.key, pod_uid=p.uid, reason=reason) for p in claim.pods]
        unplaced += [self._unplaced(pod, outcome, explainer) for pod, outcome in self.unplaced]
        names = [node.name for node in self.nodes.nodes]
        return Plan(
            claims=tuple(claims),
            placements=tuple(
                Placement(pod_key=pod.key, pod_uid=pod.uid, node=names[row])
                for pod, row in self.on_nodes.placements
            ),
            unplaced=tuple(sorted(unplaced, key=lambda u: (u.pod_key, u.pod_uid))),
            pool_problems=self.pools.problems,
            stats=Stats(
                pods=len(self.problem.pods),
                classes=self.classing.count,
                tries=self.tries,
                relaxed=self.relaxed,
                ignored=self.ignored,
                timed_out=self.timed_out,
            ),
        )

    def _unplaced(self, pod: Pod, outcome: _Outcome, explainer: Explainer) -> Unplaced:
        retryable = outcome in (_Outcome.RESERVED, _Outcome.TIMED_OUT)
        if outcome is _Outcome.RESERVED:
            text = "waits for reserved capacity that other claims of this round hold"
            reason = Reason(code=ReasonCode.RESERVED, text=text, obj=f"Pod/{pod.key}")
        elif outcome is _Outcome.TIMED_OUT:
            text = "the round's time was up before its turn came"
            reason = Reason(code=ReasonCode.TIMEOUT, text=text, obj=f"Pod/{pod.key}")
        else:
            reason = explainer.why_unplaced(pod, self.class_of[pod.uid])
        return Unplaced(pod_key=pod.key, pod_uid=pod.uid, reason=reason, retryable=retryable)

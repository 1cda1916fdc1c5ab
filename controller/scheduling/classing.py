"""Sorts the pods of a run into classes and gives each class its rules (design: pod classes).

Called once per run, after nodes and templates are laid out. Declares every counter first, then
counts what runs already, so that rules only ever read. Private to the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from controller.scheduling.nodetable import NodeTable
from controller.scheduling.plan import PreferencePolicy
from controller.scheduling.podclasses import (
    ClassRules,
    NodeRules,
    PodClass,
    Terms,
    Variant,
    alternatives_of,
    ladder,
    signature,
)
from controller.scheduling.podfields import HostPort, PodAffinityTerm, TopologySpread
from controller.scheduling.podrules import AffinityRule, AntiAffinityRule, PodRule, SpreadRule
from controller.scheduling.pods import Pod
from controller.scheduling.podshapes import PodConstraints
from controller.scheduling.requirements import Requirements
from controller.scheduling.runningpods import running_pods
from controller.scheduling.selectors import LabelSelector
from controller.scheduling.snapshot import Snapshot, StateNode
from controller.scheduling.taints import Toleration
from controller.scheduling.topology import Counter, CounterKey, Mode, NodeFilter, Topology

__all__ = ["Classing"]

_SOFT_TAINTS = Toleration(operator="Exists", effect="PreferNoSchedule")
_Signature = tuple[tuple[str, str], ...]


class Classing:
    """Classes by what decides about a pod: shape, namespace and the labels that selectors look at."""

    def __init__(
        self,
        pods: Sequence[Pod],
        snapshot: Snapshot,
        nodes: NodeTable,
        topology: Topology,
        preferences: PreferencePolicy,
    ) -> None:
        """Declare counters for all pods, then count the pods that already run."""
        self._snapshot = snapshot
        self._nodes = nodes
        self._topology = topology
        self._preferences = preferences is PreferencePolicy.RESPECT
        self._moving = {pod.uid for pod in pods}
        self._running = running_pods(snapshot.nodes)
        self._node_rules: dict[object, NodeRules] = {}
        self._rules: dict[object, ClassRules] = {}
        self._classes: dict[object, PodClass] = {}
        self._declare(pods)
        looked_at = {key for c in topology.counters for key in (c.selector.keys() if c.selector else ())}
        self._keys = sorted(looked_at)
        self._index = _CounterIndex(topology.counters.values())
        self._selected: dict[tuple[str, _Signature], tuple[Counter, ...]] = {}
        if topology.counters:
            self._add_node_domains()
            self._count_running()

    # Declaring counters

    def _declare(self, pods: Sequence[Pod]) -> None:
        for constraints, namespace in dict.fromkeys((pod.shape.constraints, pod.namespace) for pod in pods):
            if constraints.has_pod_rules:
                rung = Terms.of(constraints, preferences=self._preferences)
                self._declare_terms(constraints, namespace, rung)
        placed = {(pod.namespace, frozenset(pod.labels.items())): pod for pod in pods}.values()
        for group in self._running.owners:
            key = self._key(Mode.OWNERS, group.term, group.namespace)
            if any(key.selects(pod.namespace, pod.labels) for pod in placed) and any(
                pod.uid not in self._moving for pod, _ in group.places
            ):
                self._topology.counter(key)

    def _declare_terms(self, constraints: PodConstraints, namespace: str, rung: Terms) -> None:
        for constraint in rung.spread:
            self._spread_counter(constraints, namespace, constraint)
        self._followed(rung.affinity, namespace)
        for term in rung.preferred_affinity:
            self._counter(Mode.ONE, term, namespace)
        for term in (*rung.anti_affinity, *rung.preferred_anti_affinity):
            self._counter(Mode.ALL, term, namespace)
        for term in rung.anti_affinity:
            self._counter(Mode.OWNERS, term, namespace)

    def _spread_counter(
        self, constraints: PodConstraints, namespace: str, constraint: TopologySpread
    ) -> Counter:
        node_filter = NodeFilter.of(
            constraints, honor_affinity=constraint.honor_affinity, honor_taints=constraint.honor_taints
        )
        return self._topology.counter(
            CounterKey(
                mode=Mode.ONE,
                topology_key=constraint.topology_key,
                namespaces=frozenset({namespace}),
                selector=constraint.selector,
                node_filter=node_filter,
            )
        )

    def _counter(self, mode: Mode, term: PodAffinityTerm, namespace: str) -> Counter:
        return self._topology.counter(self._key(mode, term, namespace))

    def _followed(self, terms: Sequence[PodAffinityTerm], namespace: str) -> list[Counter]:
        """Return the counter of each required affinity term of one pod.

        Only pods that all its terms mean count for any of them, as kube-scheduler has it.
        """
        keys = [self._key(Mode.ONE, term, namespace) for term in terms]
        if len(keys) > 1:
            selectors = [key.selector for key in keys if key.selector is not None]
            every = LabelSelector([term for selector in selectors for term in selector.terms])
            scopes = [key.namespaces for key in keys if key.namespaces is not None]
            shared = scopes[0].intersection(*scopes[1:]) if scopes else None
            selector = every if len(selectors) == len(keys) else None
            keys = [attrs.evolve(key, selector=selector, namespaces=shared) for key in keys]
        return [self._topology.counter(key) for key in keys]

    def _key(self, mode: Mode, term: PodAffinityTerm, namespace: str) -> CounterKey:
        return CounterKey(
            mode=mode,
            topology_key=term.topology_key,
            namespaces=self._topology.resolve(namespace, term.namespaces, term.namespace_selector),
            selector=term.selector,
        )

    # Counting what runs

    def _add_node_domains(self) -> None:
        for counter in self._topology.counters.values():
            if counter.by_host:
                continue
            for row in range(self._nodes.size):
                value = self._nodes.label(row, counter.key.topology_key)
                if (
                    value is not None
                    and value not in counter.counts
                    and counter.looks_at_node(self._nodes, row)
                ):
                    counter.counts[value] = 0

    def _count_running(self) -> None:
        """Count the pods that stay; terms of owners that no pod of the run minds have no counter."""
        rows = {node.name: row for row, node in enumerate(self._nodes.nodes)}
        for group in self._running.by_labels:
            found = self._index.selecting(group.namespace, group.labels)
            counters = [counter for counter in found if counter.key.mode is not Mode.OWNERS]
            for pod, node in group.places if counters else ():
                if pod.uid not in self._moving:
                    for counter in counters:
                        self._count(counter, node, rows.get(node.name))
        for owners in self._running.owners:
            minded = self._topology.counters.get(self._key(Mode.OWNERS, owners.term, owners.namespace))
            for pod, node in owners.places if minded is not None else ():
                if minded is not None and pod.uid not in self._moving:
                    self._count(minded, node, rows.get(node.name))

    def _count(self, counter: Counter, node: StateNode, row: int | None) -> None:
        value = node.labels.get(counter.key.topology_key)
        if row is not None:
            if counter.looks_at_node(self._nodes, row):
                counter.add_at_node(row, value, 1)
            return
        node_filter = counter.key.node_filter
        if node_filter is None or node_filter.passes(Requirements.from_labels(node.labels), node.taints):
            counter.add_elsewhere(value, 1)

    # Classes

    def selecting(self, pod: Pod) -> tuple[Counter, ...]:
        """Return the counters whose selector picks the pod, those of term owners included."""
        key = (pod.namespace, signature(pod, self._keys))
        found = self._selected.get(key)
        if found is None:
            found = self._selected[key] = self._index.selecting(pod.namespace, pod.labels)
        return tuple(counter for counter in found if counter.key.mode is not Mode.OWNERS)

    def class_of(self, pod: Pod, columns: Mapping[str, int]) -> PodClass:
        """Return the pod's class; `columns` is the place of each resource."""
        shape = pod.shape
        constraints = shape.constraints
        scoped = bool(self._topology.counters) or bool(constraints.volume_claims)
        place = (pod.namespace, signature(pod, self._keys)) if scoped else None
        cls = self._classes.get((shape, place))
        if cls is None:
            rules = self._rules.get((constraints, place))
            if rules is None:
                rules = self._rules[constraints, place] = self._new_rules(pod)
            request = [0] * len(columns)
            for name, amount in shape.requests:
                request[columns[name]] = amount
            cls = self._classes[shape, place] = PodClass(rules, request)
        return cls

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self._classes)

    def _new_rules(self, pod: Pod) -> ClassRules:
        volumes = self._snapshot.volumes
        constraints = pod.shape.constraints
        keys = [f"{pod.namespace}/{claim}" for claim in constraints.volume_claims]
        drivers = [(volumes.driver(key), key) for key in keys]
        own = [self._counter(Mode.OWNERS, term, pod.namespace) for term in constraints.anti_affinity]
        tied = self._followed(constraints.affinity, pod.namespace)
        counters = self.selecting(pod) if self._topology.counters else ()
        for counter in counters:
            counter.awaited |= counter not in tied
        return ClassRules(
            sample=pod,
            constraints=constraints,
            counters=counters,
            counts_in=(*counters, *dict.fromkeys(own)),
            volumes=tuple((driver, key) for driver, key in drivers if driver is not None),
        )

    def variants(self, rules: ClassRules, *, soft_taints: bool) -> tuple[Variant, ...]:
        """Return the ladder, made when first asked for."""
        if not rules.variants:
            pod = rules.sample
            places = alternatives_of(
                self._snapshot.volumes.alternatives(f"{pod.namespace}/{claim}")
                for claim in rules.constraints.volume_claims
            )
            rungs = ladder(rules.constraints, preferences=self._preferences, soft_taints=soft_taints)
            rules.variants = tuple(self._variant(rules, rung, places) for rung in rungs)
        return rules.variants

    def _variant(self, rules: ClassRules, rung: Terms, places: Sequence[Requirements]) -> Variant:
        own = rules.constraints
        effective = rung.effective(own.selector)
        tolerations = (*own.tolerations, _SOFT_TAINTS) if rung.tolerates_soft_taints else own.tolerations
        pod_rules = self._pod_rules(rules, rung)
        return Variant(
            rules=tuple(
                self._node_rules_of(effective.union(place), tolerations, own.host_ports) for place in places
            ),
            strict=rung.strict(own.selector),
            ports=own.host_ports,
            host_rules=tuple(rule for rule in pod_rules if rule.counter.by_host),
            domain_rules=tuple(rule for rule in pod_rules if not rule.counter.by_host),
        )

    def _node_rules_of(
        self, wanted: Requirements, tolerations: tuple[Toleration, ...], ports: tuple[HostPort, ...]
    ) -> NodeRules:
        key = (wanted, tolerations, ports)
        rules = self._node_rules.get(key)
        if rules is None:
            rules = self._node_rules[key] = NodeRules(wanted, tolerations, ports)
        return rules

    def _pod_rules(self, own: ClassRules, rung: Terms) -> list[PodRule]:
        pod = own.sample
        rules: list[PodRule] = []
        for constraint in rung.spread:
            counter = self._spread_counter(own.constraints, pod.namespace, constraint)
            rules.append(
                SpreadRule(
                    counter=counter,
                    max_skew=constraint.max_skew,
                    min_domains=constraint.min_domains,
                    selects_itself=counter.key.selects(pod.namespace, pod.labels),
                    every_domain=not constraint.honor_affinity,
                    counts_nodes=counter.by_host and constraint.honor_taints,
                )
            )
        followed = self._followed(rung.affinity, pod.namespace)
        liked = [self._counter(Mode.ONE, term, pod.namespace) for term in rung.preferred_affinity]
        for counter in (*followed, *liked):
            itself = counter.key.selects(pod.namespace, pod.labels)
            rules.append(AffinityRule(counter=counter, selects_itself=itself, required=counter in followed))
        for term in (*rung.anti_affinity, *rung.preferred_anti_affinity):
            rules.append(
                AntiAffinityRule(counter=self._counter(Mode.ALL, term, pod.namespace), inverse=False)
            )
        for counter in self._selected.get((pod.namespace, signature(pod, self._keys)), ()):
            if counter.key.mode is Mode.OWNERS:
                rules.append(AntiAffinityRule(counter=counter, inverse=True))
        return rules


class _CounterIndex:
    """Finds the counters that select a pod without asking each of them."""

    def __init__(self, counters: Iterable[Counter]) -> None:
        self._by_label: dict[tuple[str, str], list[Counter]] = {}
        self._others: list[Counter] = []
        for counter in counters:
            selector = counter.key.selector
            exact = next((t for t in selector.terms if t.operator == "In"), None) if selector else None
            if exact is None:
                self._others.append(counter)
                continue
            for value in exact.values:
                self._by_label.setdefault((exact.key, value), []).append(counter)

    def selecting(self, namespace: str, pod_labels: Mapping[str, str]) -> tuple[Counter, ...]:
        candidates = list(self._others)
        for pair in sorted(pod_labels.items()):
            candidates += self._by_label.get(pair, ())
        return tuple(counter for counter in candidates if counter.key.selects(namespace, pod_labels))

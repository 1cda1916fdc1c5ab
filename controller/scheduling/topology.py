"""Counts of pods per domain, for every rule about other pods (spec core/scheduling §12).

A `Counter` counts for one selector, key and node filter; rules of many pods share it. The solver
records each placement once in every counter that selects the pod. Private to the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from controller.scheduling.podshapes import PodConstraints
from controller.scheduling.requirements import EMPTY, Requirements
from controller.scheduling.selectors import LabelSelector
from controller.scheduling.taints import Taint, Toleration, tolerates
from controller.scheduling.templates import Template, hard_taints
from framework.api import labels

__all__ = ["Counter", "CounterKey", "Mode", "NodeFilter", "Topology"]

_OWN_HOST: Final = frozenset({labels.HOSTNAME})


class Mode(Enum):
    """What a counter counts, and where a pod counts that may still land in several domains."""

    ONE = "pods selected, once their domain is certain"
    ALL = "pods selected, in every domain they may land in"
    OWNERS = "pods that carry the anti-affinity term, in every domain they may land in"


@attrs.frozen(kw_only=True, cache_hash=True)
class NodeFilter:
    """Which nodes a spread constraint looks at (§12.2)."""

    terms: tuple[Requirements, ...]
    """Alternatives of the pod's own node affinity; one empty set when the policy is Ignore."""
    tolerations: tuple[Toleration, ...] | None
    """None when taints are ignored."""

    @classmethod
    def of(
        cls, constraints: PodConstraints, *, honor_affinity: bool, honor_taints: bool
    ) -> NodeFilter | None:
        """Return the filter, None when every node counts."""
        terms = tuple(constraints.selector.union(term) for term in constraints.required_terms or (EMPTY,))
        if not honor_affinity or any(not term for term in terms):
            terms = (EMPTY,)
        if terms == (EMPTY,) and not honor_taints:
            return None
        return cls(terms=terms, tolerations=constraints.tolerations if honor_taints else None)

    def passes(
        self, node: Requirements, taints: Sequence[Taint], allow_undefined: frozenset[str] = frozenset()
    ) -> bool:
        """Tell whether a node so described counts."""
        if self.tolerations is not None and tolerates(self.tolerations, hard_taints(taints)) is not None:
            return False
        return any(node.compatible(term, allow_undefined) for term in self.terms)


@attrs.frozen(kw_only=True, cache_hash=True)
class CounterKey:
    """What makes two counters the same."""

    mode: Mode
    topology_key: str
    namespaces: frozenset[str] | None
    """None means every namespace."""
    selector: LabelSelector | None
    node_filter: NodeFilter | None = None

    def selects(self, namespace: str, pod_labels: Mapping[str, str]) -> bool:
        """Tell whether pods so labelled are meant."""
        if self.selector is None or (self.namespaces is not None and namespace not in self.namespaces):
            return False
        return self.selector.matches(pod_labels)


class NodeMatch(Protocol):
    """What a counter asks of the table of nodes."""

    def matching(self, wanted: Requirements) -> NDArray[np.bool_]:
        """Return the nodes whose labels satisfy these."""
        ...

    def tolerated_hard(self, tolerations: tuple[Toleration, ...], row: int) -> bool:
        """Tell whether these tolerate a node's taints that repel for good."""
        ...


class Counter:
    """Pods per domain: by value for ordinary keys, by node and claim row for host names."""

    def __init__(self, key: CounterKey, nodes: int) -> None:
        """Start at zero over that many existing nodes."""
        self.key = key
        self.by_host = key.topology_key == labels.HOSTNAME
        self.counts: dict[str, int] = {}
        self.node_counts: NDArray[np.int32] = np.zeros(nodes if self.by_host else 0, dtype=np.int32)
        self.claim_counts: NDArray[np.int32] = np.zeros(64 if self.by_host else 0, dtype=np.int32)
        self.total = 0
        self.unsettled = 0
        """Pods selected on claims that may still come up in several domains."""
        self.awaited = False
        """Whether pods that it selects and that are free to go elsewhere have not been tried yet."""
        self._domains: dict[int, frozenset[str]] = {}

    def looks_at_node(self, matches: NodeMatch, row: int) -> bool:
        """Tell whether a node of the table counts (§12.2)."""
        node_filter = self.key.node_filter
        if node_filter is None:
            return True
        if node_filter.tolerations is not None and not matches.tolerated_hard(node_filter.tolerations, row):
            return False
        return any(bool(matches.matching(term)[row]) for term in node_filter.terms)

    def add_at_node(self, row: int, value: str | None, count: int) -> None:
        """Count pods on an existing node; `value` is its label, None when it has none."""
        if self.by_host:
            self.node_counts[row] += count
            self.total += count
        elif value is not None:
            self.counts[value] = self.counts.get(value, 0) + count
            self.total += count

    def add_elsewhere(self, value: str | None, count: int) -> None:
        """Count pods on a node that takes part in counting but not in placing."""
        if self.by_host or value is not None:
            self.total += count
        if not self.by_host and value is not None:
            self.counts[value] = self.counts.get(value, 0) + count

    def at_claim(self, row: int) -> int:
        """Return the count on a new claim."""
        return int(self.claim_counts[row]) if row < self.claim_counts.size else 0

    def at_claims(self, rows: int) -> NDArray[np.int32]:
        """Return the counts of the first `rows` claims, (rows,) int32."""
        while rows > self.claim_counts.size:
            self.claim_counts = np.concatenate([self.claim_counts, np.zeros_like(self.claim_counts)])
        return self.claim_counts[:rows]

    def domains_of(
        self, shape_id: int, requirements: Requirements, taints: Sequence[Taint]
    ) -> frozenset[str]:
        """Return the domains that a pod on a claim in this state counts in (§12.5).

        The claim's own row stands for its host name. Undefined labels never match the node filter (§12.2).
        """
        known = self._domains.get(shape_id)
        if known is None:
            known = self._domains[shape_id] = self._find_domains(requirements, taints)
        return known

    def _find_domains(self, requirements: Requirements, taints: Sequence[Taint]) -> frozenset[str]:
        node_filter = self.key.node_filter
        if node_filter is not None and not node_filter.passes(requirements, taints):
            return frozenset()
        if self.by_host:
            return _OWN_HOST
        known = requirements.get(self.key.topology_key)
        if known is not None and not known.complement:
            certain = len(known.values) == 1 or self.key.mode is not Mode.ONE
            return known.values if certain else frozenset()
        if self.key.mode is Mode.ONE:
            return frozenset()
        return frozenset(domain for domain in self.counts if known is None or known.has(domain))

    def add_claim(self, row: int, domains: frozenset[str], count: int) -> None:
        """Count pods on a new claim in its domains; a negative count takes them back."""
        if not domains:
            self.unsettled += count
            return
        self.total += count
        if self.by_host:
            self.at_claims(row + 1)[row] += count
            return
        for domain in domains:
            self.counts[domain] = self.counts.get(domain, 0) + count


class Topology:
    """Every counter of a run, and which namespaces a term means."""

    def __init__(
        self,
        templates: Sequence[Template],
        namespaces: Mapping[str, Mapping[str, str]],
        well_known: frozenset[str],
        nodes: int,
    ) -> None:
        """Start without counters."""
        self._templates = templates
        self._namespaces = namespaces
        self._well_known = well_known
        self._nodes = nodes
        self.counters: dict[CounterKey, Counter] = {}

    def counter(self, key: CounterKey) -> Counter:
        """Return the one counter with this key; a new one knows the domains that pools can make."""
        counter = self.counters.get(key)
        if counter is None:
            counter = self.counters[key] = Counter(key, self._nodes)
            if not counter.by_host:
                counter.counts = dict.fromkeys(sorted(self._domains(key)), 0)
        return counter

    def _domains(self, key: CounterKey) -> set[str]:
        """Values that new nodes could have (§12.1): what types and pool allow together.

        A pool that the node filter rules out makes no domain: its nodes would not be looked at.
        """
        found: set[str] = set()
        for template in self._templates:
            node_filter = key.node_filter
            if node_filter is not None and not node_filter.passes(
                template.requirements, template.taints, self._well_known
            ):
                continue
            allowed = template.requirements.get(key.topology_key)
            values = template.table.values(key.topology_key)
            if not values and allowed is not None and not allowed.complement:
                values = allowed.values
            found.update(value for value in values if allowed is None or allowed.has(value))
        return found

    def resolve(
        self, own: str, names: Sequence[str], selector: LabelSelector | None
    ) -> frozenset[str] | None:
        """Return the namespaces an affinity term means (§12.4); None means every one."""
        if selector is None:
            return frozenset(names) if names else frozenset({own})
        if not selector.terms:
            return None
        matched = {name for name, given in self._namespaces.items() if selector.matches(given)}
        return frozenset(matched.union(names))

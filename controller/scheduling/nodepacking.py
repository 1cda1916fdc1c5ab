"""Puts pods on existing and in-flight nodes, first fit in order (spec core/scheduling §10).

Keeps, per variant, which nodes may take it, and looks again only at nodes that changed. Private to
the engine.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from controller.scheduling.nodetable import NodeTable
from controller.scheduling.podclasses import PodClass, Variant
from controller.scheduling.podrules import SpreadRule
from controller.scheduling.pods import Pod
from controller.scheduling.topology import Counter

__all__ = ["NodePacking"]

_Mask = NDArray[np.bool_]


@attrs.define(eq=False)
class _View:
    """Nodes that may take one variant, rules about domains and attach slots left out."""

    mask: _Mask
    seen: int


class NodePacking:
    """Nodes with what this run has put on them."""

    def __init__(self, nodes: NodeTable, *, alone: bool) -> None:
        """Start with nothing placed; `alone` when no node will join these."""
        self.nodes = nodes
        self._alone = alone
        self.relied_on_alone = False
        """Whether some place may have been found only because no node will join."""
        self.placements: list[tuple[Pod, int]] = []
        """Pod and node row, in order."""
        self._journal: list[int] = []
        self._looked_at: dict[Counter, NDArray[np.int64]] = {}

    def place(self, pod: Pod, cls: PodClass, variant: Variant) -> bool:
        """Put the pod on the first node that takes it; False when none does."""
        row = self.find(cls, variant)
        if row is None:
            return False
        self.nodes.take(row, cls.request, variant.ports, 1)
        self.nodes.attach(row, cls.rules.volumes)
        for counter in cls.rules.counts_in:
            if counter.looks_at_node(self.nodes, row):
                counter.add_at_node(row, self.nodes.label(row, counter.key.topology_key), 1)
        self._journal.append(row)
        self.placements.append((pod, row))
        return True

    def find(self, cls: PodClass, variant: Variant) -> int | None:
        """Return the first row that takes the pod, None when there is none."""
        mask = self._mask(cls, variant)
        for rule in variant.domain_rules:
            key = rule.counter.key.topology_key
            allowed = rule.allowed(variant.strict.get(key))
            mask = mask & self.nodes.in_domains(key, allowed, unlabelled=rule.tolerates_unlabelled)
        while True:
            row = int(mask.argmax())
            if not mask[row]:
                return None
            if not cls.rules.volumes or self.nodes.attaches(row, cls.rules.volumes):
                return row
            mask = mask.copy()
            mask[row] = False

    def _mask(self, cls: PodClass, variant: Variant) -> _Mask:
        view = cls.views.get(variant)
        if not isinstance(view, _View):
            view = cls.views[variant] = _View(self.demanded(variant), -1)
        if any(rule.opens for rule in variant.host_rules):
            return self._narrowed(view.mask.copy(), slice(None), cls, variant)
        if view.seen != len(self._journal):
            rows = slice(None) if view.seen < 0 else np.array(sorted(set(self._journal[view.seen :])))
            view.mask = self._narrowed(view.mask, rows, cls, variant)
            view.seen = len(self._journal)
        return view.mask

    def demanded(self, variant: Variant) -> _Mask:
        """Return the nodes whose labels and taints suit the variant: (nodes,) bool."""
        mask: _Mask = np.zeros(self.nodes.size, dtype=np.bool_)
        for rules in variant.rules:
            mask |= self.nodes.matching(rules.requirements)
        mask &= self.nodes.tolerated(variant.rules[0].tolerations)
        return mask

    def _narrowed(
        self, mask: _Mask, rows: slice | NDArray[np.int64], cls: PodClass, variant: Variant
    ) -> _Mask:
        """Take out those of the rows that lack room, break a rule about hosts or have a port taken."""
        fits = (self.nodes.room[rows] >= np.array(cls.request, dtype=np.int64)).all(axis=1)
        for rule in variant.host_rules:
            counts = rule.counter.node_counts[rows]
            if isinstance(rule, SpreadRule) and rule.counts_nodes:
                counts = counts - self._emptiest(rule.counter)
            fits &= rule.hosts(counts)
        mask[rows] &= fits
        return self.nodes.without_port_conflict(variant.ports, mask) if variant.ports else mask

    def _emptiest(self, counter: Counter) -> int:
        """Return the least count of a node that the counter looks at; 0 once new hosts are counted.

        With `nodeTaintsPolicy: Honor` a node that is being emptied is not looked at, so the others may
        take its pods (§12.3). A node that joins them is empty at first.
        """
        if not self._alone:
            return 0
        looked_at = self._looked_at.get(counter)
        if looked_at is None:
            rows = [row for row in range(self.nodes.size) if counter.looks_at_node(self.nodes, row)]
            looked_at = self._looked_at[counter] = np.array(rows, dtype=np.int64)
        emptiest = int(counter.node_counts[looked_at].min()) if looked_at.size else 0
        self.relied_on_alone |= emptiest > 0
        return emptiest

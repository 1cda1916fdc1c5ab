"""Existing and in-flight nodes as columns (spec core/scheduling §10).

Rows are in the order in which nodes are tried: initialized first, then by name. Room is what is left
after bound pods and the DaemonSet pods still to come. Private to the engine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from controller.scheduling.memo import IdentityMemo
from controller.scheduling.podfields import HostPort
from controller.scheduling.pods import Pod
from controller.scheduling.requirements import EMPTY, Requirement, Requirements
from controller.scheduling.resources import Resources
from controller.scheduling.snapshot import Snapshot, StateNode
from controller.scheduling.taints import Taint, Toleration, tolerates
from controller.scheduling.templates import hard_taints
from controller.scheduling.volumes import VolumeIndex
from framework.api import labels

__all__ = ["NodeTable", "node_table"]

_Mask = NDArray[np.bool_]


class _Labels:
    """One label over all nodes: codes into its distinct values, None for nodes without it."""

    def __init__(self, codes: NDArray[np.int32], distinct: Sequence[str | None]) -> None:
        self.codes = codes
        self.distinct = tuple(distinct)

    @classmethod
    def of(cls, values: Iterable[str | None]) -> _Labels:
        index: dict[str | None, int] = {}
        codes = np.array([index.setdefault(value, len(index)) for value in values], dtype=np.int32)
        return cls(codes, tuple(index))

    def where(self, allowed: Sequence[bool]) -> _Mask:
        table = np.array(allowed, dtype=np.bool_)
        mask: _Mask = table[self.codes]
        return mask


def _columns(amounts: Iterable[Resources], resources: Sequence[str]) -> NDArray[np.int64]:
    """Return one row per entry and one column per resource, 0 where an entry lacks it."""
    rows = [[each.get(name, 0) for name in resources] for each in amounts]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(resources))


class NodeTable:
    """The nodes that may take pods in this run."""

    _whole: NodeTable | None = None
    """The table that this one is a part of."""
    _kept: NDArray[np.int64]
    """Rows of the whole table that are its own."""

    def __init__(
        self,
        nodes: Sequence[StateNode],
        resources: Sequence[str],
        daemonsets: Sequence[Pod],
        volumes: VolumeIndex,
    ) -> None:
        """Lay the nodes out and set room aside for DaemonSet pods that are not there yet."""
        self.nodes = tuple(sorted(nodes, key=lambda node: (not node.initialized, node.name)))
        self.size = len(self.nodes)
        self._labels: dict[str, _Labels] = {}
        self._masks: dict[Requirements, _Mask] = {}
        sets: dict[tuple[Taint, ...], int] = {}
        codes = [sets.setdefault(node.taints, len(sets)) for node in self.nodes]
        self._taint_codes = np.array(codes, dtype=np.int32)
        self._taint_sets = tuple(sets)
        self._tolerated: dict[tuple[Toleration, ...], _Mask] = {}
        self.room = self._room(resources, daemonsets)
        self.ports: dict[int, list[HostPort]] = {}
        self.attached: dict[int, dict[str, set[str]]] = {}
        self._note_ports_and_volumes(volumes)
        self._volumes = volumes

    def without(self, names: Collection[str]) -> NodeTable:
        """Return a table for one run with the nodes not so named; what no run changes is shared."""
        kept = [row for row, node in enumerate(self.nodes) if node.name not in names]
        part = object.__new__(NodeTable)
        part._whole, part._kept = self, np.array(kept, dtype=np.int64)
        part.nodes = tuple([self.nodes[row] for row in kept])
        part.size = len(kept)
        part._labels, part._masks, part._tolerated = {}, {}, {}
        part._volumes = self._volumes
        part.room = self.room[part._kept]
        part.ports, part.attached = {}, {}
        if self.ports or self.attached:
            for row, old in enumerate(kept):
                if old in self.ports:
                    part.ports[row] = list(self.ports[old])
                if old in self.attached:
                    part.attached[row] = {name: set(keys) for name, keys in self.attached[old].items()}
        return part

    def _room(self, resources: Sequence[str], daemonsets: Sequence[Pod]) -> NDArray[np.int64]:
        room = _columns((node.allocatable for node in self.nodes), resources)
        room -= _columns((node.bound.requests for node in self.nodes), resources)
        if not daemonsets:
            return room
        running = _columns((node.bound.daemon_requests for node in self.nodes), resources)
        expected = np.zeros_like(room)
        for daemon in daemonsets:
            request = np.array([daemon.requests.get(name, 0) for name in resources], dtype=np.int64)
            expected += self._runs(daemon)[:, None] * request
        room -= np.maximum(expected - running, 0)
        return room

    def _runs(self, daemon: Pod) -> _Mask:
        """Nodes that a DaemonSet will run on; only its first required term counts here (§10)."""
        term = daemon.required_terms[0] if daemon.required_terms else EMPTY
        soft = Toleration(operator="Exists", effect="PreferNoSchedule")
        return self.matching(daemon.node_selector.union(term)) & self.tolerated((*daemon.tolerations, soft))

    def _note_ports_and_volumes(self, volumes: VolumeIndex) -> None:
        for row, node in enumerate(self.nodes):
            if node.bound.host_ports:
                self.ports[row] = list(node.bound.host_ports)
            if not node.bound.volume_claims or not volumes.attach_limits.get(node.node_name or ""):
                continue
            for key in node.bound.volume_claims:
                if driver := volumes.driver(key):
                    self.attached.setdefault(row, {}).setdefault(driver, set()).add(key)

    def label(self, row: int, key: str) -> str | None:
        """Return a node's label; its name stands in for a missing host name."""
        node = self.nodes[row]
        value = node.labels.get(key)
        return node.name if value is None and key == labels.HOSTNAME else value

    def _column(self, key: str) -> _Labels:
        column = self._labels.get(key)
        if column is None:
            if self._whole is None:
                column = _Labels.of(self.label(row, key) for row in range(self.size))
            else:
                whole = self._whole._column(key)
                column = _Labels(whole.codes[self._kept], whole.distinct)
            self._labels[key] = column
        return column

    def matching(self, wanted: Requirements) -> _Mask:
        """Return the nodes whose labels satisfy these, nothing undefined allowed: (nodes,) bool."""
        mask = self._masks.get(wanted)
        if mask is None:
            if self._whole is None:
                mask = self._find_matching(wanted)
            else:
                mask = self._whole.matching(wanted)[self._kept]
            self._masks[wanted] = mask
        return mask

    def _find_matching(self, wanted: Requirements) -> _Mask:
        mask = np.ones(self.size, dtype=np.bool_)
        for key, requirement in wanted.items():
            column = self._column(key)
            mask &= column.where([_satisfies(value, requirement) for value in column.distinct])
        return mask

    def tolerated(self, tolerations: tuple[Toleration, ...]) -> _Mask:
        """Return the nodes all of whose taints these tolerate: (nodes,) bool."""
        mask = self._tolerated.get(tolerations)
        if mask is None:
            if self._whole is None:
                table = [tolerates(tolerations, taints) is None for taints in self._taint_sets]
                mask = np.array(table, dtype=np.bool_)[self._taint_codes]
            else:
                mask = self._whole.tolerated(tolerations)[self._kept]
            self._tolerated[tolerations] = mask
        return mask

    def tolerated_hard(self, tolerations: tuple[Toleration, ...], row: int) -> bool:
        """Tell whether these tolerate the taints of a node that repel pods for good."""
        return tolerates(tolerations, hard_taints(self.nodes[row].taints)) is None

    def in_domains(self, key: str, allowed: frozenset[str], *, unlabelled: bool) -> _Mask:
        """Return the nodes whose label is one of these, or missing if `unlabelled`: (nodes,) bool."""
        column = self._column(key)
        return column.where([unlabelled if v is None else v in allowed for v in column.distinct])

    def without_port_conflict(self, wanted: Sequence[HostPort], mask: _Mask) -> _Mask:
        """Return the mask without the nodes on which one of these ports is taken."""
        blocked = [
            row for row, taken in self.ports.items() if any(p.conflicts(t) for p in wanted for t in taken)
        ]
        mask = mask.copy()
        mask[blocked] = False
        return mask

    def attaches(self, row: int, volumes: Sequence[tuple[str, str]]) -> bool:
        """Tell whether the node has an attach slot for each (driver, claim key) not yet on it (§13.4)."""
        limits = self._volumes.attach_limits.get(self.nodes[row].node_name or "")
        if not limits:
            return True
        present = self.attached.get(row, {})
        for driver in {driver for driver, _ in volumes}:
            limit = limits.get(driver)
            keys = {key for name, key in volumes if name == driver} | present.get(driver, set())
            if limit is not None and len(keys) > limit:
                return False
        return True

    def take(self, row: int, request: Sequence[int], pod_ports: Sequence[HostPort], count: int) -> None:
        """Use room and ports up for `count` pods."""
        self.room[row] -= np.array(request, dtype=np.int64) * count
        if pod_ports:
            self.ports.setdefault(row, []).extend(pod_ports)

    def attach(self, row: int, volumes: Sequence[tuple[str, str]]) -> None:
        """Use attach slots up."""
        for driver, key in volumes:
            self.attached.setdefault(row, {}).setdefault(driver, set()).add(key)


_LAYOUTS: Final[IdentityMemo[dict[tuple[str, ...], NodeTable]]] = IdentityMemo(4)
"""Whole tables by their resource columns; few pictures: a round, a pass of disruption, its validation."""


def node_table(snapshot: Snapshot, resources: tuple[str, ...], *, without: Collection[str]) -> NodeTable:
    """Return the picture's nodes but those named; laid out once for all runs on the same picture."""
    inputs = (snapshot.nodes, snapshot.daemonsets, snapshot.volumes)
    known = _LAYOUTS.get(inputs, dict)
    whole = known.get(resources)
    if whole is None:
        whole = known[resources] = NodeTable(snapshot.nodes, resources, snapshot.daemonsets, snapshot.volumes)
    return whole.without(without)


def _satisfies(value: str | None, requirement: Requirement) -> bool:
    return requirement.is_negative if value is None else requirement.has(value)

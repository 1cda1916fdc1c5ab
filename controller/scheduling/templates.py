"""What each pool would launch: template, types and daemon overhead (spec core/scheduling §4, §13.2).

Made at the start of a run, one per usable pool in the order they are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np

from controller.scheduling.catalog import BoolColumn, IntTable, TypeTable
from controller.scheduling.limits import Ledger, capacity_columns
from controller.scheduling.plan import MinValuesPolicy
from controller.scheduling.podfields import HostPort
from controller.scheduling.pods import Pod
from controller.scheduling.requirements import EMPTY, Requirement, Requirements
from controller.scheduling.taints import Taint, tolerates
from framework.api import labels
from framework.api.nodepool import NodePool
from framework.api.requirement_spec import Operator
from framework.api.schedulingconfig import SchedulingConfig

if TYPE_CHECKING:
    from controller.scheduling.steering import Steering

__all__ = ["DaemonLoad", "Template", "hard_taints", "template_requirements"]

_AT_REST = Requirements.of(
    Requirement.new(labels.REGISTERED, Operator.IN, ("true",)),
    Requirement.new(labels.INITIALIZED, Operator.IN, ("true",)),
)
"""Labels that DaemonSets may select although a claim gets them only later."""


def hard_taints(taints: Sequence[Taint]) -> tuple[Taint, ...]:
    """Return the taints that DaemonSets must tolerate: all but PreferNoSchedule."""
    return tuple(taint for taint in taints if taint.effect != "PreferNoSchedule")


def template_requirements(pool: NodePool) -> Requirements:
    """Return the pool's requirements and its labels as requirements, the pool's and class's own included."""
    template = pool.spec.template
    ref = template.spec.node_class_ref
    fixed = {
        **template.metadata.labels,
        labels.NODEPOOL: pool.name,
        f"{ref.group}/{ref.kind.lower()}": ref.name,
    }
    return Requirements.from_specs(template.spec.requirements).union(Requirements.from_labels(fixed))


@attrs.frozen(kw_only=True, eq=False, slots=False)
class DaemonLoad:
    """What DaemonSets will take of a new node, per instance type."""

    overhead: IntTable
    """(types, resources) int64."""
    ports: tuple[tuple[BoolColumn, tuple[HostPort, ...]], ...]
    """Types on which a DaemonSet runs, with the host ports it takes."""

    @classmethod
    def of(
        cls,
        daemonsets: Sequence[Pod],
        template: tuple[Requirements, tuple[Taint, ...]],
        table: TypeTable,
        resources: Sequence[str],
        well_known: frozenset[str],
    ) -> DaemonLoad:
        """Match each DaemonSet with the template's requirements and taints, then with each type."""
        requirements, taints = template
        overhead = np.zeros((table.size, len(resources)), dtype=np.int64)
        ports = []
        for daemon in daemonsets:
            if tolerates(daemon.tolerations, hard_taints(taints)) is not None:
                continue
            rows = _daemon_rows(daemon, requirements.union(_AT_REST), table, well_known)
            if not rows.any():
                continue
            request = np.array([daemon.requests.get(name, 0) for name in resources], dtype=np.int64)
            overhead += rows[:, None] * request
            if daemon.host_ports:
                ports.append((rows, daemon.host_ports))
        return cls(overhead=overhead, ports=tuple(ports))

    @cached_property
    def is_empty(self) -> bool:
        """Whether no DaemonSet takes anything."""
        return not self.overhead.any()

    def free_of(self, wanted: Sequence[HostPort]) -> BoolColumn | None:
        """Return the types whose DaemonSets leave these ports free; None when all do."""
        mask: BoolColumn | None = None
        for rows, taken in self.ports:
            if any(port.conflicts(other) for port in wanted for other in taken):
                mask = ~rows if mask is None else mask & ~rows
        return mask


def _daemon_rows(daemon: Pod, node: Requirements, table: TypeTable, well_known: frozenset[str]) -> BoolColumn:
    rows = np.zeros(table.size, dtype=np.bool_)
    for term in daemon.required_terms or (EMPTY,):
        wanted = daemon.node_selector.union(term)
        if node.compatible(wanted, well_known):
            rows |= table.matching(wanted)
    return rows


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Template:
    """One pool as the engine tries it."""

    index: int
    """Place in the order of trial."""
    pool: NodePool
    config: SchedulingConfig | None
    """The one that governs the pool."""
    requirements: Requirements
    """Those of the pool and of its config together."""
    taints: tuple[Taint, ...]
    startup_taints: tuple[Taint, ...]
    table: TypeTable
    daemons: DaemonLoad
    room: IntTable
    """(types, resources) int64: allocatable minus daemon overhead."""
    sound: BoolColumn
    """Types that can hold anything: nothing of their room is negative."""
    ledgers: tuple[Ledger, ...]
    min_values_policy: MinValuesPolicy
    node_cost: float = 0.0
    """USD per hour added to each node's price."""
    steering: Steering | None = None
    """Where new claims may go; None when no SchedulingConfig minds."""

    @property
    def name(self) -> str:
        """The pool's name."""
        return self.pool.name

    @cached_property
    def capacity(self) -> dict[str, IntTable]:
        """Capacity per limited resource, (types,) int64 each."""
        return capacity_columns(self.table, self.ledgers)

    @cached_property
    def has_reservations(self) -> bool:
        """Whether some type has a reserved offering."""
        return bool(self.table.reserved)

    @property
    def has_overlays(self) -> bool:
        """Whether a NodeOverlay changed something about its types."""
        return self.table.has_overlays

    def allowed(self) -> BoolColumn:
        """Return the types that the limits still allow to be opened."""
        allowed = self.sound
        for ledger in self.ledgers:
            if any(ledger.remaining[name] < self._largest[name] for name in ledger.resources):
                allowed = ledger.restrict(self.capacity, allowed)
        return allowed

    @cached_property
    def _largest(self) -> dict[str, int]:
        """The most of each limited resource that one type has."""
        return {name: int(column.max(initial=0)) for name, column in self.capacity.items()}

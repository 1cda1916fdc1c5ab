"""Ledgers of what pools may still use (spec core/scheduling §7).

One per NodePool with limits and one per SchedulingConfig with limits, shared by its pools. Planned
claims count from the moment they are planned, `nodes` included, so a round never overshoots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.scheduling.catalog import BoolColumn, IntTable, TypeTable
from controller.scheduling.resources import Resources

__all__ = ["Ledger", "capacity_columns"]


class Ledger:
    """What is left of a set of limits."""

    def __init__(self, owner: str, limits: Resources, used: Resources, *, paused: str | None = None) -> None:
        """Start from the limits minus what nodes use; `owner` is the kind and name that set them.

        `paused` says in words what holds the owner back when the limits are not of a user's making.
        """
        self.owner = owner
        self.paused = paused
        self.limits = dict(limits)
        self.resources = tuple(sorted(limits))
        self.remaining = {name: limits[name] - used.get(name, 0) for name in self.resources}

    def copy(self) -> Ledger:
        """Return an independent ledger in the same state."""
        other = Ledger(self.owner, self.limits, {}, paused=self.paused)
        other.remaining = dict(self.remaining)
        return other

    def restrict(self, capacity: Mapping[str, IntTable], allowed: BoolColumn) -> BoolColumn:
        """Return the allowed types whose capacity fits what is left of every limited resource."""
        for name in self.resources:
            allowed = allowed & (capacity[name] <= self.remaining[name])
        return allowed

    def charge(self, capacity: Mapping[str, IntTable], possible: BoolColumn) -> None:
        """Take the largest capacity among the types a new claim may be (pessimistic, spec §7)."""
        for name in self.resources:
            self.remaining[name] -= int(capacity[name][possible].max(initial=0))

    def exhausted(self) -> tuple[str, ...]:
        """Return the limited resources of which nothing is left."""
        return tuple(name for name in self.resources if self.remaining[name] <= 0)


def capacity_columns(table: TypeTable, ledgers: Sequence[Ledger]) -> dict[str, IntTable]:
    """Return capacity per limited resource, (types,) int64 each."""
    names = sorted({name for ledger in ledgers for name in ledger.resources})
    columns = table.capacity(names)
    return {name: columns[:, i] for i, name in enumerate(names)}

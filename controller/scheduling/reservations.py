"""Who holds prepaid capacity in a run (spec core/scheduling §14).

Each open claim holds one unit of every reservation it might use. Private to the engine.
"""

from __future__ import annotations

from collections.abc import Sequence

from controller.scheduling.catalog import BoolColumn
from controller.scheduling.plan import ReservedMode
from controller.scheduling.requirements import Requirements
from controller.scheduling.templates import Template

__all__ = ["Reservations", "ReservedRefusal"]


class ReservedRefusal(Exception):
    """Reserved capacity is compatible but cannot be had; the pod waits for the next round."""


class Reservations:
    """Units left per reservation."""

    def __init__(self, templates: Sequence[Template], mode: ReservedMode) -> None:
        """Start from the least capacity that any pool reports for a reservation."""
        self._strict = mode is ReservedMode.STRICT
        self.left: dict[str, int] = {}
        for template in templates:
            for _, offering in template.table.reserved:
                identity = offering.reservation_id or ""
                known = self.left.get(identity, offering.reservation_capacity)
                self.left[identity] = min(known, offering.reservation_capacity)

    def choose(
        self, template: Template, requirements: Requirements, types: BoolColumn, held: frozenset[str]
    ) -> frozenset[str]:
        """Return the reservations that a claim in this state can hold.

        Raises ReservedRefusal in Strict mode when some are compatible and none can be had, or when the
        claim would lose all that it holds.
        """
        compatible = {
            offering.reservation_id or ""
            for row, offering in template.table.reserved
            if types[row] and offering.allowed_by(requirements)
        }
        can_hold = frozenset(i for i in compatible if i in held or self.left[i] > 0)
        if self._strict and not can_hold and (compatible or held):
            raise ReservedRefusal
        return can_hold

    def exchange(self, held: frozenset[str], chosen: frozenset[str]) -> None:
        """Give back what is no longer held and take what is new."""
        for identity in held - chosen:
            self.left[identity] += 1
        for identity in chosen - held:
            self.left[identity] -= 1
            if self.left[identity] < 0:
                raise AssertionError(f"reservation {identity} is held more often than it has units")

"""States that a new claim can be in, shared by all claims in the same state (design: scheduling engine).

A state is a template, its requirements narrowed so far and the types the limits allowed when it was
opened. Each holds a mask of types and the frontier of their room, so that "does any type still hold
this" is a comparison with a handful of rows. Private to the engine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.scheduling.catalog import BoolColumn, IntTable
from controller.scheduling.requirements import Requirement, Requirements
from controller.scheduling.templates import Template
from framework.api import labels

__all__ = ["ClaimShape", "ShapeTable", "frontier"]

_FAILS = -1
"""Room of frontier rows that a shape does not have: less than any claim uses."""


class ClaimShape:
    """One state; `mask` are the types whose requirements and offerings allow it, whatever they hold."""

    __slots__ = (
        "base",
        "frontier",
        "id",
        "mask",
        "min_values",
        "narrowed",
        "price",
        "requirements",
        "template",
    )

    def __init__(self, template: Template, requirements: Requirements, base: BoolColumn) -> None:
        """Compute the mask; `frontier` stays empty when no type is left."""
        self.id = -1
        self.template = template
        self.requirements = requirements
        self.base = base
        offered, self.price = template.table.offered(requirements)
        mask = template.table.matching(requirements)
        mask &= base
        mask &= offered
        self.mask = mask
        self.frontier = frontier(template.room[self.mask])
        self.narrowed: dict[Requirement, ClaimShape | None] = {}
        self.min_values = requirements.min_values

    def holds(self, used: list[int]) -> bool:
        """Tell whether some type has room for so much in all; `used` is per resource."""
        for row in self.frontier:
            for room, amount in zip(row, used, strict=True):
                if room < amount:
                    break
            else:
                return True
        return False

    def holds_more(self, used: list[int], request: list[int]) -> bool:
        """Tell whether some type has room for one more such request on top of what is used."""
        for row in self.frontier:
            for room, have, more in zip(row, used, request, strict=True):
                if room < have + more:
                    break
            else:
                return True
        return False

    def more(self, used: list[int], request: list[int]) -> int:
        """Return how many pods of that request some type still has room for."""
        best = 0
        for row in self.frontier:
            fit = min(
                (
                    (room - have) // amount
                    for room, have, amount in zip(row, used, request, strict=True)
                    if amount
                ),
                default=0,
            )
            if fit > best and all(room >= have for room, have in zip(row, used, strict=True)):
                best = fit
        return best

    def types_holding(self, used: list[int]) -> BoolColumn:
        """Return the types, (types,) bool, that have room for so much in all."""
        room = self.template.room
        fits = np.logical_and.reduce(room >= np.array(used, dtype=np.int64), axis=1)
        return np.logical_and(fits, self.mask)


def frontier(rows: IntTable) -> tuple[tuple[int, ...], ...]:
    """Return the rows that no other row equals or exceeds everywhere, roomiest first."""
    left = np.unique(rows, axis=0)
    kept: list[tuple[int, ...]] = []
    scale = np.maximum(left.max(axis=0, initial=1), 1).astype(np.float64)
    while left.size:
        best = left[int((left / scale).sum(axis=1).argmax())]
        kept.append(tuple(best.tolist()))
        left = left[(left > best).any(axis=1)]
    return tuple(kept)


class ShapeTable:
    """Every state of a run by number, with the frontiers as arrays for vector tests."""

    def __init__(self, resources: int, well_known: frozenset[str]) -> None:
        """Start empty; `resources` is the number of resource columns."""
        self._well_known = well_known
        self.shapes: list[ClaimShape] = []
        self._known: dict[tuple[int, bytes, Requirements], ClaimShape | None] = {}
        self._fronts: list[NDArray[np.int64]] = []
        self._resources = resources

    def intern(self, template: Template, requirements: Requirements, base: BoolColumn) -> ClaimShape | None:
        """Return the one state with these parts, None when no instance type is left in it."""
        key = (template.index, base.tobytes(), requirements)
        if key in self._known:
            return self._known[key]
        shape: ClaimShape | None = ClaimShape(template, requirements, base)
        if shape is not None and not shape.frontier:
            shape = None
        self._known[key] = shape
        if shape is not None:
            self._number(shape)
        return shape

    def narrow(self, shape: ClaimShape, requirement: Requirement) -> ClaimShape | None:
        """Return the state that also demands this, None when nothing is left."""
        if requirement not in shape.narrowed:
            merged = shape.requirements.add(requirement)
            known = shape.requirements.get(requirement.key)
            defined = requirement.key in shape.template.requirements or requirement.key in self._well_known
            if not defined or (known is not None and not known.overlaps(requirement)):
                shape.narrowed[requirement] = None
            else:
                shape.narrowed[requirement] = self.intern(shape.template, merged, shape.base)
        return shape.narrowed[requirement]

    def narrow_all(self, shape: ClaimShape, wanted: Requirements) -> ClaimShape | None:
        """Return the state after taking a pod's node requirements (spec §5, §11).

        A positive requirement on a key that neither the pool nor the well-known labels define fails,
        whatever other pods have said about that key before.
        """
        defined = shape.template.requirements
        for key, requirement in wanted.items():
            if key == labels.HOSTNAME:
                if not (requirement.complement and requirement.gte is None and requirement.lte is None):
                    return None
            elif key not in defined and key not in self._well_known and not requirement.is_negative:
                return None
        visible = wanted.without(labels.HOSTNAME) if labels.HOSTNAME in wanted else wanted
        if not shape.requirements.compatible(visible, frozenset(visible)):
            return None
        merged = shape.requirements.union(visible)
        return shape if merged == shape.requirements else self.intern(shape.template, merged, shape.base)

    def fronts(self, level: int) -> NDArray[np.int64]:
        """Return the level-th frontier row of every state, (resources, states) int64."""
        return self._fronts[level]

    @property
    def levels(self) -> int:
        """The most frontier rows any state has."""
        return len(self._fronts)

    def _number(self, shape: ClaimShape) -> None:
        shape.id = len(self.shapes)
        self.shapes.append(shape)
        while len(self._fronts) < len(shape.frontier):
            columns = self._fronts[0].shape[1] if self._fronts else 8
            self._fronts.append(np.full((self._resources, columns), _FAILS, dtype=np.int64))
        if shape.id >= self._fronts[0].shape[1]:
            self._fronts = [np.concatenate([f, np.full_like(f, _FAILS)], axis=1) for f in self._fronts]
        for level, row in enumerate(shape.frontier):
            self._fronts[level][:, shape.id] = row

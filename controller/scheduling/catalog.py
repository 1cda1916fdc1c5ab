"""Instance types as columns of arrays (design: scheduling engine).

Built once per pool from the provider's types and read by every vector operation of the engine. Row
order is by name, so that ties never depend on the provider's order. Exact: integers only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from controller.scheduling.instancetypes import CapacityType, InstanceType, Offering
from controller.scheduling.requirements import Requirement, Requirements

__all__ = ["BoolColumn", "FloatColumn", "IntTable", "TypeTable"]

BoolColumn = NDArray[np.bool_]
"""(types,) bool."""
IntTable = NDArray[np.int64]
"""(types, resources) int64."""
FloatColumn = NDArray[np.float64]


class _Codes:
    """One key's requirement per row, as codes into its distinct requirements."""

    def __init__(self, column: Sequence[Requirement | None]) -> None:
        index: dict[Requirement | None, int] = {}
        codes = [index.setdefault(requirement, len(index)) for requirement in column]
        self.codes = np.array(codes, dtype=np.int32)
        self.distinct = tuple(index)

    def mask(self, wanted: Requirement) -> BoolColumn:
        """Return the rows whose requirement shares a value with `wanted`; undefined ones do."""
        table = np.array([_shares(known, wanted) for known in self.distinct], dtype=np.bool_)
        return table[self.codes]


def _shares(known: Requirement | None, wanted: Requirement) -> bool:
    return known is None or known.overlaps(wanted) or (known.is_negative and wanted.is_negative)


class TypeTable:
    """The types of one pool, sorted by name, with their available offerings."""

    def __init__(self, types: Sequence[InstanceType], *, reserved: bool) -> None:
        """Lay the types out; `reserved` False leaves reserved offerings out (gate ReservedCapacity)."""
        self.types = tuple(sorted(types, key=lambda t: t.name))
        self.names: NDArray[np.object_] = np.array([t.name for t in self.types], dtype=object)
        self.size = len(self.types)
        self.sound = np.array(
            [min(t.allocatable.values(), default=0) >= 0 for t in self.types], dtype=np.bool_
        )
        keys = sorted({key for t in self.types for key in t.requirements})
        self._codes = {key: _Codes([t.requirements.get(key) for t in self.types]) for key in keys}
        self._masks: dict[Requirement, BoolColumn] = {}
        self._place_offerings(reserved=reserved)
        self._offered: dict[tuple[Requirement, ...], tuple[BoolColumn, FloatColumn]] = {}
        self._values: dict[str, dict[str, BoolColumn]] = {}
        self._allocatable: dict[tuple[str, ...], IntTable] = {}

    def _place_offerings(self, *, reserved: bool) -> None:
        rows: list[tuple[int, Offering]] = [
            (row, offering)
            for row, t in enumerate(self.types)
            for offering in t.offerings
            if offering.available and (reserved or offering.capacity_type != CapacityType.RESERVED)
        ]
        self.reserved = tuple((row, o) for row, o in rows if o.capacity_type == CapacityType.RESERVED)
        owners = [row for row, _ in rows]
        self._owners = np.array(sorted(set(owners)), dtype=np.int64)
        self._starts = np.searchsorted(np.array(owners, dtype=np.int64), self._owners)
        self._prices = np.array([offering.sort_price for _, offering in rows], dtype=np.float64)
        keys = sorted({key for _, offering in rows for key in offering.requirements})
        self._offering_codes = {key: _Codes([o.requirements.get(key) for _, o in rows]) for key in keys}

    @cached_property
    def has_overlays(self) -> bool:
        """Whether a NodeOverlay changed something about the types."""
        return any(t.overlaid or any(o.overlaid for o in t.offerings) for t in self.types)

    def allocatable(self, resources: Sequence[str]) -> IntTable:
        """Return (types, resources) int64, not to be written to; a resource that a type lacks is 0."""
        columns = tuple(resources)
        known = self._allocatable.get(columns)
        if known is None:
            known = self._allocatable[columns] = self._amounts([t.allocatable for t in self.types], columns)
        return known

    def capacity(self, resources: Sequence[str]) -> IntTable:
        """Return (types, resources) int64, with `nodes` as 1 each."""
        return self._amounts([{"nodes": 1, **t.capacity} for t in self.types], resources)

    def _amounts(self, maps: Sequence[Mapping[str, int]], resources: Sequence[str]) -> IntTable:
        flat = [amounts.get(name, 0) for amounts in maps for name in resources]
        return np.array(flat, dtype=np.int64).reshape(self.size, len(resources))

    def matching(self, requirements: Requirements) -> BoolColumn:
        """Return the types whose own requirements intersect these (spec §8 "compatible")."""
        mask = np.ones(self.size, dtype=np.bool_)
        for key, wanted in requirements.items():
            if key in self._codes:
                mask &= self._mask(key, wanted)
        return mask

    def _mask(self, key: str, wanted: Requirement) -> BoolColumn:
        mask = self._masks.get(wanted)
        if mask is None:
            mask = self._masks[wanted] = self._codes[key].mask(wanted)
        return mask

    def offered(self, requirements: Requirements) -> tuple[BoolColumn, FloatColumn]:
        """Return which types have an available offering so allowed, and its lowest price (inf if none)."""
        wanted = tuple(requirements[key] for key in self._offering_codes if key in requirements)
        known = self._offered.get(wanted)
        if known is None:
            known = self._offered[wanted] = self._find_offered(wanted)
        return known

    def _find_offered(self, wanted: tuple[Requirement, ...]) -> tuple[BoolColumn, FloatColumn]:
        has = np.zeros(self.size, dtype=np.bool_)
        price = np.full(self.size, np.inf)
        if not self._owners.size:
            return has, price
        mask = np.ones(self._prices.size, dtype=np.bool_)
        for requirement in wanted:
            mask &= self._offering_codes[requirement.key].mask(requirement)
        has[self._owners] = np.logical_or.reduceat(mask, self._starts)
        price[self._owners] = np.minimum.reduceat(np.where(mask, self._prices, np.inf), self._starts)
        return has, price

    def values(self, key: str) -> frozenset[str]:
        """Return every value that some type's own requirements name for a key."""
        codes = self._codes.get(key)
        known = [] if codes is None else [r for r in codes.distinct if r is not None and not r.complement]
        return frozenset[str]().union(*(requirement.values for requirement in known))

    def distinct_values(self, key: str, rows: BoolColumn) -> int:
        """Return how many values of a key these types have between them (minValues, spec §8)."""
        columns = self._values.get(key)
        if columns is None:
            columns = self._values[key] = self._value_columns(key)
        return sum(bool((column & rows).any()) for column in columns.values())

    def _value_columns(self, key: str) -> dict[str, BoolColumn]:
        columns: dict[str, BoolColumn] = {}
        for row, t in enumerate(self.types):
            requirement = t.requirements.get(key)
            for value in sorted(requirement.values) if requirement and not requirement.complement else ():
                columns.setdefault(value, np.zeros(self.size, dtype=np.bool_))[row] = True
        return columns

"""Arithmetic on resource maps (spec core/scheduling §13.1).

Used by the whole controller. Amounts are exact integers: `cpu` in milli-cores, everything else in
whole base units (bytes, counts). Never parses text (that is `framework.api.quantity`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["NO_RESOURCES", "PODS", "Resources", "add", "fits", "largest", "smallest", "subtract"]

Resources = Mapping[str, int]
"""Amounts by resource name: `cpu` in milli-cores, everything else in whole base units."""

PODS: Final = "pods"
NO_RESOURCES: Final[Resources] = MappingProxyType({})


def add(*maps: Resources) -> dict[str, int]:
    """Return the sum per resource; a resource missing from a map counts as 0."""
    total: dict[str, int] = {}
    for resources in maps:
        for name, amount in resources.items():
            total[name] = total.get(name, 0) + amount
    return total


def subtract(minuend: Resources, *subtrahends: Resources) -> dict[str, int]:
    """Return what is left per resource of either side; may be negative."""
    left = dict(minuend)
    for resources in subtrahends:
        for name, amount in resources.items():
            left[name] = left.get(name, 0) - amount
    return left


def largest(maps: Iterable[Resources]) -> dict[str, int]:
    """Return the largest amount per resource named by any map."""
    best: dict[str, int] = {}
    for resources in maps:
        for name, amount in resources.items():
            best[name] = max(best.get(name, amount), amount)
    return best


def smallest(maps: Iterable[Resources]) -> dict[str, int]:
    """Return the smallest amount per resource that every map names; others are left out."""
    every = list(maps)
    if not every:
        return {}
    shared = set(every[0]).intersection(*every[1:])
    return {name: min(resources[name] for resources in every) for name in sorted(shared)}


def fits(requests: Resources, available: Resources) -> bool:
    """Tell whether every requested amount is there; a missing resource counts as 0.

    Nothing fits where anything available is negative (spec §8).
    """
    if any(amount < 0 for amount in available.values()):
        return False
    return all(amount <= available.get(name, 0) for name, amount in requests.items())

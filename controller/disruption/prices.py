"""What launching a planned claim would cost, type by type (spec core/scheduling §8).

Called by consolidation. Pure; remembers what it worked out for one `World`, because hundreds of
simulations ask for the same few sets of zones and capacity types.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from controller.scheduling import InstanceType, PlannedClaim, Requirement, Requirements
from framework.api import labels

__all__ = ["LaunchPrice", "LaunchPrices", "PriceBook", "min_needed", "min_values_met"]

_OFFERING_KEYS: Final = (
    labels.ZONE,
    labels.ZONE_ID,
    labels.CAPACITY_TYPE,
    labels.CAPACITY_RESERVATION_ID,
    labels.CAPACITY_RESERVATION_TYPE,
)


@attrs.frozen(kw_only=True)
class LaunchPrice:
    """USD per hour of one type for one set of requirements; infinite when nothing is on offer."""

    cheapest: float
    worst: float
    """The dearest offering of the first class (reserved, spot, on-demand) that is on offer."""


class LaunchPrices:
    """Launch prices of one pool's types for one set of requirements."""

    def __init__(self, types: Mapping[str, InstanceType], wanted: Requirements) -> None:
        """Keep the types by name and the requirements that offerings can differ in."""
        self._types = types
        self._wanted = wanted
        self._known: dict[str, LaunchPrice] = {}

    def of(self, name: str) -> LaunchPrice:
        """Return the prices of the named type; infinite for one the pool does not have."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._price(self._types.get(name))
        return known

    def _price(self, found: InstanceType | None) -> LaunchPrice:
        offering = found.cheapest(self._wanted) if found is not None else None
        if found is None or offering is None:
            return LaunchPrice(cheapest=math.inf, worst=math.inf)
        return LaunchPrice(cheapest=offering.sort_price, worst=found.worst_launch_price(self._wanted))


class PriceBook:
    """Launch prices for every pool of one picture."""

    def __init__(self, types_by_pool: Mapping[str, Mapping[str, InstanceType]]) -> None:
        """Keep the types by pool and name."""
        self._types = types_by_pool
        self._views: dict[tuple[str, tuple[Requirement | None, ...]], LaunchPrices] = {}

    def view(self, pool: str, requirements: Requirements) -> LaunchPrices:
        """Return the launch prices of the pool's types under the requirements."""
        key = (pool, tuple(requirements.get(each) for each in _OFFERING_KEYS))
        found = self._views.get(key)
        if found is None:
            wanted = Requirements(
                {each: requirements[each] for each in _OFFERING_KEYS if each in requirements}
            )
            found = self._views[key] = LaunchPrices(self._types.get(pool, {}), wanted)
        return found

    def types(self, planned: PlannedClaim) -> list[InstanceType]:
        """Return the planned claim's instance types, in its order."""
        types = self._types.get(planned.pool, {})
        return [types[name] for name in planned.instance_types if name in types]


def min_values_met(types: Iterable[InstanceType], requirements: Requirements) -> bool:
    """Return whether the types together keep every `minValues` of the requirements."""
    wanted = dict(requirements.min_values)
    if not wanted:
        return True
    seen: dict[str, set[str]] = {key: set() for key in wanted}
    for each in types:
        for key in wanted:
            if key in each.requirements:
                seen[key] |= each.requirements[key].values
        if all(len(seen[key]) >= least for key, least in wanted.items()):
            return True
    return False


def min_needed(types: Sequence[InstanceType], requirements: Requirements) -> int:
    """Return the length of the shortest prefix that keeps every `minValues`; all of it when none does."""
    if not requirements.min_values:
        return 0
    for length in range(1, len(types) + 1):
        if min_values_met(types[:length], requirements):
            return length
    return len(types)

"""Machine shapes on offer and what they cost (spec core/scheduling §8).

Filled by the cloud provider, read by the engine and by disruption. Frozen; never asks the cloud.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from typing import Final

import attrs

from controller.scheduling.requirements import Requirement, Requirements
from controller.scheduling.resources import NO_RESOURCES, Resources
from framework.api import labels
from framework.api.requirement_spec import Operator

__all__ = ["CapacityType", "InstanceType", "Offering", "in_price_order"]

_LAUNCH_PREFERENCE: Final = ("reserved", "spot", "on-demand")
_HUGEPAGES: Final = "hugepages-"


class CapacityType(StrEnum):
    """How an instance is paid for."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVED = "reserved"


@attrs.frozen(kw_only=True, slots=False)
class Offering:
    """One instance type in one zone under one capacity type."""

    zone: str
    capacity_type: CapacityType = attrs.field(converter=CapacityType)
    price: float | None
    """USD per hour; None when nobody knows it, which sorts last."""
    available: bool = True
    zone_id: str | None = None
    reservation_id: str | None = None
    reservation_type: str | None = None
    reservation_capacity: int = 0
    """Instances the reservation still holds."""
    overlaid: bool = False
    """A NodeOverlay changed its price."""
    launches_left: int | None = None
    """Claims that may be sent for it at once, while it is tried again after a shortage; None: no limit."""

    @cached_property
    def requirements(self) -> Requirements:
        """What a node from this offering is labelled with."""
        entries = [
            Requirement.new(labels.ZONE, Operator.IN, (self.zone,)),
            Requirement.new(labels.CAPACITY_TYPE, Operator.IN, (self.capacity_type,)),
            _exactly(labels.CAPACITY_RESERVATION_ID, self.reservation_id),
            _exactly(labels.CAPACITY_RESERVATION_TYPE, self.reservation_type),
        ]
        if self.zone_id is not None:
            entries.append(_exactly(labels.ZONE_ID, self.zone_id))
        return Requirements.of(*entries)

    @property
    def sort_price(self) -> float:
        """The price, infinite when unknown."""
        return float("inf") if self.price is None else self.price

    def allowed_by(self, requirements: Requirements) -> bool:
        """Tell whether a node with these requirements may come from it."""
        return requirements.intersects(self.requirements)


def _exactly(key: str, value: str | None) -> Requirement:
    return Requirement.new(
        key, Operator.DOES_NOT_EXIST if value is None else Operator.IN, () if value is None else (value,)
    )


def _as_tuple(offerings: Iterable[Offering]) -> tuple[Offering, ...]:
    return tuple(offerings)


@attrs.frozen(kw_only=True, slots=False)
class InstanceType:
    """A machine shape: its labels, where it is on offer, what it has and what the system keeps."""

    name: str
    requirements: Requirements
    """Every well-known label, defined or DoesNotExist."""
    offerings: tuple[Offering, ...] = attrs.field(converter=_as_tuple)
    capacity: Resources
    overhead: Resources = NO_RESOURCES
    """kube reserved + system reserved + eviction threshold."""
    overlaid: bool = False
    """A NodeOverlay changed its capacity."""

    @cached_property
    def allocatable(self) -> Resources:
        """Capacity without overhead; memory is also reduced by huge pages, to no less than 0 (§8)."""
        left = {name: amount - self.overhead.get(name, 0) for name, amount in self.capacity.items()}
        pages = sum(amount for name, amount in self.capacity.items() if name.startswith(_HUGEPAGES))
        if pages:
            left["memory"] = max(0, left.get("memory", 0) - pages)
        return left

    def allowed_offerings(self, requirements: Requirements) -> tuple[Offering, ...]:
        """Return the available offerings that the requirements allow, cheapest first."""
        allowed = [o for o in self.offerings if o.available and o.allowed_by(requirements)]
        return tuple(
            sorted(allowed, key=lambda o: (o.sort_price, o.zone, o.capacity_type, o.reservation_id or ""))
        )

    def cheapest(self, requirements: Requirements) -> Offering | None:
        """Return the cheapest available offering that the requirements allow."""
        return next(iter(self.allowed_offerings(requirements)), None)

    def worst_launch_price(self, requirements: Requirements) -> float:
        """Return the dearest price of the capacity type that would be launched first (§8), USD per hour.

        Infinite when nothing is available.
        """
        allowed = self.allowed_offerings(requirements)
        for capacity_type in _LAUNCH_PREFERENCE:
            prices = [offering.sort_price for offering in allowed if offering.capacity_type == capacity_type]
            if prices:
                return max(prices)
        return float("inf")


def in_price_order(types: Iterable[InstanceType], requirements: Requirements) -> tuple[InstanceType, ...]:
    """Return the types by their cheapest available offering, then by name; without one they come last."""

    def key(instance_type: InstanceType) -> tuple[float, str]:
        offering = instance_type.cheapest(requirements)
        return (float("inf") if offering is None else offering.sort_price, instance_type.name)

    return tuple(sorted(types, key=key))

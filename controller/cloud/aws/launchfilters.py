"""Which of the claim's instance types a launch may use (spec aws/launch §3, §4, aws/instances §9).

Called by `launcher`. Pure: types in, fewer types (with fewer offerings) out; a filter that would leave
nothing where the spec says so passes everything on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from controller.cloud.aws.capacity import AMD_GPU, GAUDI, NEURON, NVIDIA_GPU
from controller.scheduling import (
    CapacityType,
    InstanceType,
    Offering,
    Requirements,
    Resources,
)
from framework.api import labels
from framework.api.ec2nodeclass import ReservationType

__all__ = ["MAX_TYPES", "LaunchTypes", "choose_capacity_type", "filter_types", "too_few_values", "truncate"]

MAX_TYPES: Final = 60
"""Instance types in one CreateFleet request."""
_EXOTIC: Final = (NVIDIA_GPU, AMD_GPU, NEURON, GAUDI)

LaunchTypes = tuple[InstanceType, ...]


def filter_types(
    types: Sequence[InstanceType], requirements: Requirements, requests: Resources
) -> LaunchTypes:
    """Return the types that a launch for these requirements and requests may use.

    Kept types keep only offerings that are available and allowed. Empty when nothing can be had.
    """
    kept = _compatible(types, requirements, requests)
    if _allows(requirements, CapacityType.RESERVED):
        kept = _fullest_reservations(_single_block(_reservation_kind(kept)))
    if not requirements.min_values:
        kept = _cheaper_spot(_plain(kept), requirements)
    return kept


def _allows(requirements: Requirements, capacity_type: CapacityType) -> bool:
    wanted = requirements.get(labels.CAPACITY_TYPE)
    return wanted is None or wanted.has(capacity_type.value)


def _with(instance_type: InstanceType, offerings: Sequence[Offering]) -> InstanceType:
    return attrs.evolve(instance_type, offerings=tuple(offerings))


def _may(offer: Offering, requirements: Requirements) -> bool:
    """Tell whether the requirements allow an offering, label by label: this runs for every offering."""
    for key, value in (
        (labels.CAPACITY_TYPE, offer.capacity_type.value),
        (labels.ZONE, offer.zone),
        (labels.ZONE_ID, offer.zone_id),
        (labels.CAPACITY_RESERVATION_ID, offer.reservation_id),
        (labels.CAPACITY_RESERVATION_TYPE, offer.reservation_type),
    ):
        wanted = requirements.get(key)
        if wanted is None or (key == labels.ZONE_ID and value is None):
            continue
        if not (wanted.is_negative if value is None else wanted.has(value)):
            return False
    return True


def _fits(requests: Resources, instance_type: InstanceType) -> bool:
    allocatable = instance_type.allocatable
    return all(amount <= allocatable.get(name, 0) for name, amount in requests.items() if amount)


def _compatible(
    types: Sequence[InstanceType], requirements: Requirements, requests: Resources
) -> LaunchTypes:
    """Filter 1: labels, resources, and at least one offering."""
    kept = []
    for instance_type in types:
        if not requirements.intersects(instance_type.requirements) or not _fits(requests, instance_type):
            continue
        offerings = [
            offer for offer in instance_type.offerings if offer.available and _may(offer, requirements)
        ]
        if offerings:
            kept.append(_with(instance_type, offerings))
    return tuple(kept)


def _reserved(instance_type: InstanceType) -> list[Offering]:
    return [item for item in instance_type.offerings if item.capacity_type is CapacityType.RESERVED]


def _reservation_kind(types: LaunchTypes) -> LaunchTypes:
    """Filter 2: of default reservations and capacity blocks only the kind with the cheapest offering."""
    order = (ReservationType.DEFAULT.value, ReservationType.CAPACITY_BLOCK.value)
    offers = [offer for item in types for offer in _reserved(item)]
    if not offers:
        return types
    best = min(offers, key=lambda offer: (offer.sort_price, order.index(offer.reservation_type or order[0])))
    kind = best.reservation_type
    kept = [
        _with(item, [offer for offer in _reserved(item) if offer.reservation_type == kind]) for item in types
    ]
    return tuple(item for item in kept if item.offerings)


def _single_block(types: LaunchTypes) -> LaunchTypes:
    """Filter 3: EC2 takes one capacity block per request."""
    blocks = [
        (offer.sort_price, item.name, offer.zone, offer.reservation_id or "", item, offer)
        for item in types
        for offer in _reserved(item)
        if offer.reservation_type == ReservationType.CAPACITY_BLOCK
    ]
    if not blocks:
        return types
    *_, item, offer = min(blocks, key=lambda block: block[:4])
    return (_with(item, [offer]),)


def _fullest_reservations(types: LaunchTypes) -> LaunchTypes:
    """Filter 4: per type and zone the reservation with most capacity left."""
    if not any(_reserved(item) for item in types):
        return types
    kept = []
    for item in types:
        best: dict[str, Offering] = {}
        for offer in sorted(
            _reserved(item), key=lambda offer: (-offer.reservation_capacity, offer.reservation_id or "")
        ):
            best.setdefault(offer.zone, offer)
        if best:
            kept.append(_with(item, tuple(best.values())))
    return tuple(kept)


def _is_exotic(instance_type: InstanceType) -> bool:
    size = instance_type.name.partition(".")[2]
    return "metal" in size or any(instance_type.capacity.get(name) for name in _EXOTIC)


def _plain(types: LaunchTypes) -> LaunchTypes:
    """Filter 5: neither bare metal nor accelerators, unless there is nothing else."""
    plain = tuple(item for item in types if not _is_exotic(item))
    return plain or types


def _cheaper_spot(types: LaunchTypes, requirements: Requirements) -> LaunchTypes:
    """Filter 6: no spot offering dearer than the cheapest on-demand one, where both are allowed."""
    if not (_allows(requirements, CapacityType.SPOT) and _allows(requirements, CapacityType.ON_DEMAND)):
        return types
    on_demand = [
        offer.sort_price
        for item in types
        for offer in item.offerings
        if offer.capacity_type is CapacityType.ON_DEMAND
    ]
    spot = [
        offer.sort_price
        for item in types
        for offer in item.offerings
        if offer.capacity_type is CapacityType.SPOT
    ]
    if not on_demand or not spot:
        return types
    ceiling = min(on_demand)
    kept = [
        _with(
            item,
            [
                offer
                for offer in item.offerings
                if offer.capacity_type is not CapacityType.SPOT or offer.sort_price <= ceiling
            ],
        )
        for item in types
    ]
    return tuple(item for item in kept if item.offerings)


def truncate(types: LaunchTypes) -> LaunchTypes:
    """Return the 60 cheapest by their cheapest offering, cheapest first, then by name."""
    ordered = sorted(types, key=lambda item: (min(offer.sort_price for offer in item.offerings), item.name))
    return tuple(ordered[:MAX_TYPES])


def too_few_values(types: LaunchTypes, requirements: Requirements) -> str | None:
    """Return which minValues these types cannot keep, or None."""
    for key, least in requirements.min_values.items():
        found = {
            value for item in types if key in item.requirements for value in item.requirements[key].values
        }
        count = sum(1 for value in found if requirements[key].has(value))
        if count < least:
            return (
                f"{key} has {count} values among the {len(types)} cheapest types, minValues asks for {least}"
            )
    return None


def choose_capacity_type(types: LaunchTypes) -> CapacityType:
    """Return the capacity type that is launched: reserved before spot before on-demand."""
    offered = {offer.capacity_type for item in types for offer in item.offerings}
    for kind in (CapacityType.RESERVED, CapacityType.SPOT):
        if kind in offered:
            return kind
    return CapacityType.ON_DEMAND

"""Capacity reservations: which one a launch uses.

The actions that create and describe them are in `capacity.py`; here is only the rule (aws/launch §7.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.aws.ec2.records import CapacityReservation
from sandbox.aws.errors import AwsError
from sandbox.aws.world import World

if TYPE_CHECKING:
    from sandbox.aws.ec2.launching import Launch

__all__ = ["choose"]


def choose(world: World, wanted: Launch) -> CapacityReservation | None:
    """Return the reservation a launch runs in, None for ordinary capacity.

    A targeted one must be active, match type and zone and have room; preference `open` (EC2's default) takes
    any open one that fits; `none` and spot take none. Raises AwsError as EC2 does.
    """
    specification = wanted.data.get("CapacityReservationSpecification") or {}
    target = (specification.get("CapacityReservationTarget") or {}).get("CapacityReservationId")
    if target:
        return _targeted(world, wanted, target)
    if wanted.capacity_type == "spot" or specification.get("CapacityReservationPreference") == "none":
        return None
    fitting = sorted(
        (r for r in world.capacity_reservations.values() if r.match_criteria == "open" and _fits(r, wanted)),
        key=lambda r: r.id,
    )
    if fitting:
        return fitting[0]
    if specification.get("CapacityReservationPreference") == "capacity-reservations-only":
        raise AwsError(
            "ReservationCapacityExceeded",
            f"No open capacity reservation has room for {wanted.instance_type} in {wanted.zone}.",
        )
    return None


def _fits(reservation: CapacityReservation, wanted: Launch) -> bool:
    return (
        reservation.region == wanted.region
        and reservation.state == "active"
        and reservation.instance_type == wanted.instance_type
        and reservation.zone == wanted.zone
        and reservation.available > 0
    )


def _targeted(world: World, wanted: Launch, target: str) -> CapacityReservation:
    reservation = world.capacity_reservations.get(target)
    if reservation is None or reservation.region != wanted.region:
        raise AwsError(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{target}' does not exist."
        )
    if reservation.state != "active":
        raise AwsError(
            "InvalidCapacityReservationState", f"The capacity reservation '{target}' is {reservation.state}."
        )
    if (reservation.instance_type, reservation.zone) != (wanted.instance_type, wanted.zone):
        raise AwsError(
            "InvalidParameterValue",
            f"The capacity reservation '{target}' is for {reservation.instance_type} in {reservation.zone}, "
            f"not {wanted.instance_type} in {wanted.zone}.",
        )
    if not reservation.available:
        raise AwsError(
            "ReservationCapacityExceeded", f"The capacity reservation '{target}' has no capacity left."
        )
    return reservation

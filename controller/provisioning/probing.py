"""How many claims may be sent for capacity that was sold out a moment ago (spec aws/instances §6).

Called by the provisioner between plan and launch. A claim whose every offering is on probation takes one
of the tries that are left; one that finds none is not created, and its pods are planned again in the
next round. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from controller.scheduling import InstanceType, Offering, PlannedClaim

__all__ = ["Admission", "admit"]

_Pool = tuple[str, str, str]


@attrs.frozen(kw_only=True)
class Admission:
    """The claims of a plan, by whether they are created now."""

    now: tuple[PlannedClaim, ...]
    later: tuple[PlannedClaim, ...] = ()


def admit(claims: Sequence[PlannedClaim], types: Mapping[str, tuple[InstanceType, ...]]) -> Admission:
    """Return which claims may be created now, in the order of the plan; `types` are those by pool name."""
    left = _left(types)
    if not left:
        return Admission(now=tuple(claims))
    by_name = {pool: {each.name: each for each in own} for pool, own in types.items()}
    now: list[PlannedClaim] = []
    later: list[PlannedClaim] = []
    for claim in claims:
        (now if _take(claim, by_name.get(claim.pool, {}), left) else later).append(claim)
    return Admission(now=tuple(now), later=tuple(later))


def _left(types: Mapping[str, tuple[InstanceType, ...]]) -> dict[_Pool, int]:
    """Return the tries of every offering on probation."""
    return {
        (each.name, offer.zone, offer.capacity_type.value): offer.launches_left
        for own in types.values()
        for each in own
        for offer in each.offerings
        if offer.available and offer.launches_left is not None
    }


def _take(claim: PlannedClaim, types: Mapping[str, InstanceType], left: dict[_Pool, int]) -> bool:
    """Take a try for the claim where it needs one; tell whether it may be created."""
    tries = []
    for name, offer in _offers(claim, types):
        if offer.launches_left is None:
            return True
        tries.append((name, offer.zone, offer.capacity_type.value))
    free = next((each for each in tries if left[each] > 0), None)
    if free is not None:
        left[free] -= 1
    return free is not None or not tries


def _offers(claim: PlannedClaim, types: Mapping[str, InstanceType]) -> Iterator[tuple[str, Offering]]:
    for name in claim.instance_types:
        found = types.get(name)
        for offer in found.offerings if found is not None else ():
            if offer.available and offer.allowed_by(claim.requirements):
                yield name, offer

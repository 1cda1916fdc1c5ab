"""Claims for capacity that was sold out a moment ago go out a few at a time."""

from __future__ import annotations

import attrs

from controller.provisioning.probing import admit
from controller.scheduling import (
    CapacityType,
    InstanceType,
    Offering,
    PlannedClaim,
    Requirement,
    Requirements,
)
from framework.api import Operator, labels


def a_type(name: str, *, left: dict[str, int | None]) -> InstanceType:
    """Return a type on offer on demand in the given zones, with the tries left in each."""
    offerings = [
        Offering(zone=zone, capacity_type=CapacityType.ON_DEMAND, price=1.0, launches_left=tries)
        for zone, tries in left.items()
    ]
    return InstanceType(name=name, requirements=Requirements.of(), offerings=tuple(offerings), capacity={})


def a_claim(number: int, *types: str, zones: tuple[str, ...] = ("a", "b")) -> PlannedClaim:
    return PlannedClaim(
        pool="web",
        requirements=Requirements.of(Requirement.new(labels.ZONE, Operator.IN, zones)),
        instance_types=types,
        requests={},
        pods=(f"pod-{number}",),
        pod_keys=(),
        labels={},
        annotations={},
        taints=(),
        startup_taints=(),
        price=1.0,
    )


def test_without_probation_every_claim_goes_out() -> None:
    claims = [a_claim(number, "m") for number in range(5)]

    found = admit(claims, {"web": (a_type("m", left={"a": None}),)})

    assert (found.now, found.later) == (tuple(claims), ())


def test_as_many_go_out_as_tries_are_left_in_the_order_of_the_plan() -> None:
    claims = [a_claim(number, "m") for number in range(5)]

    found = admit(claims, {"web": (a_type("m", left={"a": 1, "b": 2}),)})

    assert (found.now, found.later) == (tuple(claims[:3]), tuple(claims[3:]))


def test_a_claim_that_has_other_capacity_takes_no_try() -> None:
    types = (a_type("m", left={"a": 1}), a_type("c", left={"a": None}))
    flexible, bound = a_claim(1, "m", "c"), [a_claim(number, "m") for number in (2, 3)]

    found = admit([flexible, *bound], {"web": types})

    assert (found.now, found.later) == ((flexible, bound[0]), (bound[1],))


def test_pools_share_the_tries_of_an_offering() -> None:
    types = (a_type("m", left={"a": 1}),)
    mine, other = a_claim(1, "m"), attrs.evolve(a_claim(2, "m"), pool="batch")

    found = admit([mine, other], {"web": types, "batch": types})

    assert (found.now, found.later) == ((mine,), (other,))


def test_only_offerings_that_the_claim_may_use_count() -> None:
    types = (a_type("m", left={"a": 1, "b": None}),)
    claims = [a_claim(number, "m", zones=("a",)) for number in range(2)]

    found = admit(claims, {"web": types})

    assert (found.now, found.later) == ((claims[0],), (claims[1],))

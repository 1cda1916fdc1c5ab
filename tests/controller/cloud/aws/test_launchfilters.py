from __future__ import annotations

from typing import Any

import attrs

from controller.cloud.aws.launchfilters import (
    MAX_TYPES,
    choose_capacity_type,
    filter_types,
    too_few_values,
    truncate,
)
from controller.scheduling import CapacityType, InstanceType, Offering, Requirement, Requirements
from framework.api import labels

ANY = Requirements.of()


def wanting(**values: list[str]) -> Requirements:
    keys = {"capacity": labels.CAPACITY_TYPE, "zone": labels.ZONE, "type": labels.INSTANCE_TYPE}
    return Requirements.of(*(Requirement.new(keys[key], "In", found) for key, found in values.items()))


def an_offering(
    capacity_type: str = "on-demand", price: float = 1.0, zone: str = "z-a", **more: Any
) -> Offering:
    return Offering(zone=zone, capacity_type=CapacityType(capacity_type), price=price, **more)


def a_type(name: str, *offerings: Offering, **capacity: int) -> InstanceType:
    return InstanceType(
        name=name,
        requirements=Requirements.from_labels({labels.INSTANCE_TYPE: name}),
        offerings=offerings or (an_offering(),),
        capacity={"cpu": 2000, "pods": 29, **capacity},
    )


def names(types: tuple[InstanceType, ...]) -> list[str]:
    return [item.name for item in types]


def offers(types: tuple[InstanceType, ...]) -> dict[str, list[tuple[str, float | None]]]:
    return {item.name: [(o.capacity_type.value, o.price) for o in item.offerings] for item in types}


def test_only_types_that_fit_and_are_on_offer_are_kept() -> None:
    types = (
        a_type("good.large"),
        a_type("sold.out", an_offering(available=False)),
        a_type("too.small", cpu=500),
        a_type("other.zone", an_offering(zone="z-b")),
    )

    kept = filter_types(types, wanting(zone=["z-a"]), {"cpu": 1000})

    assert names(kept) == ["good.large"]


def test_bare_metal_and_accelerators_are_left_out_unless_alone() -> None:
    plain, metal = a_type("m5.large"), a_type("m5.metal")
    gpu = attrs.evolve(a_type("g5.xlarge"), capacity={"cpu": 2000, "nvidia.com/gpu": 1})

    assert names(filter_types((plain, metal, gpu), ANY, {})) == ["m5.large"]
    assert names(filter_types((metal, gpu), ANY, {})) == ["m5.metal", "g5.xlarge"]


def test_min_values_keep_every_type() -> None:
    flexible = Requirements.of(Requirement.new(labels.INSTANCE_TYPE, "Exists", (), 2))

    kept = filter_types((a_type("m5.large"), a_type("m5.metal")), flexible, {})

    assert names(kept) == ["m5.large", "m5.metal"]


def test_spot_dearer_than_the_cheapest_on_demand_is_dropped() -> None:
    types = (
        a_type("cheap.large", an_offering(price=1.0), an_offering("spot", 0.5)),
        a_type("dear.large", an_offering(price=9.0), an_offering("spot", 2.0)),
        a_type("spot.only", an_offering("spot", 3.0)),
    )

    kept = filter_types(types, wanting(capacity=["spot", "on-demand"]), {})

    assert offers(kept) == {
        "cheap.large": [("on-demand", 1.0), ("spot", 0.5)],
        "dear.large": [("on-demand", 9.0)],
    }


def test_when_every_spot_offering_is_dear_on_demand_is_launched() -> None:
    types = (a_type("m5.large", an_offering(price=0.03), an_offering("spot", 0.04)),)

    kept = filter_types(types, wanting(capacity=["spot", "on-demand"]), {})

    assert choose_capacity_type(kept) is CapacityType.ON_DEMAND


def test_dear_spot_stays_when_only_spot_is_allowed() -> None:
    types = (a_type("m5.large", an_offering(price=1.0), an_offering("spot", 5.0)),)

    kept = filter_types(types, wanting(capacity=["spot"]), {})

    assert offers(kept) == {"m5.large": [("spot", 5.0)]}


def reserved(identifier: str, price: float, left: int, kind: str = "default", zone: str = "z-a") -> Offering:
    return an_offering(
        "reserved",
        price,
        zone,
        reservation_id=identifier,
        reservation_type=kind,
        reservation_capacity=left,
    )


def test_reserved_capacity_comes_first_and_the_fullest_reservation_wins() -> None:
    types = (
        a_type("m5.large", an_offering(), reserved("cr-1", 1e-8, 1), reserved("cr-2", 1e-8, 5)),
        a_type("c5.large", an_offering(price=0.1)),
    )

    kept = filter_types(types, ANY, {})

    assert names(kept) == ["m5.large"]
    assert [o.reservation_id for o in kept[0].offerings] == ["cr-2"]
    assert choose_capacity_type(kept) is CapacityType.RESERVED


def test_one_capacity_block_is_asked_for_at_a_time() -> None:
    types = (
        a_type("p5.48xlarge", reserved("cr-1", 2e-8, 1, "capacity-block")),
        a_type("p4d.24xlarge", reserved("cr-2", 1e-8, 1, "capacity-block")),
    )

    kept = filter_types(types, ANY, {})

    assert [(item.name, len(item.offerings)) for item in kept] == [("p4d.24xlarge", 1)]


def test_default_reservations_win_over_blocks_of_the_same_price() -> None:
    types = (
        a_type("a.large", reserved("cr-1", 1e-8, 1, "capacity-block")),
        a_type("b.large", reserved("cr-2", 1e-8, 1)),
    )

    assert names(filter_types(types, ANY, {})) == ["b.large"]


def test_without_reserved_offerings_all_types_pass() -> None:
    assert names(filter_types((a_type("m5.large"),), wanting(capacity=["reserved", "on-demand"]), {})) == [
        "m5.large"
    ]


def test_the_sixty_cheapest_are_sent() -> None:
    types = tuple(a_type(f"t{i:03}.large", an_offering(price=200.0 - i)) for i in range(100))

    kept = truncate(types)

    assert len(kept) == MAX_TYPES
    assert (kept[0].name, kept[-1].name) == ("t099.large", "t040.large")


def test_min_values_that_cannot_be_kept_are_named() -> None:
    flexible = Requirements.of(Requirement.new(labels.INSTANCE_TYPE, "Exists", (), 3))

    problem = too_few_values((a_type("m5.large"), a_type("c5.large")), flexible)

    assert problem is not None
    assert "2 values" in problem
    assert "minValues asks for 3" in problem
    assert too_few_values(tuple(a_type(f"t{i}.large") for i in range(3)), flexible) is None

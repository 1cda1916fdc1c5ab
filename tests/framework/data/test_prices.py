"""Prices shipped with the package."""

from __future__ import annotations

import pytest

from framework import data
from framework.data.generate_prices import complete, median_ratio, table


@pytest.mark.parametrize(
    ("instance_type", "usd_per_hour"), [("t3.medium", 0.0472), ("m7g.large", 0.0944), ("m5.large", 0.111)]
)
def test_a_region_has_its_own_prices(instance_type: str, usd_per_hour: float) -> None:
    assert data.on_demand_prices("eu-west-2")[instance_type] == usd_per_hour


def test_every_on_demand_price_has_a_positive_spot_price() -> None:
    on_demand, spot = data.on_demand_prices("eu-west-2"), data.spot_prices("eu-west-2")

    assert spot.keys() == on_demand.keys()
    assert min(spot.values()) > 0


def test_an_unknown_region_has_the_prices_of_us_east_1_all_estimated() -> None:
    assert data.on_demand_prices("xx-nowhere-1") == data.on_demand_prices("us-east-1")
    assert data.estimated("xx-nowhere-1") == frozenset(data.on_demand_prices("us-east-1"))


def test_own_prices_are_not_estimates() -> None:
    assert "m5.large" not in data.estimated("eu-west-2")
    assert data.estimated("us-east-1") == frozenset()


def test_a_missing_price_is_the_reference_times_the_median_ratio() -> None:
    own, old = {"a": 1.2, "b": 2.4}, {"a": 1.0, "b": 2.0}

    assert complete(own, {"a": 1.0, "c": 10.0, "d": 5.0}, old, frozenset({"a", "c"})) == {"c": 12.0}


def test_the_ratio_of_nothing_in_common_is_one() -> None:
    assert median_ratio({"a": 2.0}, {"b": 1.0}) == 1.0


def test_the_document_has_arrays_parallel_to_the_types_and_no_local_zones() -> None:
    old = {
        "onDemand": {"us-east-1": {"m5.large": 0.1}, "us-east-1-bos-1": {"m5.large": 0.2}},
        "spot": {"us-east-1": {"m5.large": 0.05}},
    }

    assert table(old, {"m5.large": 0.1, "m9.large": 0.2}) == {
        "dated": {"onDemand": "2025-05", "us-east-1": "2026-07", "spot": "2025-05"},
        "types": ["m5.large", "m9.large"],
        "regions": {
            "us-east-1": {"onDemand": [0.1, 0.2], "spot": [0.05, 0.1], "estimated": []},
        },
    }

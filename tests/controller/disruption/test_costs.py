"""Golden tables of spec core/disruption §21.3 and §21.4."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controller.disruption.costs import disruption_cost, eviction_cost, node_price, reschedule_cost
from framework.api import labels
from tests.controller.disruption.builders import MEDIUM, a_pod


@pytest.mark.parametrize(
    ("priority", "deletion_cost", "cost"),
    [
        (None, None, 1.0),
        (2_000_000_000, None, 10.0),
        (1_000_000, None, 1.0298),
        (-1_000_000_000, None, -10.0),
        (None, "2147483647", 10.0),
        (None, "-2147483647", -10.0),
        (None, "134217728", 2.0),
        (None, "much", 1.0),
    ],
)
def test_eviction_costs_follow_priority_and_deletion_cost(
    priority: int | None, deletion_cost: str | None, cost: float
) -> None:
    annotations = {} if deletion_cost is None else {labels.POD_DELETION_COST: deletion_cost}

    assert eviction_cost(a_pod(priority=priority, annotations=annotations)) == pytest.approx(cost, abs=1e-4)


@pytest.mark.parametrize(
    ("expire_after", "age", "cost"),
    [(720, 360, 3.5), (None, 360, 7.0), (720, 800, 0.0), (0, 1, 0.0)],
)
def test_the_cost_of_a_node_shrinks_with_the_life_it_has_left(
    expire_after: int | None, age: int, cost: float
) -> None:
    pods = [a_pod(f"p{i}") for i in range(4)] + [a_pod(f"d{i}", owner="DaemonSet") for i in range(3)]
    span = None if expire_after is None else timedelta(hours=expire_after)

    assert disruption_cost(pods, span, timedelta(hours=age)) == pytest.approx(cost)


def test_the_reschedule_cost_never_gains_from_pods_that_are_glad_to_go() -> None:
    glad = a_pod(priority=-1_000_000_000)

    assert reschedule_cost([a_pod(), glad]) == 2.0


@pytest.mark.parametrize(
    ("capacity_type", "zone", "price"),
    [("spot", "z-b", 0.08), ("on-demand", "z-b", 0.2), ("on-demand", "elsewhere", None)],
)
def test_a_node_costs_what_its_own_offering_costs(capacity_type: str, zone: str, price: float | None) -> None:
    own = {labels.CAPACITY_TYPE: capacity_type, labels.ZONE: zone}

    assert node_price(MEDIUM, own) == price

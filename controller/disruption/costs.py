"""What disrupting a node costs its workloads, and the node in money (spec core/disruption §5, §10.3).

Called by the survey and by consolidation. Pure arithmetic over pods, claims and instance types;
knows nothing of budgets or simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from controller.scheduling import InstanceType, Offering, Pod
from framework.api import labels

__all__ = ["disruption_cost", "eviction_cost", "lifetime_remaining", "node_price", "reschedule_cost"]

_DELETION_COST_SCALE: Final = 2**27
_PRIORITY_SCALE: Final = 2**25
_COST_BOUND: Final = 10.0


def eviction_cost(pod: Pod) -> float:
    """Return the cost of evicting the pod, within [-10, 10]; 1 for an ordinary pod.

    A deletion cost that is no integer counts as absent.
    """
    cost = 1.0
    try:
        cost += int(pod.annotations.get(labels.POD_DELETION_COST, "0")) / _DELETION_COST_SCALE
    except ValueError:
        cost += 0.0
    cost += (pod.priority or 0) / _PRIORITY_SCALE
    return min(max(cost, -_COST_BOUND), _COST_BOUND)


def lifetime_remaining(expire_after: timedelta | None, age: timedelta) -> float:
    """Return the share of the node's life that is left, within [0, 1]; 1 when it never expires."""
    if expire_after is None:
        return 1.0
    if expire_after <= timedelta(0):
        return 0.0
    return min(max((expire_after - age) / expire_after, 0.0), 1.0)


def disruption_cost(pods: Iterable[Pod], expire_after: timedelta | None, age: timedelta) -> float:
    """Return the eviction costs of all pods on the node, DaemonSets too, weighted by the life it has left."""
    return sum(eviction_cost(pod) for pod in pods) * lifetime_remaining(expire_after, age)


def reschedule_cost(pods: Iterable[Pod]) -> float:
    """Return 1 for the node plus the non-negative eviction costs of the given pods (§17)."""
    return 1.0 + sum(max(0.0, eviction_cost(pod)) for pod in pods)


def node_price(instance_type: InstanceType, node_labels: Mapping[str, str]) -> float | None:
    """Return USD per hour of the cheapest offering that the node's labels fit, sold out ones included.

    None when the type has no such offering or its price is not known.
    """
    prices = [
        offering.price
        for offering in instance_type.offerings
        if offering.price is not None and _is_of(offering, node_labels)
    ]
    return min(prices) if prices else None


def _is_of(offering: Offering, node_labels: Mapping[str, str]) -> bool:
    wanted = (
        (labels.ZONE, offering.zone),
        (labels.CAPACITY_TYPE, str(offering.capacity_type)),
        (labels.CAPACITY_RESERVATION_ID, offering.reservation_id),
    )
    return all(node_labels.get(key) in (None, value) for key, value in wanted)

"""A forecast for people and for programs.

Called by `charpente simulate`. Renders what `forecast` found; decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs

from controller.scheduling import PlannedClaim
from controller.whatif.forecast import HOURS_PER_MONTH, Fleet, Forecast
from framework.api import labels

__all__ = ["as_json", "as_text"]


@attrs.frozen(kw_only=True)
class _New:
    """How a planned claim reads: the cheapest that it may become."""

    instance_type: str
    zone: str
    capacity_type: str
    pool: str
    price: float

    @classmethod
    def of(cls, found: Forecast, planned: PlannedClaim) -> _New:
        first = planned.instance_types[0]
        known = found.after.world.types_by_name.get(planned.pool, {}).get(first)
        offering = known.cheapest(planned.requirements) if known is not None else None
        return cls(
            instance_type=first,
            zone=offering.zone if offering is not None else "any zone",
            capacity_type=str(offering.capacity_type) if offering is not None else "",
            pool=planned.pool,
            price=planned.price,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "nodePool": self.pool,
            "instanceType": self.instance_type,
            "zone": self.zone,
            "capacityType": self.capacity_type,
            "usdPerHour": self.price,
        }


def as_text(found: Forecast) -> str:
    """Return the forecast as a diff with its price, what stands against it and what would follow."""
    return "\n".join([*_diff(found), *_unplaced(found), *_risks(found), *_then(found), *_bill(found)])


def _diff(found: Forecast) -> Iterator[str]:
    new = Counter(_New.of(found, planned) for planned in found.plan.claims)
    for each, count in sorted(new.items(), key=lambda item: attrs.astuple(item[0])):
        yield (
            f"+ {count} {each.instance_type} {each.zone} {each.capacity_type} "
            f"${each.price * count:.4f}/h (NodePool {each.pool})"
        )
    for node in found.gone:
        price = found.before.price(node)
        words = [node.labels.get(key) for key in (labels.INSTANCE_TYPE, labels.ZONE, labels.CAPACITY_TYPE)]
        cost = f"${price:.4f}/h" if price is not None else "price unknown"
        yield f"- {node.name} {' '.join(word for word in words if word)} {cost} (NodePool {node.pool})"
    if found.plan.placements:
        yield f"~ {_count(len(found.plan.placements), 'pod')} on nodes that exist"
    if found.moved:
        yield f"~ {_count(found.moved, 'running pod')} to move"


def _unplaced(found: Forecast) -> Iterator[str]:
    if found.plan.unplaced:
        yield f"! {_count(len(found.plan.unplaced), 'pod')} without a place"
    for each in found.plan.unplaced:
        yield f"  Pod {each.pod_key}"
        yield from (f"  {line}" for line in each.reason.lines(1))


def _risks(found: Forecast) -> Iterator[str]:
    if found.risks:
        yield "Against removing these nodes:"
    for reason in found.risks:
        yield from reason.lines(1)


def _then(found: Forecast) -> Iterator[str]:
    if found.then.commands:
        yield "Then disruption would:"
    for command in found.then.commands:
        yield f"  {command.text()}"


def _bill(found: Forecast) -> Iterator[str]:
    was, now = found.before.fleet, found.fleet
    hourly = f"${was.usd_per_hour:.4f} -> ${now.usd_per_hour:.4f} an hour"
    monthly = [each.usd_per_hour * HOURS_PER_MONTH for each in (was, now)]
    yield (
        f"{was.nodes} -> {_count(now.nodes, 'node')}, {hourly}, "
        f"${monthly[0]:.2f} -> ${monthly[1]:.2f} a month ({monthly[1] - monthly[0]:+.2f})"
    )
    if now.unpriced:
        yield f"not counted: {_count(now.unpriced, 'node')} whose price is not known"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def as_json(found: Forecast) -> dict[str, Any]:
    """Return the forecast as plain values."""
    return {
        "create": [
            _New.of(found, planned).to_json()
            | {"instanceTypes": list(planned.instance_types), "pods": list(planned.pod_keys)}
            for planned in found.plan.claims
        ],
        "remove": [
            {"node": node.name, "nodePool": node.pool, "usdPerHour": found.before.price(node)}
            for node in found.gone
        ],
        "existing": [{"pod": each.pod_key, "node": each.node} for each in found.plan.placements],
        "moved": found.moved,
        "unplaced": [{"pod": each.pod_key, "reason": each.reason.to_json()} for each in found.plan.unplaced],
        "risks": [reason.to_json() for reason in found.risks],
        "then": [command.to_json() for command in found.then.commands],
        "before": _fleet(found.before.fleet),
        "after": _fleet(found.fleet),
    }


def _fleet(fleet: Fleet) -> dict[str, Any]:
    return {
        "nodes": fleet.nodes,
        "usdPerHour": round(fleet.usd_per_hour, 6),
        "usdPerMonth": round(fleet.usd_per_hour * HOURS_PER_MONTH, 2),
        "unpricedNodes": fleet.unpriced,
    }

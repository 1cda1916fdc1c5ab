"""What NodeOverlays make of instance types (spec core/scheduling §15).

Used by the engine and by the provider's launch path, which must rank by the same prices. Overlays
are tried by weight descending, then name descending; the first price wins for an offering, and for
capacity the heaviest wins per resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

import attrs

from controller.scheduling.instancetypes import InstanceType, Offering
from controller.scheduling.requirements import Requirement, Requirements
from framework.api import labels
from framework.api.conditions import VALIDATION_SUCCEEDED
from framework.api.nodeoverlay import NodeOverlay
from framework.api.nodepool import NodePool
from framework.api.quantity import parse_resources
from framework.api.requirement_spec import Operator

__all__ = ["adjusted_price", "overlaid_types"]


def adjusted_price(price: float, change: str) -> float:
    """Return the price in USD per hour after `0.3`, `+0.5`, `-2` or `-15%`; never below 0."""
    if not change.startswith(("+", "-")):
        return float(Decimal(change))
    exact = Decimal(str(price))
    if change.endswith("%"):
        return float(max(Decimal(0), exact * (1 + Decimal(change[:-1]) / 100)))
    return float(max(Decimal(0), exact + Decimal(change)))


def overlaid_types(
    pool: NodePool, types: Sequence[InstanceType], overlays: Iterable[NodeOverlay]
) -> tuple[InstanceType, ...]:
    """Return the pool's types with every accepted overlay applied."""
    accepted = [overlay for overlay in overlays if _is_accepted(overlay)]
    if not accepted:
        return tuple(types)
    ordered = sorted(accepted, key=lambda o: o.name, reverse=True)
    ordered.sort(key=lambda o: -(o.spec.weight or 0))
    own = Requirements.from_labels({**pool.spec.template.metadata.labels, labels.NODEPOOL: pool.name})
    return tuple(_overlaid(t, own, ordered) for t in types)


def _is_accepted(overlay: NodeOverlay) -> bool:
    verdict = next((c for c in overlay.status.conditions if c.type == VALIDATION_SUCCEEDED), None)
    return verdict is None or verdict.status == "True"


def _overlaid(
    instance_type: InstanceType, pool: Requirements, overlays: Sequence[NodeOverlay]
) -> InstanceType:
    offerings = list(instance_type.offerings)
    priced: set[int] = set()
    capacity: dict[str, int] = {}
    described = pool.union(instance_type.requirements)
    for overlay in overlays:
        wanted = Requirements.from_specs(overlay.spec.requirements)
        if not described.compatible(wanted):
            continue
        matched = [i for i, o in enumerate(offerings) if _offers(described, o, wanted)]
        change = overlay.spec.price or overlay.spec.price_adjustment
        for place in matched if change is not None else ():
            offering = offerings[place]
            if place not in priced and offering.price is not None and change is not None:
                price = adjusted_price(offering.price, change)
                offerings[place] = attrs.evolve(offering, price=price, overlaid=True)
                priced.add(place)
        if matched:
            for name, amount in parse_resources(overlay.spec.capacity).items():
                capacity.setdefault(name, amount)
    if not priced and not capacity:
        return instance_type
    return attrs.evolve(
        instance_type,
        offerings=tuple(offerings),
        capacity={**instance_type.capacity, **capacity},
        overlaid=bool(capacity) or instance_type.overlaid,
    )


def _offers(described: Requirements, offering: Offering, wanted: Requirements) -> bool:
    """Tell whether a node from this offering satisfies the overlay, nothing undefined allowed."""
    placed = [
        Requirement.new(key, Operator.IN, requirement.values)
        for key, requirement in offering.requirements.items()
        if requirement.values
    ]
    node = Requirements({**described, **{requirement.key: requirement for requirement in placed}})
    return node.compatible(wanted)

"""What the running instances of a region cost by the hour, by the sandbox's prices."""

from __future__ import annotations

from typing import Any

import attrs
from moto.ec2 import ec2_backends

from sandbox.aws.ec2.instance_answers import record_of
from sandbox.aws.ec2.launching import all_instances
from sandbox.aws.market import price
from sandbox.aws.world import ACCOUNT, World

__all__ = ["Costs", "costs"]


@attrs.frozen(kw_only=True)
class Costs:
    """Hourly cost of the instances that are pending or running."""

    usd_per_hour: float
    instances: int
    by_type: dict[str, float]
    """"<instance type> <capacity type>" → USD per hour of all of them."""
    unpriced: tuple[str, ...]
    """Types that run without a known price; they count as 0."""


def costs(world: World, region: str) -> Costs:
    """Return the cost of a region."""
    backend: Any = ec2_backends[ACCOUNT][region]
    by_type: dict[str, float] = {}
    unpriced = set()
    live = [i for i in all_instances(backend) if i.state in ("pending", "running")]
    for instance in live:
        kind = record_of(world, instance).capacity_type
        hourly = price(region, instance.instance_type, instance.availability_zone, kind)
        if hourly is None:
            unpriced.add(instance.instance_type)
        key = f"{instance.instance_type} {kind}"
        by_type[key] = round(by_type.get(key, 0.0) + (hourly or 0.0), 6)
    return Costs(
        usd_per_hour=round(sum(by_type.values()), 6),
        instances=len(live),
        by_type=dict(sorted(by_type.items())),
        unpriced=tuple(sorted(unpriced)),
    )

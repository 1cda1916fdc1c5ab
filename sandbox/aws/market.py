"""Prices and offerings of a region: what EC2 sells where, for how much.

Offerings come with moto, prices with `framework.data`. Spot prices vary a little by zone, deterministically,
so that a choice between zones is a real choice. Nothing here changes while the sandbox runs.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES

from framework.data import on_demand_prices, spot_prices

__all__ = [
    "is_offered",
    "offered_types",
    "offered_zones",
    "on_demand_price",
    "price",
    "spot_price",
    "supported_architectures",
]

ZONE_SPREAD = 0.10
"""Spot prices of a type differ between zones by at most this share."""


@cache
def _offerings(region: str) -> Mapping[str, frozenset[str]]:
    zones: dict[str, set[str]] = {}
    for row in INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, ()):
        zones.setdefault(row["InstanceType"], set()).add(row["Location"])
    return {name: frozenset(zones[name]) for name in sorted(zones)}


def offered_types(region: str) -> tuple[str, ...]:
    """Return the instance types offered anywhere in the region, by name."""
    return tuple(_offerings(region))


def is_offered(region: str, instance_type: str, zone: str) -> bool:
    """Whether the zone has the type at all."""
    return zone in _offerings(region).get(instance_type, ())


def offered_zones(region: str, instance_type: str) -> tuple[str, ...]:
    """Return the zones that have the type, by name."""
    return tuple(sorted(_offerings(region).get(instance_type, ())))


def on_demand_price(region: str, instance_type: str) -> float | None:
    """Return USD per hour, None when no price is known."""
    return on_demand_prices(region).get(instance_type)


def spot_price(region: str, instance_type: str, zone: str) -> float | None:
    """Return USD per hour in a zone, None when no price is known."""
    average = spot_prices(region).get(instance_type)
    if average is None:
        return None
    seed = zlib.crc32(f"{zone}/{instance_type}".encode()) / 2**32
    return round(average * (1 - ZONE_SPREAD / 2 + ZONE_SPREAD * seed), 6)


def price(region: str, instance_type: str, zone: str, capacity_type: str) -> float | None:
    """Return USD per hour for "spot" or for anything else the on-demand price; None when unknown."""
    if capacity_type == "spot":
        return spot_price(region, instance_type, zone)
    return on_demand_price(region, instance_type)


def supported_architectures(instance_type: str) -> tuple[str, ...] | None:
    """Return the architectures ("x86_64", "arm64", …) a type runs, None for an unknown type."""
    known = INSTANCE_TYPES.get(instance_type)
    return tuple(known["ProcessorInfo"]["SupportedArchitectures"]) if known else None

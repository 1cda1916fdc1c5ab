"""Facts about EC2 that are shipped as data: prices by region and instance type.

The AWS provider uses them until the first price refresh, the sandbox answers Pricing and spot history from
them. `generate_prices.py` next to this file builds `prices.json.gz` and holds the rule for estimates.
Sources: on-demand and average spot prices of May 2025 (Go module `cristim/ec2-instances-info`), us-east-1
on-demand of July 2026 (Karpenter's AWS provider, static price table). Linux, shared tenancy, USD per hour.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

__all__ = ["HOME_REGION", "estimated", "on_demand_prices", "priced_regions", "spot_prices"]

HOME_REGION = "us-east-1"
"""The region whose prices stand in for a region that has none (aws/instances §7)."""


@cache
def _document() -> Mapping[str, Any]:
    packed = resources.files(__name__).joinpath("prices.json.gz").read_bytes()
    document: Mapping[str, Any] = json.loads(gzip.decompress(packed))
    return document


def _region(region: str) -> Mapping[str, Any]:
    regions: Mapping[str, Mapping[str, Any]] = _document()["regions"]
    return regions.get(region, regions[HOME_REGION])


@cache
def _prices(region: str, kind: str) -> Mapping[str, float]:
    pairs = zip(_document()["types"], _region(region)[kind], strict=True)
    return MappingProxyType({name: price for name, price in pairs if price is not None})


def priced_regions() -> frozenset[str]:
    """Return the regions that have prices of their own."""
    return frozenset(_document()["regions"])


def on_demand_prices(region: str) -> Mapping[str, float]:
    """Return on-demand prices, USD per hour by instance type; those of us-east-1 for an unknown region."""
    return _prices(region, "onDemand")


def spot_prices(region: str) -> Mapping[str, float]:
    """Return average spot prices, USD per hour by instance type; those of us-east-1 for an unknown region.

    A type without a spot record has its on-demand price times the region's median spot ratio.
    """
    return _prices(region, "spot")


@cache
def estimated(region: str) -> frozenset[str]:
    """Return the types whose on-demand price in the region is estimated; every type for an unknown region."""
    if region not in priced_regions():
        return frozenset(on_demand_prices(region))
    return frozenset(_region(region)["estimated"])

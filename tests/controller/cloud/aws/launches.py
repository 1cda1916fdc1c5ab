"""Real launches without AWS: types from moto's data, prices from the package, a class and a claim."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

import attrs

from controller.clock import FakeClock
from controller.cloud.aws.instancetypes import InstanceTypes
from controller.cloud.aws.launchfilters import choose_capacity_type, filter_types, truncate
from controller.cloud.aws.launchplan import ClusterInput, LaunchInput
from controller.cloud.aws.settings import AwsSettings
from controller.cloud.aws.shape import TypeShape
from controller.cloud.aws.unavailable import UnavailableOfferings
from controller.scheduling import InstanceType, Requirements
from framework.api import NodeClaim, parse_resources
from framework.api.ec2nodeclass import EC2NodeClass
from framework.data import on_demand_prices
from tests.controller.cloud.aws.builders import CLUSTER, REGION, a_shape

ZONES = tuple(f"{REGION}{zone}" for zone in "abc")
NAMES = (
    *("a1.medium", "c5.large", "g4dn.xlarge", "m5.metal", "inf2.xlarge", "m5.large", "m5.xlarge"),
    *("m5.2xlarge", "m5d.large", "m6g.large", "m6i.large", "p4d.24xlarge", "r5.large", "t3.medium"),
)
CLUSTER_INPUT = ClusterInput(
    name=CLUSTER,
    endpoint="https://example.eks.amazonaws.com",
    ca_bundle="Q0E=",
    region=REGION,
    service_cidr="10.100.0.0/16",
    dns_ip="10.100.0.10",
)


class FakeCatalogue:
    """The types of `NAMES`, on offer everywhere."""

    ready = True
    version = 1
    all_zones = ZONES

    def __init__(self) -> None:
        self.shapes: dict[str, TypeShape] = {name: a_shape(name) for name in sorted(NAMES)}
        self.zones = {name: frozenset(ZONES) for name in self.shapes}


class FakePrices:
    """On-demand prices of the package; spot at 40 % of them, a little dearer in later zones."""

    version = 0
    region = REGION

    def on_demand(self, name: str) -> float | None:
        return on_demand_prices(REGION).get(name)

    def spot(self, name: str, zone: str) -> float | None:
        price = self.on_demand(name)
        return None if price is None else price * (0.4 + 0.01 * ZONES.index(zone))


@attrs.define
class Market:
    """Instance types with their marks and counts, under a clock that stands still."""

    clock: FakeClock
    unavailable: UnavailableOfferings
    types: InstanceTypes


def a_market() -> Market:
    clock = FakeClock(datetime(2026, 6, 1, tzinfo=UTC))
    unavailable = UnavailableOfferings(clock)
    catalogue: Any = FakeCatalogue()
    prices: Any = FakePrices()
    settings = AwsSettings(cluster_name=CLUSTER, region=REGION)
    return Market(clock, unavailable, InstanceTypes(settings, catalogue, prices, unavailable, clock))


@cache
def _shared() -> Market:
    return a_market()


def types_of(node_class: EC2NodeClass) -> tuple[InstanceType, ...]:
    return _shared().types.resolve(node_class)


def a_launch(
    claim: NodeClaim, node_class: EC2NodeClass, *, market: Market | None = None, **changes: Any
) -> LaunchInput:
    """Return the launch of a claim: filtered types, first choice of capacity type, a subnet per zone."""
    wanted = Requirements.from_specs(claim.spec.requirements)
    offered = (market or _shared()).types.resolve(node_class)
    types = truncate(filter_types(offered, wanted, parse_resources(claim.spec.resources.requests)))
    launch = LaunchInput(
        claim=claim,
        node_class=node_class,
        cluster=CLUSTER_INPUT,
        types=types,
        capacity_type=choose_capacity_type(types),
        tenancy="default",
        subnets={zone: f"subnet-{zone[-1]}" for zone in ZONES},
    )
    return attrs.evolve(launch, **changes)

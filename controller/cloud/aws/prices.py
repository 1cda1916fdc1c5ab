"""What an hour of each instance type costs (spec aws/instances §7).

Refreshed by the `providers.pricing` reconciler, read when offerings are built and when launches are
ordered. Owns the current tables and the rules of merging: a failed or empty answer never removes a
price that was known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from controller.clock import Clock
from controller.cloud.aws.errors import AwsError
from controller.cloud.aws.gateway import Ec2, PriceList
from framework.data import on_demand_prices

__all__ = ["Prices"]


class Prices:
    """On-demand and spot prices of one region, USD an hour (CNY in China)."""

    def __init__(self, region: str, clock: Clock, ec2: Ec2, price_list: PriceList, *, isolated: bool) -> None:
        """Start from the table that ships with the package; `isolated` keeps it for on-demand."""
        self.region = region
        self._clock = clock
        self._ec2 = ec2
        self._price_list = price_list
        self._static_only = isolated or region.startswith("us-gov")
        self._on_demand: dict[str, float] = dict(on_demand_prices(region))
        self._spot: dict[tuple[str, str], float] = {}
        self._spot_known = False
        self.version = 0
        """Changes whenever a price did."""

    def on_demand(self, instance_type: str) -> float | None:
        """Return the on-demand price of a type, or None when nobody told."""
        return self._on_demand.get(instance_type)

    def spot(self, instance_type: str, zone: str) -> float | None:
        """Return the spot price of a type in a zone.

        The on-demand price stands in until the first answer; after it an unknown pair has no price.
        """
        if not self._spot_known:
            return self._on_demand.get(instance_type)
        return self._spot.get((instance_type, zone))

    async def refresh(self) -> None:
        """Read both kinds, side by side. Raises: the first AwsError after both were tried."""
        results = await asyncio.gather(self.refresh_on_demand(), self.refresh_spot(), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def refresh_on_demand(self) -> None:
        """Read the price list, unless only the static table may be used. Raises: AwsError."""
        if self._static_only:
            return
        shared, metal = await asyncio.gather(
            self._price_list.on_demand(tenancy="Shared", family="Compute Instance"),
            self._price_list.on_demand(tenancy="Dedicated", family="Compute Instance (bare metal)"),
        )
        if not shared or not metal:
            raise AwsError("pricing:GetProducts", "EmptyAnswer", "no prices came; the known ones are kept")
        self._merge({**metal, **shared})

    def _merge(self, prices: Mapping[str, float]) -> None:
        merged = {**self._on_demand, **prices}
        if merged != self._on_demand:
            self._on_demand = merged
            self.version += 1

    async def refresh_spot(self) -> None:
        """Read the spot history. Raises: AwsError."""
        found = dict(await self._ec2.spot_prices(self._clock.now()))
        if not found:
            raise AwsError(
                "ec2:DescribeSpotPriceHistory", "EmptyAnswer", "no prices came; the known ones are kept"
            )
        merged = {**self._spot, **found}
        if not self._spot_known or merged != self._spot:
            self._spot = merged
            self._spot_known = True
            self.version += 1

"""DescribeSpotPriceHistory from data: the current price of every pool. moto answers one constant of 2006."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sandbox.aws.ec2.actions import Ec2Actions, Fields
from sandbox.aws.market import offered_types, offered_zones, spot_price

__all__ = ["SpotPriceActions"]

PAGE = 1000
PRODUCT = "Linux/UNIX"
PRODUCTS = (PRODUCT, "Linux/UNIX (Amazon VPC)")
"""The only products with prices here; others answer with no rows, as EC2 does for types it does not sell."""
_FIELDS: Fields[Mapping[str, Any]] = {
    "availability-zone": lambda row: row["AvailabilityZone"],
    "instance-type": lambda row: row["InstanceType"],
    "product-description": lambda row: row["ProductDescription"],
    "spot-price": lambda row: row["SpotPrice"],
}


class SpotPriceActions(Ec2Actions):
    """DescribeSpotPriceHistory."""

    def describe_spot_price_history(self) -> str:
        """Return one row per type and zone offered, stamped now: prices do not move in the sandbox."""
        self.error_on_dryrun()
        products = self.parameter("ProductDescriptions") or [PRODUCT]
        product = next((p for p in PRODUCTS if p in products), None)
        wanted = self.parameter("InstanceTypes") or offered_types(self.region)
        zone = self.parameter("AvailabilityZone")
        rows = self._rows(wanted, zone, product) if product else []
        page, following = self.page(self.request_filters().select(rows, _FIELDS), PAGE)
        return self.answer("DescribeSpotPriceHistory", {"SpotPriceHistory": page, "NextToken": following})

    def _rows(self, types: Iterable[str], wanted_zone: str | None, product: str) -> list[dict[str, Any]]:
        now = self.world.now()
        return [
            {
                "AvailabilityZone": zone,
                "InstanceType": name,
                "ProductDescription": product,
                "SpotPrice": f"{price:.6f}",
                "Timestamp": now,
            }
            for name in types
            for zone in offered_zones(self.region, name)
            if wanted_zone in (None, zone) and (price := spot_price(self.region, name, zone)) is not None
        ]

"""The instance types that EC2 sells here, and in which zones (spec aws/instances §1).

Refreshed by the `providers.instancetype` reconciler: at start, then every 12 hours. Owns the raw
facts and a version that changes when they did; a failed refresh keeps what was known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType

from controller.cloud.aws.errors import AwsError
from controller.cloud.aws.gateway import Ec2
from controller.cloud.aws.shape import TypeShape

__all__ = ["Catalogue"]


class Catalogue:
    """Raw facts about instance types, the same for every node class."""

    def __init__(self, ec2: Ec2) -> None:
        """Start empty; `refresh` fills it."""
        self._ec2 = ec2
        self.shapes: Mapping[str, TypeShape] = MappingProxyType({})
        """Every type by name, in order of name."""
        self.zones: Mapping[str, frozenset[str]] = MappingProxyType({})
        """The zones that offer each type."""
        self.all_zones: tuple[str, ...] = ()
        """Every zone of the region that offers anything, sorted."""
        self.version = 0

    @property
    def ready(self) -> bool:
        """Return whether both kinds of facts are there."""
        return bool(self.shapes) and bool(self.zones)

    async def refresh(self) -> None:
        """Read types and zones, side by side. Raises: AwsError, and keeps what was known."""
        shapes, zones = await asyncio.gather(self._ec2.instance_types(), self._ec2.zone_offerings())
        if not shapes or not zones:
            raise AwsError("ec2:DescribeInstanceTypes", "EmptyAnswer", "EC2 named no instance types")
        by_name = {shape.name: shape for shape in shapes}
        if by_name != dict(self.shapes) or dict(zones) != dict(self.zones):
            self.shapes = MappingProxyType(by_name)
            self.zones = MappingProxyType(dict(zones))
            self.all_zones = tuple(sorted({zone for each in zones.values() for zone in each}))
            self.version += 1

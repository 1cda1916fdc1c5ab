"""Which subnet a launch uses in each zone: the one with most free addresses (spec aws/instances §8).

Fed by DescribeSubnets through the `nodeclass` reconciler, asked by `launcher`. Owns the prediction of
addresses in flight: what a launch is about to take is subtracted at once and given back when it was
not used; a fresh answer of EC2 replaces the prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

import attrs

from controller.clock import Clock
from controller.cloud.aws.gateway.records import SubnetRecord
from controller.cloud.aws.ttl import TtlCache
from framework.api.ec2nodeclass import Subnet

__all__ = ["SubnetAddresses", "SubnetChoice"]

_TTL: Final = timedelta(minutes=5)


@attrs.frozen(kw_only=True)
class SubnetChoice:
    """The subnets of one launch."""

    by_zone: Mapping[str, str]
    taken: Mapping[str, tuple[int, int]]
    """Addresses subtracted per subnet, and EC2's count they were subtracted from."""


class SubnetAddresses:
    """Free addresses per subnet."""

    def __init__(self, clock: Clock) -> None:
        """Start knowing of none."""
        self._counted: TtlCache[str, int] = TtlCache(clock, _TTL)
        self._predicted: dict[str, int] = {}

    def observe(self, records: Iterable[SubnetRecord]) -> None:
        """Take EC2's own counts; predictions for these subnets end."""
        for record in records:
            self._counted.put(record.id, record.free_addresses)
            self._predicted.pop(record.id, None)

    def free(self, subnet: str) -> int:
        """Return the addresses that should be free; 0 when nobody counted lately."""
        predicted = self._predicted.get(subnet)
        return predicted if predicted is not None else (self._counted.get(subnet) or 0)

    def choose(self, subnets: Sequence[Subnet], pods_by_zone: Mapping[str, int]) -> SubnetChoice:
        """Choose a subnet in each zone that a launch may use and subtract what it may take there.

        `pods_by_zone` has the smallest pod density on offer per zone. Ties go to the first in order.
        """
        by_zone: dict[str, str] = {}
        taken: dict[str, tuple[int, int]] = {}
        for zone, pods in sorted(pods_by_zone.items()):
            here = [subnet.id for subnet in subnets if subnet.zone == zone]
            if not here:
                continue
            chosen = max(here, key=self.free)
            by_zone[zone] = chosen
            taken[chosen] = (pods, self._counted.get(chosen) or 0)
            self._predicted[chosen] = self.free(chosen) - pods
        return SubnetChoice(by_zone=by_zone, taken=taken)

    def give_back(self, choice: SubnetChoice, used: Iterable[str]) -> None:
        """Undo the subtraction for subnets that no instance went to, unless EC2 was asked meanwhile."""
        kept = set(used)
        for subnet, (pods, counted) in choice.taken.items():
            unchanged = (self._counted.get(subnet) or 0) == counted
            if subnet not in kept and unchanged and subnet in self._predicted:
                self._predicted[subnet] += pods

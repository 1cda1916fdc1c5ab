"""Which addresses the subnets of a network get.

Called by `framework.components.network`. Owns the plan; pure, so that it is the same
at every preview. A zone's place follows from its letter: adding a zone to a network
never moves the subnets of another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import attrs

from framework.api import UserError

_PRIVATE_BITS = 3
"""A private subnet is an eighth of the network: nodes and pods take their addresses there."""
_PUBLIC_BITS = 6
_FIRST_PUBLIC = 48
"""Public subnets follow the six private ones, in the last quarter of the network."""
_LETTERS = "abcdef"
_LARGEST, _SMALLEST = 16, 20


class UnplannableNetwork(UserError):
    """A network in which the subnets cannot be laid out."""

    def __init__(self, field: str, value: object, problem: str, allowed: str) -> None:
        """Name the field, its value, the problem and what is allowed."""
        super().__init__(f"Network: {field} is {value!r}: {problem}; {allowed}")


@attrs.frozen(kw_only=True)
class ZonePlan:
    """The subnets of one zone."""

    zone: str
    private_cidr: str
    public_cidr: str


def plan_zones(cidr: str, zones: Sequence[str]) -> tuple[ZonePlan, ...]:
    """The subnets of each zone, sorted by zone. Raises UnplannableNetwork."""
    network = _network(cidr)
    if len(zones) < 2 or len(set(zones)) != len(zones):
        raise UnplannableNetwork(
            "zones", list(zones), "EKS needs two zones", "name two or more different zones"
        )
    private = list(network.subnets(prefixlen_diff=_PRIVATE_BITS))
    public = list(network.subnets(prefixlen_diff=_PUBLIC_BITS))
    plans = []
    for zone in sorted(zones):
        place = _LETTERS.find(zone[-1])
        if place < 0 or not zone[-2].isdigit():
            raise UnplannableNetwork("zones", zone, "not a zone of a region", "name zones such as eu-west-2a")
        plans.append(
            ZonePlan(
                zone=zone,
                private_cidr=str(private[place]),
                public_cidr=str(public[_FIRST_PUBLIC + place]),
            )
        )
    return tuple(plans)


def _network(cidr: str) -> ipaddress.IPv4Network:
    allowed = f"give a private IPv4 network of /{_LARGEST} to /{_SMALLEST}, such as 10.0.0.0/16"
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        raise UnplannableNetwork("cidr", cidr, str(error), allowed) from error
    if not _LARGEST <= network.prefixlen <= _SMALLEST:
        raise UnplannableNetwork("cidr", cidr, "of the wrong size", allowed)
    if not network.is_private:
        raise UnplannableNetwork("cidr", cidr, "not a private network", allowed)
    return network

"""Where a SchedulingConfig lets new capacity go: spot up to a share, zones in balance (design: its fields).

One `Steering` per config that asks for it, shared by the templates of its pools; asked whenever a claim is
opened. The share is a hard rule and holds whatever the cloud launches: claims that may become spot count
with the most vCPUs they could have, the others with the least. The balance is soft. Private to the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from controller.scheduling.claimshapes import ClaimShape, ShapeTable
from controller.scheduling.instancetypes import CapacityType
from controller.scheduling.openclaims import FEW_CLAIMS, OpenClaim, OpenClaims
from controller.scheduling.podclasses import Variant
from controller.scheduling.reasons import Reason, ReasonCode
from controller.scheduling.requirements import Requirement, Requirements
from controller.scheduling.snapshot import StateNode
from controller.scheduling.templates import Template
from framework.api import labels
from framework.api.quantity import format_resources
from framework.api.requirement_spec import Operator

__all__ = ["Steering"]

_SPOT: Final = Requirement.new(labels.CAPACITY_TYPE, Operator.IN, (CapacityType.SPOT,))
_NOT_SPOT: Final = Requirement.new(labels.CAPACITY_TYPE, Operator.NOT_IN, (CapacityType.SPOT,))
_ZONE_KEYS: Final = (labels.ZONE, labels.ZONE_ID)
_ALL: Final = 100


@attrs.frozen(kw_only=True)
class _Share:
    """What one node or claim adds: milli-vCPUs, the same for a node."""

    least: int = 0
    most: int = 0
    spot: bool = False
    """Whether it is spot, or may become it."""
    zone: str | None = None
    """None while it may still land in several."""


@attrs.frozen
class _Measured:
    """What a claim added when it was in that state."""

    shape: ClaimShape
    used: list[int]
    share: _Share

    def holds(self, claim: OpenClaim) -> bool:
        """Tell whether the claim is still in that state."""
        return claim.shape is self.shape and claim.used is self.used


class Steering:
    """What the pools of one config have and are about to get, by capacity type and zone."""

    def __init__(
        self, owner: str, *, max_share: int, max_skew: int | None, nodes: Iterable[StateNode]
    ) -> None:
        """Count the nodes that stay; both bounds are percent of the vCPUs, `max_skew` None for no balance."""
        self._owner = owner
        self._max_share = max_share
        self._max_skew = max_skew
        self._spot = 0
        self._other = 0
        self._zones: dict[str, int] = {}
        self._anywhere = 0
        self._claims: dict[int, _Measured] = {}
        self._seen = 0
        self._cpu: dict[int, NDArray[np.int64]] = {}
        for node in nodes:
            self._add(_share_of(node), 1)

    def starts(
        self, start: ClaimShape, variant: Variant, open_claims: OpenClaims, shapes: ShapeTable
    ) -> Iterator[ClaimShape]:
        """Yield the states in which a claim may be opened for a pod, best first."""
        self._follow(open_claims)
        for allowed in self._within_share(start, shapes):
            zone = self._zone_to_fill(allowed, variant, shapes)
            if zone is not None:
                yield zone
            yield allowed

    def refusal(self) -> Reason:
        """Return that a pod would need more spot capacity than there may be."""
        spot, total = (
            format_resources({"cpu": amount})["cpu"] for amount in (self._spot, self._spot + self._other)
        )
        return Reason(
            code=ReasonCode.SPOT_SHARE,
            text=f"at most {self._max_share}% of the vCPUs of its NodePools may be spot",
            obj=self._owner,
            field="spec.spot.maxShare",
            nearest=f"up to {spot} of {total} vCPUs are now",
        )

    # The share

    def _within_share(self, start: ClaimShape, shapes: ShapeTable) -> Iterator[ClaimShape]:
        if self._max_share == _ALL or not _offers_spot(start):
            yield start
            return
        room = (self._max_share * (self._spot + self._other) - _ALL * self._spot) // (_ALL - self._max_share)
        small = start.base & (self._cpu_of(start.template) <= room)
        capped = shapes.intern(start.template, start.requirements, small)
        rest = shapes.narrow(start, _NOT_SPOT)
        # Where there is room for less than a usual node, what is not spot makes room for more.
        usual = max((known.share.least for known in self._claims.values()), default=0)
        for state in (capped, rest) if room >= usual else (rest, capped):
            if state is not None:
                yield state

    # The balance

    def _zone_to_fill(self, start: ClaimShape, variant: Variant, shapes: ShapeTable) -> ClaimShape | None:
        """The state pinned to the emptiest zone; None where any zone will do or the pod is not free."""
        if self._max_skew is None or not _may_go_anywhere(start, variant):
            return None
        pinned = {
            zone: narrowed
            for zone in _zones(start)
            if (narrowed := shapes.narrow(start, Requirement.new(labels.ZONE, Operator.IN, (zone,))))
        }
        if len(pinned) < 2:
            return None
        held = {zone: self._zones.get(zone, 0) for zone in pinned}
        largest = int(self._cpu_of(start.template)[start.mask].max(initial=0))
        fullest = max(held.values()) + self._anywhere + largest
        total = sum(self._zones.values()) + self._anywhere + largest
        if _ALL * (fullest - min(held.values())) <= self._max_skew * total:
            return None
        best = min(
            pinned, key=lambda zone: (held[zone], float(pinned[zone].price[pinned[zone].mask].min()), zone)
        )
        return pinned[best]

    # Counting

    def _follow(self, open_claims: OpenClaims) -> None:
        """Take in what has changed on the claims of this config since the last look."""
        journal, claims = open_claims.journal, open_claims.claims
        few = len(claims) <= FEW_CLAIMS
        for claim in claims if few else map(claims.__getitem__, sorted(set(journal[self._seen :]))):
            if claim.shape.template.steering is self:
                known = self._claims.get(claim.row)
                if known is None or not known.holds(claim):
                    if known is not None:
                        self._add(known.share, -1)
                    share = self._measured(claim)
                    self._claims[claim.row] = _Measured(claim.shape, claim.used, share)
                    self._add(share, 1)
        self._seen = len(journal)

    def _measured(self, claim: OpenClaim) -> _Share:
        cpu = self._cpu_of(claim.shape.template)[claim.shape.types_holding(claim.used)]
        zone = claim.shape.requirements.get(labels.ZONE)
        settled = zone is not None and not zone.complement and len(zone.values) == 1
        return _Share(
            least=int(cpu.min(initial=int(cpu.max(initial=0)))),
            most=int(cpu.max(initial=0)),
            spot=not claim.held and _offers_spot(claim.shape),
            zone=min(zone.values) if zone is not None and settled else None,
        )

    def _add(self, share: _Share, sign: int) -> None:
        if share.spot:
            self._spot += sign * share.most
        else:
            self._other += sign * share.least
        if share.zone is None:
            self._anywhere += sign * share.most
        else:
            self._zones[share.zone] = self._zones.get(share.zone, 0) + sign * share.least

    def _cpu_of(self, template: Template) -> NDArray[np.int64]:
        known = self._cpu.get(template.index)
        if known is None:
            known = self._cpu[template.index] = template.table.capacity(("cpu",))[:, 0]
        return known


def _share_of(node: StateNode) -> _Share:
    cpu = node.capacity.get("cpu", 0)
    spot = node.labels.get(labels.CAPACITY_TYPE) == CapacityType.SPOT
    return _Share(least=cpu, most=cpu, spot=spot, zone=node.labels.get(labels.ZONE))


def _offers_spot(shape: ClaimShape) -> bool:
    known = shape.requirements.get(labels.CAPACITY_TYPE)
    if known is not None and not known.overlaps(_SPOT):
        return False
    offered, _ = shape.template.table.offered(shape.requirements.add(_SPOT))
    return bool((offered & shape.mask).any())


def _may_go_anywhere(start: ClaimShape, variant: Variant) -> bool:
    """Tell whether neither the claim nor the pod, its volumes or a rule about other pods picks a zone."""
    settled = start.requirements.get(labels.ZONE)
    if settled is not None and not settled.complement and len(settled.values) == 1:
        return False
    wanted: Sequence[Requirements] = [rules.requirements for rules in variant.rules]
    by_zone = any(rule.counter.key.topology_key in _ZONE_KEYS for rule in variant.domain_rules)
    return not by_zone and not any(key in each for each in wanted for key in _ZONE_KEYS)


def _zones(start: ClaimShape) -> Iterator[str]:
    allowed = start.requirements.get(labels.ZONE)
    for zone in sorted(start.template.table.values(labels.ZONE)):
        if allowed is None or allowed.has(zone):
            yield zone

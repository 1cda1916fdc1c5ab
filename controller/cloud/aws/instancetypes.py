"""Every instance type as a node class would launch it (spec aws/instances §2 to §5).

Called by the provider for each NodePool. Owns the caches: the shape of a type under a class is made
once per class content, its offerings once per change of a price or of an availability mark. What was
not asked for during five minutes is forgotten. Resolving is pure computation; nothing here waits for
AWS. The first time for a class takes a tenth of a second and more, so callers `prepare` it in slices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

import attrs

from controller.clock import Clock
from controller.cloud.aws.capacity import CapacityRules, capacity, overhead
from controller.cloud.aws.catalogue import Catalogue
from controller.cloud.aws.labelling import LabelRules, type_requirements
from controller.cloud.aws.learned import LearnedMemory, images_key
from controller.cloud.aws.prices import Prices
from controller.cloud.aws.reserved import ReservedCounts
from controller.cloud.aws.settings import AwsSettings
from controller.cloud.aws.shape import TypeShape
from controller.cloud.aws.ttl import TtlCache
from controller.cloud.aws.unavailable import UnavailableOfferings
from controller.cloud.provider import CloudError
from controller.scheduling import CapacityType, InstanceType, Offering, Resources
from framework.api.ec2nodeclass import CapacityReservation, EC2NodeClass, ReservationState

__all__ = ["InstanceTypes"]

_TTL: Final = timedelta(minutes=5)
_SLICE: Final = 50
"""Types worked out between two turns of others, some milliseconds of work."""
_RESERVED_SHARE: Final = 10_000_000
"""Reserved capacity is paid already: its price is the on-demand price over this, which keeps order."""
_PLAIN: Final = (CapacityType.ON_DEMAND, CapacityType.SPOT)

Key = tuple[object, ...]


@attrs.frozen(kw_only=True, eq=False)
class _Facts:
    """What the offerings of one class depend on beside the type."""

    zone_ids: Mapping[str, str | None]
    reservations: Mapping[str, tuple[CapacityReservation, ...]]
    version: Key


class InstanceTypes:
    """Resolves node classes to instance types."""

    def __init__(
        self,
        settings: AwsSettings,
        catalogue: Catalogue,
        prices: Prices,
        unavailable: UnavailableOfferings,
        clock: Clock,
    ) -> None:
        """Take what the answer is made from."""
        self._settings = settings
        self._catalogue = catalogue
        self._prices = prices
        self._unavailable = unavailable
        self.learned = LearnedMemory(clock)
        self.reserved = ReservedCounts(clock)
        self._bases: TtlCache[Key, tuple[InstanceType, ...]] = TtlCache(clock, _TTL)
        self._offerings: TtlCache[tuple[Key, str], tuple[Key, tuple[Offering, ...]]] = TtlCache(clock, _TTL)
        self._resolved: TtlCache[Key, tuple[Key, tuple[InstanceType, ...]]] = TtlCache(clock, _TTL)
        self._preparing = asyncio.Lock()
        self._index: tuple[tuple[InstanceType, ...], dict[str, InstanceType]] = ((), {})

    def resolve(self, node_class: EC2NodeClass) -> tuple[InstanceType, ...]:
        """Return every type, by name, also those that cannot be launched now.

        The same tuple comes back as long as nothing changed. Raises: CloudError before discovery has
        succeeded and for a class without subnets.
        """
        if not self._catalogue.ready:
            raise CloudError("instance types are not known yet; discovery is retried")
        if not node_class.status.subnets:
            raise CloudError(f"EC2NodeClass/{node_class.metadata.name} has no subnets; see SubnetsReady")
        key = self._key(node_class)
        self._unavailable.expire()
        version = self._version()
        known = self._resolved.get(key)
        if known is not None and known[0] == version:
            self._resolved.put(key, known)
            return known[1]
        facts = self._facts(node_class)
        images = images_key(node_class.status.amis)
        before = dict(zip((item.name for item in known[1]), known[1], strict=True)) if known else {}
        found = tuple(
            self._current(base, self._offers(key, base, facts), images, before.get(base.name))
            for base in self._base(key, node_class)
        )
        self._resolved.put(key, (version, found))
        return found

    async def prepare(self, node_class: EC2NodeClass) -> None:
        """Work out ahead what `resolve` is slow at, letting others run in between."""
        async with self._preparing:
            key = self._key(node_class)
            known = self._bases.get(key) is not None
            if known or not self._catalogue.ready or not node_class.status.subnets:
                return
            rules, labelling = self._rules(node_class)
            found = []
            for count, shape in enumerate(self._catalogue.shapes.values()):
                if count % _SLICE == 0:
                    await asyncio.sleep(0)
                found.append(self._describe(shape, rules, labelling))
            if key == self._key(node_class):  # else the catalogue changed meanwhile
                self._keep(key, tuple(found))

    def find(self, node_class: EC2NodeClass, name: str) -> InstanceType | None:
        """Return one type as the class would launch it, or None when EC2 does not sell it here."""
        types = self.resolve(node_class)
        if self._index[0] is not types:
            self._index = (types, {item.name: item for item in types})
        return self._index[1].get(name)

    def _version(self) -> Key:
        return (
            self._prices.version,
            self._unavailable.version,
            self.reserved.version,
            self.learned.version,
        )

    def _current(
        self, base: InstanceType, offerings: tuple[Offering, ...], images: str, before: InstanceType | None
    ) -> InstanceType:
        """Return the type as it is on offer now; the very same object as before when nothing changed.

        The engine keeps what it worked out about an object.
        """
        capacity = self._with_learned(base, images)
        if before is not None and before.offerings == offerings and before.capacity == capacity:
            return before
        return InstanceType(
            name=base.name,
            requirements=base.requirements,
            offerings=offerings,
            capacity=capacity,
            overhead=base.overhead,
        )

    def _with_learned(self, base: InstanceType, images: str) -> Resources:
        """Return the predicted capacity with the memory that nodes of the type really had, once known."""
        learned = self.learned.get(base.name, images)
        return base.capacity if learned is None else {**base.capacity, "memory": learned}

    def _key(self, node_class: EC2NodeClass) -> Key:
        spec, status = node_class.spec, node_class.status
        return (
            self._catalogue.version,
            images_key(status.amis),
            tuple(sorted((subnet.zone, subnet.zone_id or "") for subnet in status.subnets)),
            str(spec.kubelet),
            str(spec.block_device_mappings),
            str(status.capacity_reservations),
            spec.instance_store_policy,
            spec.resolved_ami_family,
        )

    def _facts(self, node_class: EC2NodeClass) -> _Facts:
        reservations: dict[str, list[CapacityReservation]] = {}
        for item in self._reservations(node_class):
            reservations.setdefault(item.instance_type, []).append(item)
        return _Facts(
            zone_ids={subnet.zone: subnet.zone_id for subnet in node_class.status.subnets},
            reservations={name: tuple(items) for name, items in reservations.items()},
            version=(self._prices.version,),
        )

    def _reservations(self, node_class: EC2NodeClass) -> tuple[CapacityReservation, ...]:
        return node_class.status.capacity_reservations if self._settings.reserved_capacity else ()

    def _base(self, key: Key, node_class: EC2NodeClass) -> tuple[InstanceType, ...]:
        known = self._bases.get(key)
        if known is not None:
            return self._bases.put(key, known)
        rules, labelling = self._rules(node_class)
        shapes = self._catalogue.shapes.values()
        return self._keep(key, tuple(self._describe(shape, rules, labelling) for shape in shapes))

    def _keep(self, key: Key, base: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
        """Keep the types of a new class content and forget those of contents that are gone."""
        for cache in (self._bases, self._offerings, self._resolved):
            cache.purge()
        return self._bases.put(key, base)

    def _rules(self, node_class: EC2NodeClass) -> tuple[CapacityRules, LabelRules]:
        family = node_class.spec.resolved_ami_family
        rules = CapacityRules(
            family=family,
            spec=node_class.spec,
            memory_overhead=self._settings.vm_memory_overhead,
            reserved_enis=self._settings.reserved_enis,
        )
        labelling = LabelRules(
            region=self._prices.region,
            family=family,
            subnet_zones={subnet.zone: subnet.zone_id for subnet in node_class.status.subnets},
            reservations=self._reservations(node_class),
        )
        return rules, labelling

    def _describe(self, shape: TypeShape, rules: CapacityRules, labelling: LabelRules) -> InstanceType:
        predicted = capacity(shape, rules)
        reserve = overhead(shape, rules, predicted)
        zones = self._catalogue.zones.get(shape.name, frozenset())
        return InstanceType(
            name=shape.name,
            requirements=type_requirements(shape, zones, labelling),
            offerings=(),
            capacity=predicted,
            overhead=reserve,
        )

    def _offers(self, key: Key, base: InstanceType, facts: _Facts) -> tuple[Offering, ...]:
        version = (*facts.version, self._unavailable.sequence(base.name))
        known = self._offerings.get((key, base.name))
        if known is not None and known[0] == version:
            plain = known[1]
        else:
            plain = tuple(self._plain(base.name, facts))
            self._offerings.put((key, base.name), (version, plain))
        reserved = facts.reservations.get(base.name)
        return plain if reserved is None else (*plain, *self._reserved_offers(base.name, reserved, facts))

    def _plain(self, name: str, facts: _Facts) -> Iterator[Offering]:
        usage = self._catalogue.shapes[name].usage_classes
        offered = self._catalogue.zones.get(name, frozenset()).intersection(facts.zone_ids)
        for zone in self._catalogue.all_zones:
            for kind in _PLAIN:
                if kind.value not in usage:
                    continue
                spot = kind is CapacityType.SPOT
                price = self._prices.spot(name, zone) if spot else self._prices.on_demand(name)
                yield Offering(
                    zone=zone,
                    capacity_type=kind,
                    price=price,
                    zone_id=facts.zone_ids.get(zone),
                    available=price is not None
                    and zone in offered
                    and not self._unavailable.contains(kind, name, zone),
                    launches_left=self._unavailable.launches_left(kind, name, zone),
                )

    def _reserved_offers(
        self, name: str, reservations: tuple[CapacityReservation, ...], facts: _Facts
    ) -> Iterator[Offering]:
        offered = self._catalogue.zones.get(name, frozenset()).intersection(facts.zone_ids)
        price = (self._prices.on_demand(name) or 0.0) / _RESERVED_SHARE
        for item in reservations:
            left = self.reserved.available(item.id)
            yield Offering(
                zone=item.availability_zone,
                capacity_type=CapacityType.RESERVED,
                price=price,
                zone_id=facts.zone_ids.get(item.availability_zone),
                reservation_id=item.id,
                reservation_type=item.reservation_type.value,
                reservation_capacity=left,
                available=left > 0
                and item.availability_zone in offered
                and item.state is not ReservationState.EXPIRING,
            )

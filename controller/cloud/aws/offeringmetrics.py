"""The `cloudprovider.metrics` reconciler: what is on offer and for how much, once a minute.

Singleton run by `charpente run`. Publishes the offerings of every NodePool's types in a thread, since
there are thousands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from controller.cloud.aws.metrics import AwsMetrics
from controller.cloud.aws.parts import Parts
from controller.cloud.provider import CloudError
from controller.cluster import Mirror
from controller.kube import Key, Requeue
from controller.scheduling import CapacityType, InstanceType

__all__ = ["OfferingMetrics"]

_EVERY: Final = timedelta(minutes=1)


class OfferingMetrics:
    """Publishes offerings."""

    name = "cloudprovider.metrics"

    def __init__(self, parts: Parts, metrics: AwsMetrics, mirror: Mirror) -> None:
        """Look at the classes of every pool."""
        self._parts = parts
        self._metrics = metrics
        self._mirror = mirror

    async def reconcile(self, key: Key) -> Requeue:
        """Publish every class's types; classes that cannot be resolved yet are left out."""
        del key
        self._metrics.show_types(self._parts.catalogue)
        names = {pool.spec.template.spec.node_class_ref.name for pool in self._mirror.pools.values()}
        for name in sorted(names):
            node_class = self._mirror.ec2nodeclass(name)
            if node_class is None:
                continue
            await self._parts.types.prepare(node_class)
            try:
                types = self._parts.types.resolve(node_class)
            except CloudError:
                continue
            await asyncio.to_thread(self._publish, types)
        return Requeue(_EVERY)

    def _publish(self, types: Sequence[InstanceType]) -> None:
        reserved = self._parts.settings.reserved_capacity
        for item in types:
            seen: set[tuple[str, str]] = set()
            for offer in item.offerings:
                seen.add((offer.capacity_type.value, offer.zone))
                self._show(item.name, offer.capacity_type, offer.zone, offer.price, on_offer=offer.available)
            for zone in self._parts.catalogue.all_zones if reserved else ():
                if (CapacityType.RESERVED.value, zone) not in seen:
                    self._show(item.name, CapacityType.RESERVED, zone, 0.0, on_offer=False)

    def _show(
        self, name: str, capacity_type: CapacityType, zone: str, price: float | None, *, on_offer: bool
    ) -> None:
        where = {"instance_type": name, "capacity_type": capacity_type.value, "zone": zone}
        self._metrics.available.labels(**where).set(1 if on_offer else 0)
        if price is not None:
            self._metrics.price.labels(**where).set(price)

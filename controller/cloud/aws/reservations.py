"""What becomes of nodes whose capacity reservation changes (spec aws/launch §13).

Two singleton reconcilers run by `charpente run`: one relabels nodes that fell out of their reservation,
the other ends nodes whose capacity block is about to end.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from controller.cloud.aws.provider import AwsProvider
from controller.cluster import Mirror
from controller.kube import Client, Conflict, Key, Kind, NotFound, Requeue, kinds
from controller.scheduling import CapacityType
from framework.api import NodeClaim, labels
from framework.api.ec2nodeclass import ReservationState

__all__ = ["CapacityTypeSync", "ReservationExpiration"]

_EVERY: Final = timedelta(minutes=1)


class CapacityTypeSync:
    """Relabels nodes that run on demand although they were launched into a reservation."""

    name = "capacityreservation.capacitytype"

    def __init__(self, provider: AwsProvider, client: Client, mirror: Mirror) -> None:
        """Compare instances with claims."""
        self._provider = provider
        self._client = client
        self._mirror = mirror

    async def reconcile(self, key: Key) -> Requeue:
        """Relabel claims and registered nodes. Raises: CloudError, KubeError."""
        del key
        reserved = {
            claim.status.provider_id: claim
            for claim in self._mirror.claims.values()
            if claim.metadata.labels.get(labels.CAPACITY_TYPE) == CapacityType.RESERVED
            and claim.metadata.deletion_timestamp is None
        }
        if not reserved:
            return Requeue(_EVERY)
        for instance in await self._provider.list():
            claim = reserved.get(instance.provider_id)
            if claim is not None and instance.labels[labels.CAPACITY_TYPE] == CapacityType.ON_DEMAND:
                await self._relabel_all(claim)
        return Requeue(_EVERY)

    async def _relabel_all(self, claim: NodeClaim) -> None:
        await self._relabel(kinds.NODECLAIM, claim.metadata.name)
        for node in self._mirror.nodes_of(claim):
            if node.labels.get(labels.REGISTERED) == "true":
                await self._relabel(kinds.NODE, node.name)

    async def _relabel(self, kind: Kind, name: str) -> None:
        wanted = {
            labels.CAPACITY_TYPE: CapacityType.ON_DEMAND.value,
            labels.CAPACITY_RESERVATION_ID: None,
            labels.CAPACITY_RESERVATION_TYPE: None,
        }
        try:
            answer = await self._client.patch(kind, name, {"metadata": {"labels": wanted}})
        except (Conflict, NotFound):
            return  # looked at again in a minute
        self._mirror.apply(kind, answer)


class ReservationExpiration:
    """Ends nodes before their capacity block does."""

    name = "capacityreservation.expiration"

    def __init__(self, client: Client, mirror: Mirror) -> None:
        """Look at the reservations that classes show."""
        self._client = client
        self._mirror = mirror

    async def reconcile(self, key: Key) -> Requeue:
        """Delete the claims of reservations that are expiring. Raises: KubeError."""
        del key
        expiring = {
            item.id
            for node_class in self._mirror.ec2nodeclasses.values()
            for item in node_class.status.capacity_reservations
            if item.state is ReservationState.EXPIRING
        }
        for claim in list(self._mirror.claims.values()):
            reservation = claim.metadata.labels.get(labels.CAPACITY_RESERVATION_ID)
            if reservation in expiring and claim.metadata.deletion_timestamp is None:
                await self._end(claim)
        return Requeue(_EVERY)

    async def _end(self, claim: NodeClaim) -> None:
        name, uid = claim.metadata.name, claim.metadata.uid
        try:
            answer = await self._client.delete(kinds.NODECLAIM, name, uid=uid)
        except NotFound:
            return
        if answer.get("kind") == kinds.NODECLAIM.kind:
            self._mirror.apply(kinds.NODECLAIM, answer)

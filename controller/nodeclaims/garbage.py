"""Garbage collection: claims whose instance vanished (spec core/lifecycle §12).

A singleton every two minutes. Instances without a claim are the provider's to collect.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import structlog

from controller.cloud.provider import CloudError, Provider
from controller.cluster import Mirror
from controller.kube import Key, Requeue
from controller.nodeclaims.ending import Ending
from controller.observability.logs import ref
from framework.api import CharpenteError, ClaimCondition, NodeClaim
from framework.api.conditions import is_true

__all__ = ["GarbageCollection", "InstancesUnknown"]

_log: Final = structlog.get_logger("controller")
_EVERY: Final = Requeue(timedelta(minutes=2))
_PARALLEL: Final = 20


class InstancesUnknown(CharpenteError):
    """The provider could not list instances, so nothing can be said to be gone."""


class GarbageCollection:
    """Deletes claims without an instance."""

    name = "nodeclaim.garbagecollection"

    def __init__(self, mirror: Mirror, provider: Provider, ending: Ending) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._provider = provider
        self._ending = ending

    async def reconcile(self, key: Key) -> Requeue:  # noqa: ARG002 - a singleton
        """Compare claims with instances once.

        The claims are read before the instances, so that one launched in between is not missed.
        """
        claims = tuple(filter(self._may_be_judged, self._mirror.claims.values()))
        try:
            instances = await self._provider.list()
        except CloudError as exc:
            raise InstancesUnknown(f"instances cannot be listed: {exc}") from exc
        living = {each.provider_id for each in instances if not each.deleting}
        gone = [claim for claim in claims if claim.status.provider_id not in living]
        slots = asyncio.Semaphore(_PARALLEL)
        await asyncio.gather(*(self._collect(claim, slots) for claim in gone))
        return _EVERY

    def _may_be_judged(self, claim: NodeClaim) -> bool:
        registered = is_true(claim.status.conditions, ClaimCondition.REGISTERED)
        return registered and not claim.deleting and self._mirror.is_ours(claim)

    async def _collect(self, claim: NodeClaim, slots: asyncio.Semaphore) -> None:
        if any(node.ready for node in self._mirror.nodes_of(claim)):
            return
        async with slots:
            _log.info(
                "instance is gone",
                NodeClaim=ref(claim.name),
                **{"provider-id": claim.status.provider_id},
            )
            await self._ending.delete(claim, "garbage_collected")

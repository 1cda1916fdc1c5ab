"""Expiration: claims that reached their age are deleted, whatever budgets say (spec core/lifecycle §10.3).

Reconciles NodeClaims. Draining still respects PodDisruptionBudgets until the grace period ends.
"""

from __future__ import annotations

from datetime import timedelta

from controller.clock import Clock
from controller.cluster import Mirror
from controller.kube import DONE, Key, Requeue
from controller.nodeclaims.ending import Ending

__all__ = ["Expiration"]


class Expiration:
    """Deletes claims of age `spec.expireAfter`."""

    name = "nodeclaim.expiration"

    def __init__(self, mirror: Mirror, ending: Ending, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._ending = ending
        self._clock = clock

    async def reconcile(self, key: Key) -> Requeue:
        """Delete the claim if it has expired, else come back then."""
        claim = self._mirror.claims.get(key.name)
        if claim is None or claim.deleting or not self._mirror.is_ours(claim):
            return DONE
        created, age = claim.metadata.creation_timestamp, claim.spec.expire_after
        if created is None or age is None:
            return DONE
        left = created + age - self._clock.now()
        if left > timedelta():
            return Requeue(left)
        await self._ending.delete(claim, "expired")
        return DONE

"""The claim's lifecycle: launch, registration, initialization, liveness; or deletion (lifecycle §1 to §7).

Reconciles NodeClaims. The four parts run in order on one claim and their changes are written together,
metadata first, then status; deleting claims go another way.
"""

from __future__ import annotations

import attrs

from controller.cluster import Mirror, Writer
from controller.kube import DONE, Key, NotFound, Requeue
from controller.nodeclaims.deletion import Deletion
from controller.nodeclaims.step import Part, Step
from framework.api import NodeClaim, labels

__all__ = ["Lifecycle"]


@attrs.frozen(kw_only=True, eq=False)
class Lifecycle:
    """Brings claims to life and to their end."""

    mirror: Mirror
    writer: Writer
    parts: tuple[Part, ...]
    """Launch, registration, initialization, liveness."""
    deletion: Deletion

    name = "nodeclaim.lifecycle"

    async def reconcile(self, key: Key) -> Requeue:
        """Take the next steps of one claim."""
        claim = self.mirror.claims.get(key.name)
        if claim is None or not self.mirror.is_ours(claim):
            return DONE
        if claim.deleting:
            return await self.deletion.finish(claim)
        try:
            return await self._live(await self._with_finalizer(claim))
        except NotFound:
            return DONE

    async def _with_finalizer(self, claim: NodeClaim) -> NodeClaim:
        """Make sure that nothing is launched for a claim that could vanish without us."""
        if labels.TERMINATION_FINALIZER in claim.metadata.finalizers:
            return claim
        finalizers = (*claim.metadata.finalizers, labels.TERMINATION_FINALIZER)
        after = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, finalizers=finalizers))
        return await self.writer.claim(claim, after)

    async def _live(self, claim: NodeClaim) -> Requeue:
        step = Step(claim=claim)
        for part in self.parts:
            step = await part.advance(step)
            if step.deleted:
                return DONE
        await self.writer.claim(claim, step.claim)
        for act in step.afterwards:
            await act()
        if step.failure is not None:
            raise step.failure
        return step.requeue

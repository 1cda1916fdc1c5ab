"""What one part of the claim lifecycle hands to the next.

Used by launch, registration, initialization and liveness, which run in that order on one claim and whose
changes are written together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import attrs

from controller.kube import DONE, Requeue
from framework.api import CharpenteError, ClaimCondition, NodeClaim, labels
from framework.api.conditions import Condition, ConditionStatus, get

__all__ = ["Part", "Step", "is_unknown", "pool_of", "state"]


@attrs.frozen(kw_only=True)
class Step:
    """A claim on its way through one reconcile."""

    claim: NodeClaim
    """As it should be written."""
    requeue: Requeue = DONE
    failure: CharpenteError | None = None
    """What to raise once the claim is written, so that the loop backs off."""
    afterwards: tuple[Callable[[], Awaitable[None]], ...] = ()
    """What is said and counted once the claim is written, so that a lost write is not counted twice."""
    deleted: bool = False
    """Its deletion was asked for; nothing more is to be done or written."""

    def then(self, act: Callable[[], Awaitable[None]]) -> Step:
        """Return the step with one more act for after the write."""
        return attrs.evolve(self, afterwards=(*self.afterwards, act))

    def wait(self, requeue: Requeue) -> Step:
        """Return the step with a further wish to come back."""
        return attrs.evolve(self, requeue=Requeue.soonest(self.requeue, requeue))


class Part(Protocol):
    """One part of the lifecycle."""

    async def advance(self, step: Step) -> Step:
        """Do what the claim is ready for."""
        ...


def state(claim: NodeClaim, type: ClaimCondition) -> Condition:
    """Return a lifecycle condition, Unknown since creation when it was never written."""
    found = get(claim.status.conditions, type)
    if found is not None:
        return found
    created = claim.metadata.creation_timestamp
    return Condition(type=type, status=ConditionStatus.UNKNOWN, last_transition_time=created)


def is_unknown(claim: NodeClaim, type: ClaimCondition) -> bool:
    """Tell whether the condition is still to be decided."""
    return state(claim, type).status is ConditionStatus.UNKNOWN


def pool_of(claim: NodeClaim) -> str:
    """Return the pool's name as metric labels want it; empty for standalone claims."""
    return claim.metadata.labels.get(labels.NODEPOOL, "")

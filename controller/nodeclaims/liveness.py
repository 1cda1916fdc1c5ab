"""Liveness: giving up on claims that never become nodes (spec core/lifecycle §6).

Last part of the lifecycle; acts until the claim is registered.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs
import structlog

from controller.clock import Clock
from controller.kube import Requeue
from controller.nodeclaims.ending import Ending
from controller.nodeclaims.health import RegistrationHealth
from controller.nodeclaims.step import Step, state
from controller.observability.logs import ref
from framework.api import ClaimCondition, ConditionStatus

__all__ = ["LAUNCH_TIMEOUT", "REGISTRATION_TIMEOUT", "Liveness"]

_log: Final = structlog.get_logger("controller")
LAUNCH_TIMEOUT: Final = timedelta(minutes=5)
REGISTRATION_TIMEOUT: Final = timedelta(minutes=15)


class Liveness:
    """Deletes claims whose time is up."""

    def __init__(self, ending: Ending, health: RegistrationHealth, clock: Clock) -> None:
        """Keep the arguments."""
        self._ending = ending
        self._health = health
        self._clock = clock

    async def advance(self, step: Step) -> Step:
        """Delete the claim if it took too long to launch or to register, else come back then."""
        if state(step.claim, ClaimCondition.REGISTERED).status is ConditionStatus.TRUE:
            return step
        if state(step.claim, ClaimCondition.LAUNCHED).status is not ConditionStatus.TRUE:
            step = await self._limit(step, ClaimCondition.LAUNCHED, LAUNCH_TIMEOUT, "launch_timeout")
        if step.deleted:
            return step
        return await self._limit(
            step, ClaimCondition.REGISTERED, REGISTRATION_TIMEOUT, "registration_timeout"
        )

    async def _limit(self, step: Step, type: ClaimCondition, limit: timedelta, reason: str) -> Step:
        since = state(step.claim, type).last_transition_time or step.claim.metadata.creation_timestamp
        if since is None:
            return step
        left = since + limit - self._clock.now()
        if left > timedelta():
            return step.wait(Requeue(left))
        _log.error("nodeclaim took too long", NodeClaim=ref(step.claim.name), reason=reason)
        await self._health.failed(step.claim)
        await self._ending.delete(step.claim, reason)
        return attrs.evolve(step, deleted=True)

"""Launch: from a claim to an instance (spec core/lifecycle §3).

First part of the lifecycle. Calls the provider once the finalizer is stored; remembers what was created so
that a status that could not be written is written next time instead of launching twice.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs
import structlog

from controller.clock import Clock
from controller.cloud.provider import (
    CloudError,
    CreateFailed,
    Instance,
    InsufficientCapacity,
    NodeClassNotReady,
    Provider,
)
from controller.cluster import conditions_of, with_conditions
from controller.kube import Event, EventType, ObjectRef, Recorder, kinds
from controller.nodeclaims.ending import Ending
from controller.nodeclaims.step import Step, is_unknown
from controller.observability.logs import ref
from framework.api import (
    CharpenteError,
    ClaimCondition,
    NodeClaim,
    Quantity,
    format_resources,
    labels,
    parse_quantity,
)

__all__ = ["Launch", "LaunchFailed"]

_log: Final = structlog.get_logger("controller")
_REMEMBERED: Final = timedelta(hours=1)
_LONGEST_MESSAGE: Final = 300


class LaunchFailed(CharpenteError):
    """The provider could not launch now; the claim says why and is tried again."""


@attrs.frozen(kw_only=True)
class _Launched:
    instance: Instance
    until: datetime


class Launch:
    """Launches claims."""

    def __init__(self, provider: Provider, ending: Ending, recorder: Recorder, clock: Clock) -> None:
        """Keep the arguments."""
        self._provider = provider
        self._ending = ending
        self._recorder = recorder
        self._clock = clock
        self._launched: dict[str, _Launched] = {}

    async def advance(self, step: Step) -> Step:
        """Launch an instance if there is none yet."""
        claim = step.claim
        if not is_unknown(claim, ClaimCondition.LAUNCHED):
            self._launched.pop(claim.metadata.uid, None)
            return step
        try:
            instance = await self._instance(claim)
        except InsufficientCapacity as exc:
            self._tell(claim, str(exc))
            return await self._give_up(step, "insufficient_capacity", exc)
        except NodeClassNotReady as exc:
            return await self._give_up(step, "nodeclass_not_ready", exc)
        except CreateFailed as exc:
            return self._try_again(step, exc.reason, exc.message, exc)
        except CloudError as exc:
            return self._try_again(step, "LaunchFailed", str(exc), exc)
        return attrs.evolve(step, claim=self._with_instance(claim, instance))

    async def _instance(self, claim: NodeClaim) -> Instance:
        now = self._clock.now()
        self._launched = {uid: each for uid, each in self._launched.items() if each.until > now}
        known = self._launched.get(claim.metadata.uid)
        if known is not None:
            return known.instance
        instance = await self._provider.create(claim)
        self._launched[claim.metadata.uid] = _Launched(instance=instance, until=now + _REMEMBERED)
        _log.info(
            "launched nodeclaim",
            NodeClaim=ref(claim.name),
            allocatable=format_resources(instance.allocatable),
            **{
                "provider-id": instance.provider_id,
                "instance-type": instance.labels.get(labels.INSTANCE_TYPE, ""),
                "zone": instance.labels.get(labels.ZONE, ""),
                "capacity-type": instance.labels.get(labels.CAPACITY_TYPE, ""),
            },
        )
        return instance

    def _with_instance(self, claim: NodeClaim, instance: Instance) -> NodeClaim:
        metadata = attrs.evolve(
            claim.metadata,
            labels={**instance.labels, **claim.metadata.labels},
            annotations={**claim.metadata.annotations, **instance.annotations},
        )
        status = attrs.evolve(
            claim.status,
            provider_id=instance.provider_id,
            image_id=instance.image_id,
            capacity=_quantities(format_resources(instance.capacity)),
            allocatable=_quantities(format_resources(instance.allocatable)),
        )
        claim = attrs.evolve(claim, metadata=metadata, status=status)
        launched = conditions_of(claim).set_true(ClaimCondition.LAUNCHED, now=self._clock.now())
        return with_conditions(claim, launched)

    async def _give_up(self, step: Step, reason: str, exc: CloudError) -> Step:
        _log.error("nodeclaim cannot be launched", NodeClaim=ref(step.claim.name), error=str(exc))
        await self._ending.delete(step.claim, reason)
        return attrs.evolve(step, deleted=True)

    def _try_again(self, step: Step, reason: str, message: str, exc: CloudError) -> Step:
        conditions = conditions_of(step.claim).set_unknown(
            ClaimCondition.LAUNCHED, reason, _cut(message), now=self._clock.now()
        )
        failure = LaunchFailed(f"NodeClaim/{step.claim.name}: launch failed: {exc}")
        return attrs.evolve(step, claim=with_conditions(step.claim, conditions), failure=failure)

    def _tell(self, claim: NodeClaim, why: str) -> None:
        self._recorder.publish(
            Event(
                regarding=ObjectRef.of(kinds.NODECLAIM, claim.metadata),
                type=EventType.WARNING,
                reason="InsufficientCapacityError",
                message=f"NodeClaim {claim.name} event: {_cut(why)}",
            )
        )


def _cut(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."


def _quantities(wire: dict[str, str]) -> dict[str, Quantity]:
    return {name: parse_quantity(text) for name, text in wire.items()}

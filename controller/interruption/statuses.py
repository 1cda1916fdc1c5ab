"""The `interruption.instancestatus` reconciler: instances that EC2 finds unwell (spec aws/interruption §5).

Run by `charpente run` behind the gate InstanceStatus, with or without a queue. Asks every minute; owns
the events and the deletion of claims whose instance has failed a status check for two minutes or has a
scheduled event. Never touches a node or an instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

import attrs
import structlog
from prometheus_client import Counter

from controller.cloud.aws.errors import AwsDenied
from controller.cloud.aws.gateway import Ec2, Filter
from controller.cloud.aws.gateway.records import StatusRecord
from controller.cloud.aws.providerid import instance_id
from controller.cluster import Shell
from controller.kube import (
    Conflict,
    ControllerSpec,
    Event,
    EventType,
    Key,
    NotFound,
    ObjectRef,
    Requeue,
    kinds,
)
from framework.api import NodeClaim, labels

__all__ = ["InstanceStatusReconciler", "build_statuses"]

_log: Final = structlog.get_logger("controller")
_EVERY: Final = timedelta(minutes=1)
_UNTIL_RESTART: Final = timedelta(days=365)
_IMPAIRED_FOR: Final = timedelta(minutes=2)
_STAMP: Final = "%Y-%m-%dT%H:%M:%SZ"
_QUESTIONS: Final[Mapping[str, Filter]] = {
    "instance_status": Filter("instance-status.status", ("impaired",)),
    "system_status": Filter("system-status.status", ("impaired",)),
    "event_status": Filter(
        "event.code",
        (
            *("instance-reboot", "system-reboot", "system-maintenance"),
            *("instance-retirement", "instance-stop"),
        ),
    ),
}
"""Categories of trouble in the order in which the first counts, and how EC2 is asked for each."""
_FORCED: Final = frozenset({"instance_status", "system_status"})
"""Categories in which the node cannot be expected to drain."""


@attrs.frozen
class _Trouble:
    instance: str
    category: str
    events: tuple[str, ...] = attrs.field(default=(), eq=False)
    """Codes of scheduled events."""


class InstanceStatusReconciler:
    """Asks EC2 which instances are unwell, and ends their claims."""

    name = "interruption.instancestatus"

    def __init__(self, ec2: Ec2, shell: Shell) -> None:
        """Start knowing of no trouble."""
        self._ec2 = ec2
        self._client = shell.client
        self._mirror = shell.mirror
        self._recorder = shell.recorder
        self._clock = shell.clock
        self._seen: frozenset[_Trouble] = frozenset()
        self._unhealthy = Counter(
            "karpenter_interruption_instance_status_unhealthy",
            "Instances found unwell, once per category until they recover",
            ["category"],
            registry=shell.metrics.registry,
        )

    async def reconcile(self, key: Key) -> Requeue:
        """Ask and act. Raises: AwsError, KubeError."""
        del key
        try:
            troubles = await self._ask()
        except AwsDenied as exc:
            _log.error("instance status cannot be watched; not asked again before a restart", error=str(exc))
            return Requeue(_UNTIL_RESTART)
        claims = self._claims_by_instance()
        ours = frozenset(each for each in troubles if each.instance in claims)
        for each in sorted(ours - self._seen, key=lambda trouble: (trouble.instance, trouble.category)):
            self._unhealthy.labels(category=each.category).inc()
        self._seen = ours
        for instance, trouble in _first(troubles).items():
            claim = claims.get(instance)
            if claim is not None:
                await self._end(claim, trouble)
        return Requeue(_EVERY)

    async def _ask(self) -> tuple[_Trouble, ...]:
        """Return the troubles that count, by category in its order, then as EC2 lists them."""
        found = []
        for category, question in _QUESTIONS.items():
            for record in await self._ec2.statuses((question,)):
                if self._counts(record, category):
                    found.append(_Trouble(record.id, category, record.events))
        return tuple(found)

    def _counts(self, record: StatusRecord, category: str) -> bool:
        if category == "event_status":
            return True
        failures = record.system_failures if category == "system_status" else record.instance_failures
        return any(self._clock.now() - since >= _IMPAIRED_FOR for since in failures)

    def _claims_by_instance(self) -> dict[str, NodeClaim]:
        return {
            identifier: claim
            for claim in self._mirror.claims.values()
            if (identifier := instance_id(claim.status.provider_id or "")) and self._mirror.is_ours(claim)
        }

    async def _end(self, claim: NodeClaim, trouble: _Trouble) -> None:
        """Delete the claim; where its node is lost, without waiting for pods and volumes."""
        if claim.deleting:
            return
        try:
            forced = trouble.category in _FORCED
            if forced and labels.TERMINATION_TIMESTAMP not in claim.metadata.annotations:
                stamp = {labels.TERMINATION_TIMESTAMP: self._clock.now().strftime(_STAMP)}
                marked = await self._client.patch(
                    kinds.NODECLAIM, claim.metadata.name, {"metadata": {"annotations": stamp}}
                )
                self._mirror.apply(kinds.NODECLAIM, marked)
            answer = await self._client.delete(kinds.NODECLAIM, claim.metadata.name, uid=claim.metadata.uid)
        except (Conflict, NotFound):
            return
        if answer.get("kind") == kinds.NODECLAIM.kind:
            self._mirror.apply(kinds.NODECLAIM, answer)
        self._tell(claim, trouble)

    def _tell(self, claim: NodeClaim, trouble: _Trouble) -> None:
        regarding = [ObjectRef.of(kinds.NODECLAIM, claim.metadata)]
        regarding += [ObjectRef.of(kinds.NODE, node.metadata) for node in self._mirror.nodes_of(claim)]
        what = {
            "instance_status": "the instance fails EC2's instance checks",
            "system_status": "the instance's host fails EC2's system checks",
        }.get(trouble.category, f"EC2 has scheduled {', '.join(trouble.events)} for the instance")
        message = f"Node is ended: {what}"
        self._recorder.publish(
            *(
                Event(regarding=each, reason="InstanceUnhealthy", type=EventType.WARNING, message=message)
                for each in regarding
            )
        )


def _first(troubles: Iterable[_Trouble]) -> dict[str, _Trouble]:
    """Return the first trouble of each instance."""
    found: dict[str, _Trouble] = {}
    for each in troubles:
        found.setdefault(each.instance, each)
    return found


def build_statuses(ec2: Ec2, shell: Shell) -> tuple[ControllerSpec, ...]:
    """Return the controller."""
    reconciler = InstanceStatusReconciler(ec2, shell)
    return (ControllerSpec(reconciler=reconciler, singleton=True, workers=1),)

"""The `interruption` reconciler: takes nodes out of the way before the cloud does (spec aws/interruption).

Run by `charpente run` on the leader when a queue is set. Reads the queue without pause; owns the events
on claims and nodes, the marks on spot offerings that were taken back, and the deletion of claims, from
which the ordinary termination follows. Never touches a node or an instance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import attrs
import structlog

from controller.cloud.aws.errors import AwsNotFound
from controller.cloud.aws.gateway import Message, Sqs
from controller.cloud.aws.providerid import instance_id
from controller.cloud.aws.unavailable import UnavailableOfferings
from controller.cluster import Shell
from controller.interruption.messages import Interruption, InterruptionKind, Malformed, parse_message
from controller.interruption.metrics import InterruptionMetrics
from controller.kube import (
    NOW,
    ControllerSpec,
    Event,
    EventType,
    Key,
    Kind,
    NotFound,
    ObjectRef,
    Requeue,
    kinds,
)
from controller.scheduling import CapacityType
from framework.api import NodeClaim, ObjectMeta, labels

__all__ = ["InterruptionReconciler", "Queue", "build"]

_log: Final = structlog.get_logger("controller")

_EVENTS: Final[Mapping[InterruptionKind, tuple[str, EventType, str]]] = {
    InterruptionKind.SPOT_INTERRUPTED: (
        "SpotInterrupted",
        EventType.WARNING,
        "Spot interruption warning was triggered",
    ),
    InterruptionKind.REBALANCE_RECOMMENDATION: (
        "SpotRebalanceRecommendation",
        EventType.NORMAL,
        "Spot rebalance recommendation was triggered",
    ),
    InterruptionKind.SCHEDULED_CHANGE: (
        "InstanceUnhealthy",
        EventType.WARNING,
        "An unhealthy warning was triggered for the instance",
    ),
    InterruptionKind.INSTANCE_STOPPED: ("InstanceStopping", EventType.WARNING, "Instance is stopping"),
    InterruptionKind.INSTANCE_TERMINATED: (
        "InstanceTerminating",
        EventType.WARNING,
        "Instance is terminating",
    ),
}


@attrs.frozen(kw_only=True, eq=False)
class Queue:
    """The queue, and what its messages teach the provider."""

    given: str
    """As the operator gave it: a name, an ARN or a URL; empty for none."""
    sqs: Sqs
    unavailable: UnavailableOfferings

    @property
    def address(self) -> tuple[str, str | None]:
        """Return the queue's name and, from an ARN or a URL, the account it belongs to."""
        parts = self.given.strip().rstrip("/").replace("/", ":").split(":")
        account = parts[-2] if len(parts) > 1 and parts[-2].isdigit() else None
        return parts[-1], account


@attrs.frozen(kw_only=True, eq=False)
class _Batch:
    """The messages of one answer share what they look up, and end a node only once."""

    claims: Mapping[str, NodeClaim]
    """By instance id."""
    ended: set[str] = attrs.field(factory=set)


class InterruptionReconciler:
    """Reads a batch of messages and acts on each."""

    name = "interruption"

    def __init__(self, queue: Queue, shell: Shell) -> None:
        """Ask for the queue's URL only when it is needed, so that a wrong name is retried."""
        self._queue = queue
        self._client = shell.client
        self._mirror = shell.mirror
        self._recorder = shell.recorder
        self._metrics = shell.metrics
        self._own = InterruptionMetrics(shell.metrics.registry)
        self._clock = shell.clock
        self._url: str | None = None

    async def reconcile(self, key: Key) -> Requeue:
        """Wait for messages, act on them side by side, and come back at once.

        Raises: AwsError; the queue's given name is in the text.
        """
        del key
        url = await self._find_url()
        messages = await self._queue.sqs.receive(url)
        if messages:
            batch = _Batch(claims=self._claims_by_instance())
            async with asyncio.TaskGroup() as group:
                for message in messages:
                    group.create_task(self._take(url, message, batch))
        return NOW

    async def _find_url(self) -> str:
        if self._url is None:
            try:
                self._url = await self._queue.sqs.queue_url(*self._queue.address)
            except AwsNotFound as exc:
                text = f"INTERRUPTION_QUEUE: {self._queue.given!r} names no queue of this account and region"
                text += "; correct it"
                raise AwsNotFound(exc.operation, exc.code, text) from exc
        return self._url

    def _claims_by_instance(self) -> dict[str, NodeClaim]:
        found = {}
        for claim in self._mirror.claims.values():
            identifier = instance_id(claim.status.provider_id or "")
            if identifier is not None:
                found[identifier] = claim
        return found

    async def _take(self, url: str, message: Message, batch: _Batch) -> None:
        """Act on one message and remove it; one that could not be acted on comes back by itself."""
        try:
            interruption = parse_message(message.body)
        except Malformed as exc:
            _log.error("dropped a message that is no event", error=str(exc))
        else:
            self._own.received.labels(message_type=interruption.kind.value).inc()
            try:
                await self._act(interruption, batch)
            except Exception as exc:  # noqa: BLE001 - one message's trouble must not stop the others
                _log.error("message could not be acted on", kind=interruption.kind.value, error=str(exc))
                return
            self._observe(interruption)
        await self._queue.sqs.delete(url, message.receipt)
        self._own.deleted.inc()

    def _observe(self, interruption: Interruption) -> None:
        if interruption.at is not None and interruption.kind is not InterruptionKind.NO_OP:
            waited = self._clock.now() - interruption.at
            self._own.waited.observe(max(waited, timedelta()).total_seconds())

    async def _act(self, interruption: Interruption, batch: _Batch) -> None:
        for identifier in interruption.instance_ids:
            claim = batch.claims.get(identifier)
            if claim is not None:
                self._publish(claim, *_EVENTS[interruption.kind])
                if interruption.kind is InterruptionKind.SPOT_INTERRUPTED:
                    self._mark_offering(claim)
                ending = claim.metadata.deletion_timestamp is not None or identifier in batch.ended
                if interruption.kind.ends_node and not ending:
                    batch.ended.add(identifier)
                    await self._delete(interruption.kind, claim)

    async def _delete(self, kind: InterruptionKind, claim: NodeClaim) -> None:
        try:
            answer = await self._client.delete(kinds.NODECLAIM, claim.metadata.name, uid=claim.metadata.uid)
        except NotFound:
            return
        if answer.get("kind") == kinds.NODECLAIM.kind:
            self._mirror.apply(kinds.NODECLAIM, answer)
        text = "Interruption triggered termination"
        self._publish(claim, "TerminatingOnInterruption", EventType.WARNING, text)
        self._metrics.claims.disrupted.labels(
            reason=kind.value,
            nodepool=claim.metadata.labels.get(labels.NODEPOOL, ""),
            capacity_type=claim.metadata.labels.get(labels.CAPACITY_TYPE, ""),
        ).inc()

    def _mark_offering(self, claim: NodeClaim) -> None:
        found = claim.metadata.labels
        instance_type, zone = found.get(labels.INSTANCE_TYPE), found.get(labels.ZONE)
        if instance_type and zone:
            self._queue.unavailable.mark(CapacityType.SPOT, instance_type, zone)

    def _publish(self, claim: NodeClaim, reason: str, type: EventType, message: str) -> None:
        subjects: list[tuple[Kind, ObjectMeta]] = [(kinds.NODECLAIM, claim.metadata)]
        subjects += [(kinds.NODE, node.metadata) for node in self._mirror.nodes_of(claim)]
        self._recorder.publish(
            *(
                Event(regarding=ObjectRef.of(kind, metadata), reason=reason, type=type, message=message)
                for kind, metadata in subjects
            )
        )


def build(queue: Queue, shell: Shell) -> tuple[ControllerSpec, ...]:
    """Return the controller, or nothing when no queue is set."""
    if not queue.given.strip():
        return ()
    return (ControllerSpec(reconciler=InterruptionReconciler(queue, shell), singleton=True, workers=1),)

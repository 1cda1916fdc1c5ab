"""What the cloud announces through the queue: one value per message (spec aws/interruption §3).

Called by the `interruption` reconciler. Pure: the text of a message in, an `Interruption` out. Whatever
it does not know is a no-op, since the rules send every instance's events and AWS adds kinds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import attrs

__all__ = ["Interruption", "InterruptionKind", "Malformed", "parse_message"]


class InterruptionKind(StrEnum):
    """The kinds of message; the values are those of the metrics."""

    SPOT_INTERRUPTED = "spot_interrupted"
    REBALANCE_RECOMMENDATION = "rebalance_recommendation"
    SCHEDULED_CHANGE = "scheduled_change"
    INSTANCE_STOPPED = "instance_stopped"
    INSTANCE_TERMINATED = "instance_terminated"
    NO_OP = "no_op"

    @property
    def ends_node(self) -> bool:
        """Return whether the node has to go."""
        return self not in (InterruptionKind.REBALANCE_RECOMMENDATION, InterruptionKind.NO_OP)


class Malformed(Exception):
    """The message is not an event; it is dropped."""


@attrs.frozen(kw_only=True)
class Interruption:
    """One announcement."""

    kind: InterruptionKind
    instance_ids: tuple[str, ...] = ()
    at: datetime | None = None
    """When the event happened."""


_Reader = Callable[[Mapping[str, Any]], tuple[InterruptionKind, tuple[str, ...]]]
_NOTHING: Final[tuple[InterruptionKind, tuple[str, ...]]] = (InterruptionKind.NO_OP, ())
_STATES: Final = {
    "stopping": InterruptionKind.INSTANCE_STOPPED,
    "stopped": InterruptionKind.INSTANCE_STOPPED,
    "shutting-down": InterruptionKind.INSTANCE_TERMINATED,
    "terminated": InterruptionKind.INSTANCE_TERMINATED,
}


def _instance(detail: Mapping[str, Any]) -> tuple[str, ...]:
    identifier = detail.get("instance-id")
    return (identifier,) if isinstance(identifier, str) and identifier else ()


def _spot(detail: Mapping[str, Any]) -> tuple[InterruptionKind, tuple[str, ...]]:
    return InterruptionKind.SPOT_INTERRUPTED, _instance(detail)


def _rebalance(detail: Mapping[str, Any]) -> tuple[InterruptionKind, tuple[str, ...]]:
    return InterruptionKind.REBALANCE_RECOMMENDATION, _instance(detail)


def _health(detail: Mapping[str, Any]) -> tuple[InterruptionKind, tuple[str, ...]]:
    if detail.get("service") != "EC2" or detail.get("eventTypeCategory") != "scheduledChange":
        return _NOTHING
    entities = detail.get("affectedEntities") or ()
    ids = tuple(str(entity["entityValue"]) for entity in entities if entity.get("entityValue"))
    return InterruptionKind.SCHEDULED_CHANGE, ids


def _state(detail: Mapping[str, Any]) -> tuple[InterruptionKind, tuple[str, ...]]:
    kind = _STATES.get(str(detail.get("state", "")).lower())
    return _NOTHING if kind is None else (kind, _instance(detail))


_READERS: Final[Mapping[tuple[str, str, str], _Reader]] = {
    ("0", "aws.ec2", "EC2 Spot Instance Interruption Warning"): _spot,
    ("0", "aws.ec2", "EC2 Instance Rebalance Recommendation"): _rebalance,
    ("0", "aws.health", "AWS Health Event"): _health,
    ("0", "aws.ec2", "EC2 Instance State-change Notification"): _state,
}


def parse_message(body: str) -> Interruption:
    """Return what a message announces. Raises: Malformed when it is not an event at all."""
    try:
        event = json.loads(body)
    except ValueError as exc:
        raise Malformed(f"not JSON: {exc}") from exc
    if not isinstance(event, dict):
        raise Malformed(f"a JSON {type(event).__name__}, not an event")
    reader = _READERS.get(
        (str(event.get("version")), str(event.get("source")), str(event.get("detail-type")))
    )
    detail = event.get("detail")
    kind, ids = reader(detail) if reader is not None and isinstance(detail, dict) else _NOTHING
    return Interruption(kind=kind, instance_ids=ids, at=_instant(event.get("time")))


def _instant(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None

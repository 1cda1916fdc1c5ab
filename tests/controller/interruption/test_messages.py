from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from controller.interruption.messages import Interruption, InterruptionKind, Malformed, parse_message


def an_event(detail_type: str, detail: dict[str, Any], source: str = "aws.ec2", **more: Any) -> str:
    return json.dumps(
        {
            "version": "0",
            "source": source,
            "detail-type": detail_type,
            "time": "2026-06-01T12:00:00Z",
            "detail": detail,
            **more,
        }
    )


STATE = "EC2 Instance State-change Notification"
HEALTH = {
    "service": "EC2",
    "eventTypeCategory": "scheduledChange",
    "affectedEntities": [{"entityValue": "i-1"}, {"entityValue": "i-2"}],
}


@pytest.mark.parametrize(
    ("body", "kind", "ids"),
    [
        (
            an_event("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}),
            InterruptionKind.SPOT_INTERRUPTED,
            ("i-1",),
        ),
        (
            an_event("EC2 Instance Rebalance Recommendation", {"instance-id": "i-1"}),
            InterruptionKind.REBALANCE_RECOMMENDATION,
            ("i-1",),
        ),
        (
            an_event("AWS Health Event", HEALTH, "aws.health"),
            InterruptionKind.SCHEDULED_CHANGE,
            ("i-1", "i-2"),
        ),
        (
            an_event("AWS Health Event", {**HEALTH, "service": "RDS"}, "aws.health"),
            InterruptionKind.NO_OP,
            (),
        ),
        (
            an_event("AWS Health Event", {**HEALTH, "eventTypeCategory": "issue"}, "aws.health"),
            InterruptionKind.NO_OP,
            (),
        ),
        (
            an_event(STATE, {"instance-id": "i-1", "state": "Stopping"}),
            InterruptionKind.INSTANCE_STOPPED,
            ("i-1",),
        ),
        (
            an_event(STATE, {"instance-id": "i-1", "state": "shutting-down"}),
            InterruptionKind.INSTANCE_TERMINATED,
            ("i-1",),
        ),
        (an_event(STATE, {"instance-id": "i-1", "state": "running"}), InterruptionKind.NO_OP, ()),
        (an_event(STATE, {"state": "stopped"}, version="1"), InterruptionKind.NO_OP, ()),
        (an_event("Something New", {"instance-id": "i-1"}), InterruptionKind.NO_OP, ()),
        ("{}", InterruptionKind.NO_OP, ()),
    ],
)
def test_each_kind_is_read_as_what_it_announces(
    body: str, kind: InterruptionKind, ids: tuple[str, ...]
) -> None:
    found = parse_message(body)

    assert (found.kind, found.instance_ids) == (kind, ids)


def test_the_time_of_the_event_is_kept() -> None:
    found = parse_message(an_event(STATE, {"instance-id": "i-1", "state": "stopped"}))

    assert found == Interruption(
        kind=InterruptionKind.INSTANCE_STOPPED,
        instance_ids=("i-1",),
        at=datetime(2026, 6, 1, 12, tzinfo=UTC),
    )


@pytest.mark.parametrize("body", ["", "not json", "[]", '"text"'])
def test_what_is_no_event_is_malformed(body: str) -> None:
    with pytest.raises(Malformed):
        parse_message(body)

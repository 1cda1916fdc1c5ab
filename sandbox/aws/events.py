"""Events of AWS services, delivered through the account's own EventBridge rules to their targets.

Instance state changes come from `ec2.states`, interruptions from the control endpoints. moto accepts
`aws.*` sources where AWS would refuse them from users: here the sandbox is AWS.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from moto.events import events_backends

from sandbox.aws.world import ACCOUNT, World

__all__ = ["emit", "instance_arn", "state_changed"]


def instance_arn(region: str, instance_id: str) -> str:
    """Return the ARN of an instance of the account."""
    return f"arn:aws:ec2:{region}:{ACCOUNT}:instance/{instance_id}"


def emit(
    world: World,
    region: str,
    detail_type: str,
    detail: Mapping[str, Any],
    *,
    source: str = "aws.ec2",
    resources: Sequence[str] = (),
) -> None:
    """Put one event on the default bus of a region, unless no rule could take it."""
    backend = events_backends[ACCOUNT][region]
    if not backend.describe_event_bus("default").rules:
        return
    entry = {
        "Source": source,
        "DetailType": detail_type,
        "Detail": json.dumps(detail),
        "Resources": list(resources),
        "Time": world.now().timestamp(),
    }
    with world.lock:
        backend.put_events([entry])


def state_changed(world: World, region: str, instance_id: str, state: str) -> None:
    """Raise EC2's state-change notification for an instance."""
    emit(
        world,
        region,
        "EC2 Instance State-change Notification",
        {"instance-id": instance_id, "state": state},
        resources=[instance_arn(region, instance_id)],
    )

"""Tells the owners of headroom when there is no room to be had for it (design: SchedulingConfig, headroom).

Called by the provisioner after each plan. Virtual pods do not exist, so their failures are told on the
SchedulingConfig or CapacityBuffer that asked for the room. Pure; returns events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from controller.kube import Event, EventType, ObjectRef, kinds
from controller.scheduling import Plan, Pod, Snapshot, Unplaced, headroom_owner, is_virtual

__all__ = ["shortfalls"]

_DEDUPE: Final = timedelta(minutes=5)


def shortfalls(snapshot: Snapshot, pods: Mapping[str, Pod], plan: Plan) -> Iterator[Event]:
    """Yield one event per owner whose virtual pods fit nowhere, with the first one's reason."""
    lacking: dict[str, list[Unplaced]] = {}
    for unplaced in plan.unplaced:
        pod = pods.get(unplaced.pod_uid)
        if pod is not None and is_virtual(pod) and not unplaced.retryable:
            lacking.setdefault(headroom_owner(pod), []).append(unplaced)
    owners = _owners(snapshot)
    for name, found in sorted(lacking.items()):
        if name in owners:
            yield Event(
                regarding=owners[name],
                type=EventType.WARNING,
                reason="HeadroomUnavailable",
                message=f"No room for {len(found)} virtual pod(s), {found[0].reason.short()}",
                dedupe_for=_DEDUPE,
            )


def _owners(snapshot: Snapshot) -> Mapping[str, ObjectRef]:
    configs = {
        f"SchedulingConfig/{each.name}": ObjectRef.of(kinds.SCHEDULINGCONFIG, each.metadata)
        for each in snapshot.scheduling_configs
    }
    buffers = {
        f"CapacityBuffer/{each.key}": ObjectRef(
            kind=kinds.CAPACITYBUFFER, name=each.name, namespace=each.namespace, uid=each.uid
        )
        for each in snapshot.buffers
    }
    return configs | buffers

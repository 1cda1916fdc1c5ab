"""Headroom of SchedulingConfigs becomes virtual pods."""

from __future__ import annotations

from typing import Any

import pytest

from controller.scheduling import (
    Buffer,
    Objective,
    Options,
    Snapshot,
    headroom_owner,
    headroom_pods,
    is_virtual,
)
from framework.api import SchedulingConfig, labels
from tests.controller.scheduling.builders import (
    CLASS_REF,
    NOW,
    a_node,
    a_pod,
    a_pool,
    a_problem,
    pods,
    solved,
)


def a_config(**headroom: Any) -> SchedulingConfig:
    entry = {"name": "spare", "podTemplate": {"resources": {"requests": {"cpu": "1"}}}, **headroom}
    spec = {"nodeClassRef": CLASS_REF, "headroom": [entry]}
    return SchedulingConfig.from_wire({"metadata": {"name": "c", "uid": "c"}, "spec": spec})


def a_snapshot(config: SchedulingConfig, **more: Any) -> Snapshot:
    return Snapshot(now=NOW, pools=(a_pool(),), scheduling_configs=(config,), **more)


def test_replicas_are_virtual_pods_that_open_nodes() -> None:
    config = a_config(replicas=3)
    spare = headroom_pods(a_snapshot(config))

    plan = solved(a_problem([*pods(1, cpu="1"), *spare], scheduling_configs=(config,)))

    assert len(spare) == 3
    assert all(is_virtual(pod) for pod in spare)
    assert plan.claims[0].requests["cpu"] == 4000


def test_percent_is_of_what_pods_on_governed_nodes_request_rounded_up() -> None:
    running = tuple(a_pod(f"r{n}", cpu="1", node="n1") for n in range(3))

    spare = headroom_pods(a_snapshot(a_config(percent=50), nodes=(a_node("n1", pods=running),)))

    assert len(spare) == 2


@pytest.mark.parametrize(("schedule", "open_now"), [("0 9 * * *", True), ("0 11 * * *", False)])
def test_a_schedule_keeps_room_only_in_its_window(schedule: str, open_now: bool) -> None:
    spare = headroom_pods(a_snapshot(a_config(replicas=1, schedule=schedule, duration="2h")))

    assert bool(spare) is open_now


@pytest.mark.parametrize("objective", list(Objective))
def test_pods_that_exist_come_before_room_kept_free(objective: Objective) -> None:
    zone = [{"key": labels.ZONE, "operator": "In", "values": ["z-a"]}]
    config = a_config(replicas=1, requirements=zone)
    real = a_pod("real", cpu="500m", nodeSelector={labels.ZONE: "z-b"})
    spare = headroom_pods(a_snapshot(config))

    plan = solved(
        a_problem(
            [*spare, real],
            pools=[a_pool(limits={"nodes": "1"})],
            scheduling_configs=(config,),
            options=Options(objective=objective),
        )
    )

    assert [claim.pod_keys for claim in plan.claims] == [(real.key,)]
    assert [each.pod_uid for each in plan.unplaced] == [spare[0].uid]


def test_buffers_are_virtual_pods_of_their_template_without_its_volumes() -> None:
    sample = a_pod("sample", cpu="2", nodeSelector={labels.ZONE: "z-b"})
    buffer = Buffer(namespace="shop", name="b", uid="u", sample=sample, replicas=2)

    spare = headroom_pods(Snapshot(now=NOW, buffers=(buffer,)))

    assert [(pod.name, pod.uid) for pod in spare] == [
        ("capacity-buffer-b-1", "u-1"),
        ("capacity-buffer-b-2", "u-2"),
    ]
    assert spare[0].requests == sample.requests
    assert {headroom_owner(pod) for pod in spare} == {"CapacityBuffer/shop/b"}

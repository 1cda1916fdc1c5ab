"""The sample of a DaemonSet asks for what its pods will be admitted with."""

from __future__ import annotations

from typing import Any

import pytest

from controller.kube import kinds
from controller.scheduling import Resources
from tests.controller.fakes.world import World


@pytest.fixture
def world() -> World:
    return World()


def _limit(world: World, name: str, **item: Any) -> None:
    meta = {"name": name, "namespace": "mon"}
    world.api.put(
        kinds.LIMITRANGE,
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": [item]}},
    )


def _requests(world: World, resources: dict[str, Any] | None = None) -> Resources:
    if resources is not None:
        container = {"name": "agent", "image": "agent", "resources": resources}
        daemonset = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent", "namespace": "mon"},
            "spec": {"template": {"spec": {"containers": [container]}}},
        }
        world.api.put(kinds.DAEMONSET, daemonset)
    (sample,) = world.mirror.snapshot(world.clock.now()).daemonsets
    return sample.requests


@pytest.mark.parametrize(
    ("resources", "limits", "cpu_milli"),
    [
        ({}, [{"type": "Container", "defaultRequest": {"cpu": "1"}}], 1000),
        ({}, [{"type": "Container", "default": {"cpu": "2"}}], 2000),
        ({"limits": {"cpu": "3"}}, [{"type": "Container", "defaultRequest": {"cpu": "1"}}], 3000),
        ({"requests": {"cpu": "4"}}, [{"type": "Container", "defaultRequest": {"cpu": "1"}}], 4000),
        ({}, [{"type": "Pod", "defaultRequest": {"cpu": "1"}}], 0),
        ({}, [{"type": "Container", "defaultRequest": {"cpu": c}} for c in ("1", "2")], 1000),
    ],
    ids=["default request", "default limit", "own limit", "own request", "other type", "first by name"],
)
def test_missing_requests_come_from_limits_then_from_the_namespace(
    world: World, resources: dict[str, Any], limits: list[dict[str, Any]], cpu_milli: int
) -> None:
    for number, item in enumerate(limits):
        _limit(world, f"limits-{number}", **item)

    assert _requests(world, resources).get("cpu", 0) == cpu_milli


def test_a_new_limit_range_changes_the_sample(world: World) -> None:
    before = _requests(world, {})

    _limit(world, "late", type="Container", defaultRequest={"memory": "1Gi"})

    assert "memory" not in before
    assert _requests(world)["memory"] == 2**30

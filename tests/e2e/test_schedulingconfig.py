"""The founding SchedulingConfig takes effect; headroom makes nodes, keeps them, and gives way to pods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from framework.api import labels
from sandbox.kubernetes import Object
from sandbox.workloads import Workload
from tests.e2e.world import POOLS, World

pytestmark = pytest.mark.e2e

CONFIG = "/apis/karpenter.sh/v1/schedulingconfigs/default"
TOLERATION = {"key": "team", "operator": "Equal", "value": "wide", "effect": "NoSchedule"}
SIZE = {"cpu": "1", "memory": "512Mi"}
ROOM = {"name": "spare", "replicas": 1, "podTemplate": {"resources": {"requests": SIZE}}}


def _wide_pool(like: Object) -> Object:
    """A pool of its own that leaves architecture and capacity type open."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "wide"},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": like["spec"]["template"]["spec"]["nodeClassRef"],
                    "requirements": [],
                    "taints": [{"key": "team", "value": "wide", "effect": "NoSchedule"}],
                }
            }
        },
    }


def test_the_founding_config_narrows_every_pool_of_its_class(world: World) -> None:
    world.api.create(POOLS, _wide_pool(world.api.get(f"{POOLS}/default")))
    selector = {labels.NODEPOOL: "wide"}
    wide = Workload(name="wide", replicas=2, node_selector=selector, tolerations=(TOLERATION,))

    world.deploy(wide)
    world.wait_running(wide)

    kinds = {
        (node["metadata"]["labels"][labels.ARCH], node["metadata"]["labels"][labels.CAPACITY_TYPE])
        for node in world.nodes()
    }
    assert kinds == {("amd64", "on-demand")}
    status = world.api.get(CONFIG)["status"]
    assert status["nodePools"] == ["default", "wide"]
    assert {c["type"]: c["status"] for c in status["conditions"]} == {"Ready": "True"}


@pytest.fixture
def headroom(world: World) -> Iterator[None]:
    world.api.merge(CONFIG, {"spec": {"headroom": [ROOM]}})
    yield
    world.api.merge(CONFIG, {"spec": {"headroom": None}})


@pytest.mark.usefixtures("headroom")
def test_headroom_makes_a_node_that_pods_take_and_is_made_anew(world: World) -> None:
    world.wait("a node nobody asked for", lambda: _ready(world))
    (first,) = _ready(world)
    world.wait("the empty node is kept", lambda: _kept(world))
    web = Workload(name="web", **SIZE)

    world.deploy(web)
    world.wait_running(web, 20)

    (pod,) = world.pods("web")
    assert pod["spec"]["nodeName"] == first
    world.wait("room for the next", lambda: _ready(world) > {first})


def _ready(world: World) -> set[str]:
    """Names of the nodes that pods may be bound to."""
    return {
        node["metadata"]["name"]
        for node in world.nodes()
        if node["metadata"]["labels"].get(labels.INITIALIZED) == "true"
    }


def _kept(world: World) -> bool:
    return any("headroom" in event["message"] for event in world.events("Unconsolidatable"))

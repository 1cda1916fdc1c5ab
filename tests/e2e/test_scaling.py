"""Pods get the nodes they need, and no others; the nodes go when the pods go."""

from __future__ import annotations

import pytest

from framework.api import labels
from sandbox.kubernetes import Object
from sandbox.workloads import Workload
from tests.e2e.world import POOLS, World

pytestmark = pytest.mark.e2e


def _tainted_pool(name: str, like: Object) -> Object:
    template = like["spec"]["template"]["spec"]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "metadata": {"labels": {"team": name}},
                "spec": {
                    "nodeClassRef": template["nodeClassRef"],
                    "requirements": template["requirements"],
                    "taints": [{"key": "team", "value": name, "effect": "NoSchedule"}],
                },
            }
        },
    }


def test_pending_pods_get_nodes_and_run(world: World) -> None:
    web = Workload(name="web", replicas=20)

    world.deploy(web)
    world.wait_running(web)

    claims = world.claims()
    assert {claim["metadata"]["labels"][labels.NODEPOOL] for claim in claims} == {"default"}
    assert {node["spec"]["providerID"] for node in world.nodes()} == {
        claim["status"]["providerID"] for claim in claims
    }
    assert len(world.launched()) == len(claims)


def test_pods_spread_over_zones_get_nodes_in_each(world: World) -> None:
    spread = Workload(name="spread", replicas=6, spread_over=labels.ZONE)

    world.deploy(spread)
    world.wait_running(spread)

    zone_of = {node["metadata"]["name"]: node["metadata"]["labels"][labels.ZONE] for node in world.nodes()}
    per_zone: dict[str, int] = {}
    for pod in world.pods("spread"):
        zone = zone_of[pod["spec"]["nodeName"]]
        per_zone[zone] = per_zone.get(zone, 0) + 1
    assert len(per_zone) >= 2
    assert max(per_zone.values()) - min(per_zone.values()) <= 1


def test_only_pods_that_tolerate_a_pools_taint_use_it(world: World) -> None:
    world.api.create(POOLS, _tainted_pool("batch", world.api.get(f"{POOLS}/default")))
    batch = Workload(
        name="batch",
        replicas=2,
        node_selector={"team": "batch"},
        tolerations=({"key": "team", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},),
    )
    intruder = Workload(name="intruder", node_selector={"team": "batch"})

    world.deploy(batch)
    world.deploy(intruder)
    world.wait_running(batch)

    assert {claim["metadata"]["labels"][labels.NODEPOOL] for claim in world.claims()} == {"batch"}
    world.wait(
        "the intruder is told which taint it does not tolerate",
        lambda: [
            event
            for event in world.events("FailedScheduling")
            if event["involvedObject"]["name"].startswith("intruder-")
            and event.get("source", {}).get("component") == "karpenter"
            and "team=batch:NoSchedule" in event["message"]
        ],
    )
    assert world.running("intruder") == 0


def test_a_pod_no_node_can_hold_is_refused_with_the_reason(world: World) -> None:
    world.deploy(Workload(name="giant", cpu="1000"))

    world.wait(
        "an event that names the resource",
        lambda: [
            event
            for event in world.events("FailedScheduling")
            if event["involvedObject"]["name"].startswith("giant-")
            and event.get("source", {}).get("component") == "karpenter"
            and "cpu" in event["message"]
        ],
    )

    assert world.claims() == []


def test_nodes_go_when_their_pods_go(world: World) -> None:
    web = Workload(name="web", replicas=4)
    world.deploy(web)
    world.wait_running(web)
    assert world.launched()

    world.scale("web", 0)

    world.wait("no claim left", lambda: not world.claims(), 120)
    world.wait("no instance left", lambda: not world.launched())

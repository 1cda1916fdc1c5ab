"""Whatever disappears, the pods run again and nothing is left behind or launched twice."""

from __future__ import annotations

import pytest

from sandbox.aws.faults import Fault
from sandbox.workloads import Workload
from tests.e2e.world import NODES, World

pytestmark = pytest.mark.e2e


def test_a_node_deleted_by_hand_is_drained_and_replaced(world: World) -> None:
    web = Workload(name="web", replicas=2)
    world.deploy(web)
    world.wait_running(web)
    (node,) = world.nodes()
    instances = world.launched()

    world.api.delete(f"{NODES}/{node['metadata']['name']}")

    world.wait(
        "the node is gone",
        lambda: node["metadata"]["uid"] not in {n["metadata"]["uid"] for n in world.nodes()},
        120,
    )
    world.wait_running(web, 120)
    world.wait("the old instance is ended", lambda: not instances & world.launched())


def test_an_instance_terminated_behind_our_back_is_replaced(world: World) -> None:
    web = Workload(name="web", replicas=2)
    world.deploy(web)
    world.wait_running(web)
    (claim,) = world.claims()
    (instance,) = world.launched()

    world.ec2.terminate_instances(InstanceIds=[instance])

    world.wait(
        "the old claim is gone",
        lambda: claim["metadata"]["name"] not in {c["metadata"]["name"] for c in world.claims()},
        240,
    )
    world.wait_running(web, 120)
    assert instance not in world.launched()


def test_a_controller_killed_between_launch_and_write_back_launches_once(world: World) -> None:
    world.control.add_fault(Fault(service="ec2", action="CreateFleet", withheld_seconds=15.0, count=1))
    began = len(world.control.requests(action="CreateFleet"))
    web = Workload(name="web", replicas=2)
    world.deploy(web)
    # The fleet has launched, its answer is held back: the claim cannot know its instance yet.
    world.wait("an instance runs", lambda: world.launched())
    assert not any(claim.get("status", {}).get("providerID") for claim in world.claims())

    world.kill_leader()

    world.wait_running(web, 120)
    world.wait("every instance has its claim", lambda: len(world.launched()) == len(world.claims()) == 1, 120)
    assert len(world.control.requests(action="CreateFleet")) > began

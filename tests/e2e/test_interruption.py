"""The cloud announces that it takes an instance back: the pods are elsewhere before it does."""

from __future__ import annotations

import pytest

from sandbox.workloads import Workload
from tests.e2e.world import World

pytestmark = pytest.mark.e2e


def test_a_spot_warning_moves_the_pods_before_the_instance_goes(world: World) -> None:
    web = Workload(name="web", replicas=2)
    world.deploy(web)
    world.wait_running(web)
    (claim,) = world.claims()
    (instance,) = world.launched()

    world.control.interrupt([instance], notice_seconds=120)

    world.wait(
        "the claim is ending",
        lambda: (
            claim["metadata"]["uid"]
            not in {c["metadata"]["uid"] for c in world.claims() if "deletionTimestamp" not in c["metadata"]}
        ),
        30,
    )
    world.wait("the old instance is ended", lambda: instance not in world.launched(), 110)
    world.wait_running(web, 60)
    assert world.events("SpotInterrupted")

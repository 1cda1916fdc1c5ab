"""When the cheapest type is sold out, the pods get the next one at once."""

from __future__ import annotations

import pytest

from framework.api import labels
from sandbox.aws.faults import Shortage
from sandbox.workloads import Workload
from tests.e2e.world import World

pytestmark = pytest.mark.e2e


def test_a_sold_out_type_is_replaced_by_another(world: World) -> None:
    first = Workload(name="first", replicas=1)
    world.deploy(first)
    world.wait_running(first)
    (claim,) = world.claims()
    cheapest = claim["metadata"]["labels"][labels.INSTANCE_TYPE]
    world.scale("first", 0)
    world.wait("no claim left", lambda: not world.claims(), 120)
    world.control.add_shortage(Shortage(instance_type=cheapest))
    second = Workload(name="second", replicas=1)

    world.deploy(second)
    world.wait_running(second)

    types = {claim["metadata"]["labels"][labels.INSTANCE_TYPE] for claim in world.claims()}
    assert types
    assert cheapest not in types

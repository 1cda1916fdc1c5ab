"""What the provider makes of an EC2 that fails in parts (issue 6, "Done when"), against the local AWS."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from random import Random

import pytest

from controller.clock import SystemClock
from controller.cloud import InsufficientCapacity
from controller.cloud.aws import Surroundings
from controller.cloud.aws.building import assemble
from controller.cloud.aws.gateway import Filter
from controller.cloud.aws.metrics import AwsMetrics
from controller.kube import Key, kinds
from controller.observability.metrics import Metrics
from framework.api import labels
from sandbox.aws.faults import Fault, Shortage
from tests.controller.cloud.aws.builders import claim_wire, node_class_wire
from tests.controller.cloud.aws.conftest import SETTINGS, Running, World
from tests.controller.fakes.objects import a_claim
from tests.controller.fakes.world import World as Cluster

pytestmark = pytest.mark.sandbox

ON_DEMAND = (labels.CAPACITY_TYPE, ["on-demand"])
BOTH = (labels.CAPACITY_TYPE, ["on-demand", "spot"])
LARGE = (labels.INSTANCE_TYPE, ["m5.large", "m6i.large"])


async def test_a_zone_without_capacity_is_left_out_until_it_may_have_some_again(world: World) -> None:
    node_class = await world.resolve()
    world.control.add_shortage(Shortage(zone="eu-west-2a"))
    in_a = (labels.ZONE, ["eu-west-2a"])

    with pytest.raises(InsufficientCapacity):
        await world.operator.provider.create(world.claim(claim_wire("web-1", ON_DEMAND, LARGE, in_a)))
    other = await world.operator.provider.create(world.claim(claim_wire("web-2", ON_DEMAND, LARGE)))

    assert other.labels[labels.ZONE] != "eu-west-2a"
    for name in LARGE[1]:
        kind = world.operator.parts.types.find(node_class, name)
        assert kind is not None
        off = {o.zone for o in kind.offerings if o.capacity_type == "on-demand" and not o.available}
        assert "eu-west-2a" in off
        assert not {"eu-west-2b", "eu-west-2c"} & off


async def test_spot_that_is_sold_out_everywhere_gives_way_to_on_demand(world: World) -> None:
    await world.resolve()
    world.control.add_shortage(Shortage(capacity_type="spot"))

    with pytest.raises(InsufficientCapacity):
        await world.operator.provider.create(world.claim(claim_wire("web-1", BOTH, LARGE)))
    second = await world.operator.provider.create(world.claim(claim_wire("web-2", BOTH, LARGE)))

    assert second.labels[labels.CAPACITY_TYPE] == "on-demand"


async def test_slow_describes_hold_up_nobody_else(world: World) -> None:
    await world.resolve()
    claims = [world.claim(claim_wire(f"web-{number}", ON_DEMAND, LARGE)) for number in range(20)]
    made = await asyncio.gather(*(world.operator.provider.create(claim) for claim in claims))
    world.control.add_fault(Fault(service="ec2", action="DescribeInstances", delay_seconds=1.0))
    instances = world.operator.parts.instances

    started = time.monotonic()
    reading = asyncio.gather(
        *(instances.get(each.provider_id.rpartition("/")[2], fresh=True) for each in made)
    )
    launched = await world.operator.provider.create(world.claim(claim_wire("late", ON_DEMAND, LARGE)))
    seen_before = reading.done()
    found = await reading

    assert launched.provider_id
    assert not seen_before, "the launch waited for the slow answers"
    assert all(found)
    assert time.monotonic() - started < 10, "twenty readers waited for one answer, not for twenty"


async def test_an_instance_that_ec2_does_not_know_yet_is_asked_for_again(world: World) -> None:
    await world.resolve()
    made = await world.operator.provider.create(world.claim(claim_wire("web-1", ON_DEMAND, LARGE)))
    world.control.add_fault(
        Fault(
            service="ec2", action="DescribeInstances", code="InvalidInstanceID.NotFound", status=400, count=1
        )
    )

    found = await world.operator.parts.instances.get(made.provider_id.rpartition("/")[2], fresh=True)

    assert found is not None
    assert found.state in ("pending", "running")


async def test_an_instance_that_never_joins_is_ended_with_its_claim(running: Running, world: World) -> None:
    cluster = Cluster()
    cluster.api.objects.clear()
    around = Surroundings(
        client=cluster.shell.client,
        mirror=cluster.mirror,
        recorder=cluster.shell.recorder,
        clock=SystemClock(),
        random=Random(7),  # noqa: S311 - names, not secrets
        registry=Metrics().registry,
        server_version=_version,
    )
    operator = assemble(SETTINGS, running.aws, around, AwsMetrics(around.registry), dns_ip=None)
    await running.fill(operator.parts.catalogue)
    cluster.cloud = operator.provider  # type: ignore[assignment]  # the real one for the double
    cluster.start()
    cluster.api.put(kinds.EC2NODECLASS, node_class_wire())
    (spec,) = [each for each in operator.controllers if each.reconciler.name == "nodeclass"]
    await spec.reconciler.reconcile(Key(name="default"))
    cluster.api.put(kinds.NODECLAIM, a_claim("web-1"))

    await cluster.lifecycle("web-1")
    (before,) = await operator.provider.list()
    await cluster.clock.advance(timedelta(minutes=16).total_seconds())
    for _ in range(2):  # give the claim up, then end its instance
        await cluster.lifecycle("web-1")
    after = [each for each in await operator.provider.list() if not each.deleting]

    assert before.provider_id == cluster.claim("web-1")["status"]["providerID"]
    assert "deletionTimestamp" in cluster.claim("web-1")["metadata"]
    assert after == []


async def _version() -> str:
    return "v1.34.4"


async def test_failed_status_checks_are_read_as_ec2_tells_them(world: World) -> None:
    await world.resolve()
    claims = [world.claim(claim_wire(f"web-{number}", ON_DEMAND, LARGE)) for number in range(3)]
    made = await asyncio.gather(*(world.operator.provider.create(claim) for claim in claims))
    ill, retired, well = (each.provider_id.rpartition("/")[2] for each in made)
    world.control.set_timings(boot_seconds=0)
    world.control.impair([ill], check="system", since_seconds=300)
    world.control.impair([retired], event="instance-retirement")
    ec2 = world.operator.parts.aws.ec2

    for _ in range(100):
        if {each.id for each in await ec2.statuses(())} == {ill, retired, well}:
            break
        await asyncio.sleep(0.1)
    (failed,) = await ec2.statuses((Filter("system-status.status", ("impaired",)),))
    (scheduled,) = await ec2.statuses((Filter("event.code", ("instance-retirement",)),))

    assert (failed.id, len(failed.system_failures), failed.instance_failures) == (ill, 1, ())
    assert (scheduled.id, scheduled.events) == (retired, ("instance-retirement",))
    assert await ec2.statuses((Filter("instance-status.status", ("impaired",)),)) == ()

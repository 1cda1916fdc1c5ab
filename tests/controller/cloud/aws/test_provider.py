"""The provider against the local AWS: what the core asks, and what is in EC2 afterwards."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import attrs
import pytest

from controller.clock import FakeClock, SystemClock
from controller.cloud import CreateFailed, InsufficientCapacity, NodeClaimNotFound
from controller.cloud.aws import AwsProvider
from controller.cloud.aws.garbage import InstanceCollector
from controller.kube import SINGLETON, kinds
from framework.api import labels
from sandbox.aws.faults import Fault, Shortage
from tests.controller.cloud.aws.builders import claim_wire
from tests.controller.cloud.aws.conftest import World

pytestmark = pytest.mark.sandbox

ON_DEMAND = (labels.CAPACITY_TYPE, ["on-demand"])
PAST = datetime(2026, 6, 1, tzinfo=UTC)
FUTURE = "2100-01-01T00:00:00Z"
LARGE = (labels.INSTANCE_TYPE, ["m5.large", "m6i.large"])


async def until_empty(provider: AwsProvider) -> None:
    for _ in range(100):
        if not await provider.list():
            return
        await asyncio.sleep(0.1)
    pytest.fail("instances are still there after 10 s")


async def test_a_class_becomes_ready_in_one_pass(world: World) -> None:
    found = await world.resolve()

    problems = [(c.type, c.reason, c.message) for c in found.status.conditions if c.status != "True"]
    assert problems == []
    assert len(found.status.subnets) == 3
    assert len(found.status.amis) == 5


async def test_a_claim_becomes_a_tagged_instance(world: World) -> None:
    await world.resolve()
    claim = world.claim(claim_wire("web-1", ON_DEMAND, LARGE))

    instance = await world.operator.provider.create(claim)

    (found,) = world.client("ec2").describe_instances()["Reservations"][0]["Instances"]
    tags = {tag["Key"]: tag["Value"] for tag in found["Tags"]}
    assert instance.provider_id == f"aws:///{found['Placement']['AvailabilityZone']}/{found['InstanceId']}"
    assert instance.image_id == found["ImageId"]
    assert tags["karpenter.sh/nodepool"] == "web"
    assert tags["kubernetes.io/cluster/demo"] == "owned"
    assert tags["eks:eks-cluster-name"] == "demo"
    assert instance.labels[labels.INSTANCE_TYPE] == found["InstanceType"]
    assert instance.labels[labels.CAPACITY_TYPE] == "on-demand"
    assert instance.allocatable["pods"] > 0


async def test_equal_claims_share_one_fleet_request(world: World) -> None:
    await world.resolve()
    claims = [world.claim(claim_wire(f"web-{i}", ON_DEMAND, LARGE)) for i in range(20)]

    instances = await asyncio.gather(*(world.operator.provider.create(claim) for claim in claims))

    assert len({instance.provider_id for instance in instances}) == 20
    assert len([r for r in world.control.requests(action="CreateFleet") if r.status == 200]) == 1


async def test_a_claim_for_unknown_types_is_refused_as_insufficient_capacity(world: World) -> None:
    await world.resolve()
    claim = world.claim(claim_wire("web-1", ON_DEMAND, (labels.INSTANCE_TYPE, ["x9.nano"])))

    with pytest.raises(InsufficientCapacity):
        await world.operator.provider.create(claim)


async def test_an_instance_of_an_interrupted_launch_is_taken_not_launched_again(world: World) -> None:
    await world.resolve()
    claim = world.claim(claim_wire("web-1", ON_DEMAND, LARGE), creationTimestamp=FUTURE)
    first = await world.operator.provider.create(claim)
    restarted = AwsProvider(world.operator.parts, world.api.mirror, SystemClock())
    restarted.adoption.lost_answer(claim.metadata.uid)
    older = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, creation_timestamp=PAST))

    second = await restarted.create(older)

    assert second.provider_id == first.provider_id
    assert second.labels == first.labels
    assert len([r for r in world.control.requests(action="CreateFleet") if r.status == 200]) == 1


async def test_a_deleted_instance_is_gone_in_the_end(world: World) -> None:
    await world.resolve()
    provider = world.operator.provider
    instance = await provider.create(world.claim(claim_wire("web-1", ON_DEMAND, LARGE)))

    await provider.delete(instance.provider_id)
    await until_empty(provider)

    with pytest.raises(NodeClaimNotFound):
        await provider.delete(instance.provider_id)


async def test_no_capacity_in_one_pool_falls_to_the_next_and_is_remembered(world: World) -> None:
    node_class = await world.resolve()
    world.control.add_shortage(Shortage(instance_type="m5.large"))
    both = (labels.INSTANCE_TYPE, ["m5.large", "m5.xlarge"])

    instance = await world.operator.provider.create(world.claim(claim_wire("web-1", ON_DEMAND, both)))

    large = world.operator.parts.types.find(node_class, "m5.large")
    assert instance.labels[labels.INSTANCE_TYPE] == "m5.xlarge"
    assert large is not None
    on_demand = {o.available for o in large.offerings if o.capacity_type == "on-demand"}
    assert on_demand == {False}
    assert {o.available for o in large.offerings if o.capacity_type == "spot"} == {True, False}


async def test_no_capacity_at_all_is_insufficient_capacity(world: World) -> None:
    await world.resolve()
    world.control.add_shortage(Shortage())

    with pytest.raises(InsufficientCapacity, match="InsufficientInstanceCapacity"):
        await world.operator.provider.create(world.claim(claim_wire("web-1", ON_DEMAND, LARGE)))


async def test_a_denied_launch_keeps_the_claim_and_names_the_reason(world: World) -> None:
    await world.resolve()
    world.control.add_fault(
        Fault(service="ec2", action="CreateFleet", code="UnauthorizedOperation", status=403)
    )

    with pytest.raises(CreateFailed, match="UnauthorizedOperation") as caught:
        await world.operator.provider.create(world.claim(claim_wire("web-1", ON_DEMAND, LARGE)))

    assert caught.value.reason == "Unauthorized"


async def test_a_throttled_launch_is_repeated_until_it_works(world: World) -> None:
    await world.resolve()
    world.control.add_fault(
        Fault(service="ec2", action="CreateFleet", code="RequestLimitExceeded", status=503, count=2)
    )

    instance = await world.operator.provider.create(world.claim(claim_wire("web-1", ON_DEMAND, LARGE)))

    assert instance.provider_id.startswith("aws:///eu-west-2")


async def test_a_template_that_vanished_is_made_again(world: World) -> None:
    await world.resolve()
    provider, ec2 = world.operator.provider, world.client("ec2")
    await provider.create(world.claim(claim_wire("web-1", ON_DEMAND, LARGE)))
    for template in ec2.describe_launch_templates()["LaunchTemplates"]:
        ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])

    await provider.create(world.claim(claim_wire("web-2", ON_DEMAND, LARGE)))

    assert len(await provider.list()) == 2


async def test_an_orphan_is_ended_unless_a_claim_like_its_own_waits(world: World) -> None:
    await world.resolve()
    provider, mirror = world.operator.provider, world.api.mirror
    waiting = world.claim(claim_wire("web-1", ON_DEMAND, LARGE))
    instance = await provider.create(waiting)
    later = FakeClock(datetime.now(UTC) + timedelta(minutes=15))
    successor = AwsProvider(world.operator.parts, mirror, later)
    collector = InstanceCollector(successor, world.api, mirror, later)  # type: ignore[arg-type]  # a double

    await collector.reconcile(SINGLETON)
    spared = [each.provider_id for each in await provider.list() if not each.deleting]
    await world.api.delete(kinds.NODECLAIM, "web-1")
    await collector.reconcile(SINGLETON)
    left = [each.provider_id for each in await provider.list() if not each.deleting]

    assert (spared, left) == ([instance.provider_id], [])

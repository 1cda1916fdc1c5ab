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
from controller.cloud.aws.launchtemplates import Templates
from controller.cloud.provider import Drifted
from controller.kube import SINGLETON, kinds
from framework.api import labels
from framework.api.schedulingconfig import DriftSource
from sandbox.aws.faults import Fault, Shortage
from tests.controller.cloud.aws.builders import a_pool, claim_wire
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


async def test_spot_instances_are_spot_and_say_so(world: World) -> None:
    await world.resolve()
    claim = world.claim(claim_wire("web-1", (labels.CAPACITY_TYPE, ["spot"]), LARGE))

    instance = await world.operator.provider.create(claim)

    (listed,) = await world.operator.provider.list()
    assert instance.labels[labels.CAPACITY_TYPE] == "spot"
    assert listed.labels[labels.CAPACITY_TYPE] == "spot"


async def test_spot_without_its_role_falls_to_on_demand_next_time(world: World) -> None:
    await world.resolve()
    world.control.require_spot_role()
    both = (labels.CAPACITY_TYPE, ["spot", "on-demand"])

    with pytest.raises(InsufficientCapacity, match="ServiceLinkedRole"):
        await world.operator.provider.create(world.claim(claim_wire("web-1", both, LARGE)))
    instance = await world.operator.provider.create(world.claim(claim_wire("web-2", both, LARGE)))

    assert instance.labels[labels.CAPACITY_TYPE] == "on-demand"


async def test_a_half_filled_fleet_serves_some_and_tells_the_others(world: World) -> None:
    await world.resolve()
    world.control.add_shortage(Shortage(remaining=0, zone="eu-west-2b"))
    world.control.add_shortage(Shortage(remaining=0, zone="eu-west-2c"))
    world.control.add_shortage(Shortage(remaining=2))
    only = (labels.INSTANCE_TYPE, ["m5.large"])
    claims = [world.claim(claim_wire(f"web-{i}", ON_DEMAND, only)) for i in range(5)]

    results = await asyncio.gather(
        *(world.operator.provider.create(claim) for claim in claims), return_exceptions=True
    )

    refused = [result for result in results if isinstance(result, InsufficientCapacity)]
    assert (len(results) - len(refused), len(refused)) == (2, 3)


async def test_an_answer_that_is_lost_never_launches_twice(world: World) -> None:
    await world.resolve()
    provider = world.operator.provider
    claim = world.claim(claim_wire("web-1", ON_DEMAND, LARGE))
    lost = await provider.create(claim)
    successor = AwsProvider(world.operator.parts, world.api.mirror, SystemClock())
    successor.adoption.lost_answer(claim.metadata.uid)

    again = await successor.create(
        attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, creation_timestamp=PAST))
    )

    assert again.provider_id == lost.provider_id
    assert len(await provider.list()) == 1


async def test_a_node_that_fits_its_class_has_not_drifted(world: World) -> None:
    await world.resolve()
    provider, api = world.operator.provider, world.api
    claim = world.claim(claim_wire("web-1", ON_DEMAND, LARGE))
    instance = await provider.create(claim)
    pool = a_pool()
    launched = await api.patch(
        kinds.NODECLAIM,
        "web-1",
        {
            "metadata": {"labels": dict(instance.labels), "annotations": dict(instance.annotations)},
            "status": {"providerID": instance.provider_id, "imageID": instance.image_id},
        },
    )
    settled = api.mirror.claims[launched["metadata"]["name"]]

    fresh = await provider.drift(settled, pool)
    other = attrs.evolve(settled, status=attrs.evolve(settled.status, image_id="ami-old"))
    old_image = await provider.drift(other, pool)
    ignored = await provider.drift(other, pool, ignored=frozenset({DriftSource.AMI}))
    await api.patch(kinds.EC2NODECLASS, "default", {"status": {"securityGroups": [{"id": "sg-new"}]}})
    other_groups = await provider.drift(settled, pool)
    await api.patch(
        kinds.EC2NODECLASS, "default", {"metadata": {"annotations": {labels.NODECLASS_HASH: "1"}}}
    )
    other_hash = await provider.drift(settled, pool)

    assert fresh is ignored is None
    assert old_image == Drifted(reason="AMIDrift", message=f"image: ami-old → {settled.status.image_id}")
    assert other_groups is not None
    assert (other_groups.reason, other_groups.message.endswith(" → sg-new")) == ("SecurityGroupDrift", True)
    assert other_hash is not None
    assert other_hash.reason == "NodeClassDrift"


async def test_a_registered_instance_is_named_after_its_node(world: World) -> None:
    await world.resolve()
    instance = await world.operator.provider.create(world.claim(claim_wire("web-1", ON_DEMAND, LARGE)))
    status = {"providerID": instance.provider_id, "nodeName": "ip-10-0-0-1"}
    await world.api.patch(kinds.NODECLAIM, "web-1", {"status": status})

    await world.reconcile("nodeclaim.tagging", "web-1")
    await world.reconcile("nodeclaim.tagging", "web-1")

    (found,) = await world.operator.provider.list()
    assert (found.tags["Name"], found.tags[labels.NODECLAIM_TAG]) == ("ip-10-0-0-1", "web-1")
    assert world.api.mirror.claims["web-1"].metadata.annotations[labels.TAGGED] == "true"
    assert len(world.control.requests(action="CreateTags")) == 1


async def test_a_node_with_less_memory_corrects_its_type_at_once(world: World) -> None:
    node_class = await world.resolve()
    types = world.operator.parts.types
    instance = await world.operator.provider.create(
        world.claim(claim_wire("web-1", ON_DEMAND, (labels.INSTANCE_TYPE, ["m5.large"])))
    )
    status = {"providerID": instance.provider_id, "imageID": instance.image_id}
    await world.api.patch(kinds.NODECLAIM, "web-1", {"status": status})
    world.api.add(
        kinds.NODE,
        {
            "metadata": {
                "name": "n1",
                "labels": {labels.REGISTERED: "true", labels.INSTANCE_TYPE: "m5.large"},
            },
            "spec": {"providerID": instance.provider_id},
            "status": {"capacity": {"cpu": "2", "memory": "7000Mi"}},
        },
    )

    await world.reconcile("providers.instancetype.capacity", "n1")

    after = types.find(node_class, "m5.large")
    assert after is not None
    assert after.capacity["memory"] == 7000 * 1024**2


async def test_unused_launch_templates_are_deleted_and_used_ones_kept(world: World) -> None:
    await world.resolve()
    await world.operator.provider.create(world.claim(claim_wire("web-1", ON_DEMAND, LARGE)))
    clock = FakeClock(datetime.now(UTC))
    successor = Templates(world.operator.parts.aws.ec2, clock, cluster="demo")
    await successor.hydrate()

    await clock.advance(59)
    kept = await successor.expire(), len(world.client("ec2").describe_launch_templates()["LaunchTemplates"])
    await clock.advance(2)
    await successor.expire()

    assert kept[0] == 0
    assert kept[1] >= 1
    assert world.client("ec2").describe_launch_templates()["LaunchTemplates"] == []

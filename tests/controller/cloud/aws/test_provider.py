"""The provider against the local AWS: what the core asks, and what is in EC2 afterwards."""

from __future__ import annotations

import asyncio

import pytest

from controller.cloud import InsufficientCapacity
from framework.api import labels
from tests.controller.cloud.aws.builders import claim_wire
from tests.controller.cloud.aws.conftest import World

pytestmark = pytest.mark.sandbox

ON_DEMAND = (labels.CAPACITY_TYPE, ["on-demand"])
LARGE = (labels.INSTANCE_TYPE, ["m5.large", "m6i.large"])


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

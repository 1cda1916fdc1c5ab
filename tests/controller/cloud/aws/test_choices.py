"""What a claim may ask for and what EC2 is asked then (spec aws/docs-catalogue, A6 and C to F)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from controller.cloud.aws.gateway.records import ReservationRecord, SubnetRecord
from controller.cloud.provider import InsufficientCapacity
from controller.kube import kinds
from framework.api import labels
from tests.controller.cloud.aws.builders import a_claim, a_pool
from tests.controller.cloud.aws.scene import ZONES, Scene, shapes
from tests.controller.fakes.aws import Shortage

ON_DEMAND = (labels.CAPACITY_TYPE, ["on-demand"])
M5 = (labels.INSTANCE_TYPE, ["m5.large"])
GPU, GAUDI, NEURON = "nvidia.com/gpu", "habana.ai/gaudi", "aws.amazon.com/neuron"
EFA, POD_ENI = "vpc.amazonaws.com/efa", "vpc.amazonaws.com/pod-eni"
GRAVITON = {"a1.medium", "m6g.large", "t4g.medium"}


def wanted(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def claim(*requirements: dict[str, Any], name: str = "web-1", **requests: str) -> Any:
    """Return an on-demand claim with these requirements and requests."""
    entries = [wanted(labels.CAPACITY_TYPE, "In", "on-demand"), *requirements]
    return a_claim(name, requirements=entries, resources={"requests": requests})


@pytest.mark.parametrize(
    ("asked", "types"),
    [
        (
            claim(wanted(labels.INSTANCE_CPU, "Gt", "3"), wanted(labels.INSTANCE_MEMORY, "Gt", "8191")),
            {"c5n.18xlarge", "i4i.xlarge", "m5.24xlarge", "m5.xlarge"},
        ),
        (claim(wanted(labels.ARCH, "In", "arm64")), GRAVITON),
        (claim(**{GPU: "1"}), {"g4dn.xlarge", "g5.xlarge", "p4d.24xlarge"}),
        (claim(**{GPU: "8"}), {"p4d.24xlarge"}),
        (claim(**{NEURON: "1"}), {"inf2.xlarge"}),
        (claim(wanted(labels.INSTANCE_SIZE, "In", "metal")), {"m5.metal"}),
        (claim(wanted(labels.INSTANCE_LOCAL_NVME, "Exists")), {"i4i.xlarge", "m5d.large"}),
        (claim(wanted(labels.INSTANCE_LOCAL_NVME, "Gt", "300")), {"i4i.xlarge"}),
        (claim(wanted(labels.INSTANCE_NETWORK_BANDWIDTH, "Gt", "49999")), {"c5n.18xlarge"}),
        (claim(wanted(labels.INSTANCE_CAPABILITY_FLEX, "In", "true")), {"m7i-flex.large"}),
        (claim(**{POD_ENI: "54"}), {"c5n.18xlarge", "m5.24xlarge"}),
        (claim(wanted(labels.INSTANCE_HYPERVISOR, "In", "xen")), set()),
    ],
    ids=(
        *("large", "arm", "GPU", "8 GPUs", "Neuron", "metal", "NVMe", "NVMe > 300 GB"),
        *("bandwidth", "flex", "trunk", "hypervisor"),
    ),
)
async def test_only_types_that_have_what_is_asked_for_are_launched(asked: Any, types: set[str]) -> None:
    scene = Scene()
    await scene.resolve()

    if types:
        assert (await scene.launch(asked)).types == types
    else:
        with pytest.raises(InsufficientCapacity):
            await scene.launch(asked)


async def test_metal_and_accelerators_are_kept_for_those_who_ask() -> None:
    scene = Scene()
    await scene.resolve()

    types = (await scene.launch(claim())).types

    assert not types & {"m5.metal", "g4dn.xlarge", "g5.xlarge", "inf2.xlarge", "p4d.24xlarge"}
    assert {"m5.large", "m5d.large", "m6g.large"} <= types


async def test_a_claim_for_efa_gets_the_interfaces_and_shows_them() -> None:
    scene = Scene()
    await scene.resolve()

    launch = await scene.launch(claim(wanted(labels.INSTANCE_TYPE, "In", "p4d.24xlarge"), **{EFA: "4"}))
    other = await scene.launch(claim(wanted(labels.INSTANCE_TYPE, "In", "p4d.24xlarge"), name="web-2"))

    assert [each["InterfaceType"] for each in launch.template["NetworkInterfaces"]] == ["efa"] * 4
    assert launch.instance.capacity[EFA] == 4
    assert EFA not in other.instance.capacity


async def test_spot_gives_way_to_on_demand_once_all_of_it_is_sold_out() -> None:
    scene = Scene()
    await scene.resolve()
    scene.account.shortages.append(Shortage(capacity_type="spot"))
    both = (labels.CAPACITY_TYPE, ["spot", "on-demand"])

    with pytest.raises(InsufficientCapacity):
        await scene.launch(a_claim("web-1", both, M5))
    second = await scene.launch(a_claim("web-2", both, M5))

    assert second.instance.labels[labels.CAPACITY_TYPE] == "on-demand"


async def test_spot_dearer_than_on_demand_is_left_out() -> None:
    scene = Scene()
    scene.account.spot = {("m5.large", ZONES[0]): 0.01, ("m5.xlarge", ZONES[0]): 9.0}
    await scene.resolve()
    both = (labels.CAPACITY_TYPE, ["spot", "on-demand"])

    launch = await scene.launch(a_claim("web-1", both, (labels.INSTANCE_TYPE, ["m5.large", "m5.xlarge"])))

    assert [(each["InstanceType"], each["AvailabilityZone"]) for each in launch.overrides] == [
        ("m5.large", ZONES[0])
    ]


def reservation(identifier: str = "cr-1", **changes: Any) -> tuple[ReservationRecord, dict[str, str]]:
    record = ReservationRecord(
        id=identifier,
        instance_type="m5.large",
        zone=ZONES[0],
        owner="111122223333",
        match_criteria="targeted",
        reservation_type="default",
        available=1,
        end=None,
    )
    return attrs.evolve(record, **changes), {"team": "blue"}


RESERVED = (labels.CAPACITY_TYPE, ["reserved", "on-demand"])
BY_TAG = {"capacityReservationSelectorTerms": [{"tags": {"team": "blue"}}]}


async def test_a_reservation_is_used_up_before_on_demand() -> None:
    scene = Scene()
    scene.account.reservations.append(reservation())
    await scene.resolve(**BY_TAG)

    first = await scene.launch(a_claim("web-1", RESERVED, M5))
    second = await scene.launch(a_claim("web-2", RESERVED, M5))

    assert first.instance.labels[labels.CAPACITY_TYPE] == "reserved"
    assert first.instance.labels[labels.CAPACITY_RESERVATION_ID] == "cr-1"
    assert first.instance.labels[labels.CAPACITY_RESERVATION_TYPE] == "default"
    assert second.instance.labels[labels.CAPACITY_TYPE] == "on-demand"
    assert labels.CAPACITY_RESERVATION_ID not in second.instance.labels
    assert second.template["CapacityReservationSpecification"] == {"CapacityReservationPreference": "none"}


async def test_a_claim_may_be_pinned_to_one_reservation() -> None:
    scene = Scene()
    scene.account.reservations += [reservation("cr-1", available=9), reservation("cr-2", zone=ZONES[1])]
    await scene.resolve(**BY_TAG)

    launch = await scene.launch(a_claim("web-1", RESERVED, M5, (labels.CAPACITY_RESERVATION_ID, ["cr-2"])))

    assert launch.instance.labels[labels.CAPACITY_RESERVATION_ID] == "cr-2"
    assert launch.instance.labels[labels.ZONE] == ZONES[1]


async def test_a_capacity_block_is_taken_by_its_one_type_and_drained_before_its_end() -> None:
    scene = Scene()
    end = scene.clock.now() + timedelta(hours=2)
    scene.account.reservations.append(reservation(reservation_type="capacity-block", end=end))
    await scene.resolve(**BY_TAG)
    launch = await scene.launch(a_claim("web-1", (labels.CAPACITY_TYPE, ["reserved"])))
    put_claim(scene, launch.instance)

    states = []
    for minutes in (79, 2):
        await scene.clock.advance(60 * minutes)
        await scene.reconcile("nodeclass", "default")
        await scene.reconcile("capacityreservation.expiration")
        states.append(scene.world.api.exists(kinds.NODECLAIM, "web-1") and not going(scene))

    assert launch.types == {"m5.large"}
    assert launch.fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "capacity-block"
    assert launch.template["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert states == [True, False]


def put_claim(scene: Scene, made: Any) -> None:
    """Write the claim of a launch as the core does."""
    scene.world.api.put(
        kinds.NODECLAIM,
        {
            "metadata": {
                "name": "web-1",
                "labels": dict(made.labels),
                "annotations": dict(made.annotations),
                "finalizers": [labels.TERMINATION_FINALIZER],
            },
            "spec": {
                "requirements": [],
                "nodeClassRef": {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"},
            },
            "status": {"providerID": made.provider_id, "imageID": made.image_id},
        },
    )


def going(scene: Scene) -> bool:
    return "deletionTimestamp" in scene.world.claim("web-1")["metadata"]


async def test_a_node_whose_reservation_ended_is_on_demand_and_has_not_drifted() -> None:
    scene = Scene()
    scene.account.reservations.append(reservation())
    await scene.resolve(**BY_TAG)
    made = (await scene.launch(a_claim("web-1", RESERVED, M5))).instance
    put_claim(scene, made)
    scene.account.reservations.clear()
    (identifier,) = scene.account.instances
    released = attrs.evolve(scene.account.instances[identifier], reservation_id="", reservations_only=False)
    scene.account.instances[identifier] = released

    await scene.clock.advance(61)
    await scene.reconcile("nodeclass", "default")
    await scene.reconcile("capacityreservation.capacitytype")
    found = scene.world.mirror.claims["web-1"]
    (drift,) = await scene.wait([scene.operator.provider.drift(found, a_pool())])

    assert found.metadata.labels[labels.CAPACITY_TYPE] == "on-demand"
    assert labels.CAPACITY_RESERVATION_ID not in found.metadata.labels
    assert labels.CAPACITY_RESERVATION_TYPE not in found.metadata.labels
    assert drift is None


async def test_a_reservation_that_the_class_no_longer_selects_is_drift() -> None:
    scene = Scene()
    scene.account.reservations.append(reservation())
    await scene.resolve(**BY_TAG)
    put_claim(scene, (await scene.launch(a_claim("web-1", RESERVED, M5))).instance)
    record, _ = scene.account.reservations[0]
    scene.account.reservations[0] = (record, {"team": "red"})

    await scene.clock.advance(61)
    await scene.reconcile("nodeclass", "default")
    (drift,) = await scene.wait([scene.operator.provider.drift(scene.world.mirror.claims["web-1"], a_pool())])

    assert drift is not None
    assert drift.reason == "CapacityReservationDrift"


def overlay(scene: Scene, name: str = "m6i.large", **spec: Any) -> None:
    scene.world.api.put(
        kinds.NODEOVERLAY,
        {
            "metadata": {"name": "one"},
            "spec": {"requirements": [wanted(labels.INSTANCE_TYPE, "In", name)], **spec},
        },
    )
    scene.world.api.put(kinds.NODEPOOL, a_pool().to_wire())


async def test_an_overlaid_price_ranks_the_pools_and_ec2_follows_our_ranks() -> None:
    scene = Scene()
    overlay(scene, price="0.001")
    await scene.resolve()
    both = (labels.INSTANCE_TYPE, ["m5.large", "m6i.large"])
    plain = a_claim("web-1", ON_DEMAND, both)
    marked = attrs.evolve(
        plain, metadata=attrs.evolve(plain.metadata, annotations={labels.PRICE_OVERLAY_APPLIED: "true"})
    )

    launch = await scene.launch(marked)

    assert launch.instance.labels[labels.INSTANCE_TYPE] == "m6i.large"
    assert launch.fleet["OnDemandOptions"] == {"AllocationStrategy": "prioritized"}
    ranks = {each["InstanceType"]: each["Priority"] for each in launch.overrides}
    assert ranks["m6i.large"] == 0.001 < ranks["m5.large"]


@pytest.mark.parametrize("resource", [GPU, "hugepages-2Mi", "example.com/device"])
async def test_an_overlay_gives_a_type_what_ec2_does_not_know_of(resource: str) -> None:
    scene = Scene()
    overlay(scene, capacity={resource: "1"})
    await scene.resolve()
    asked = claim(wanted(labels.INSTANCE_TYPE, "In", "m5.large", "m6i.large"), **{resource: "1"})

    launch = await scene.launch(asked)

    assert launch.types == {"m6i.large"}
    assert launch.instance.capacity[resource] == 1


async def test_dedicated_tenancy_is_asked_for_and_shown() -> None:
    scene = Scene()
    await scene.resolve()

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, (labels.INSTANCE_TENANCY, ["dedicated"])))
    either = await scene.launch(
        a_claim("web-2", ON_DEMAND, (labels.INSTANCE_TENANCY, ["dedicated", "default"]))
    )

    assert {each["Placement"]["Tenancy"] for each in launch.templates} == {"dedicated"}
    assert launch.instance.labels[labels.INSTANCE_TENANCY] == "dedicated"
    assert either.instance.labels[labels.INSTANCE_TENANCY] == "default"


async def test_local_disks_become_ephemeral_storage_when_the_class_says_so() -> None:
    plain, raid = Scene(), Scene()
    await plain.resolve()
    await raid.resolve(instanceStorePolicy="RAID0")
    asked = a_claim("web-1", ON_DEMAND, (labels.INSTANCE_TYPE, ["i4i.xlarge"]))

    without, with_raid = await plain.launch(asked), await raid.launch(asked)

    assert without.instance.capacity["ephemeral-storage"] == 20 * 2**30
    assert with_raid.instance.capacity["ephemeral-storage"] == 937 * 10**9
    assert "strategy: RAID0" in with_raid.user_data
    assert "RAID0" not in without.user_data


async def test_every_volume_is_attached_and_the_root_counts() -> None:
    scene = Scene()
    sizes = {"/dev/xvda": "20Gi", "/dev/xvdb": "100Gi", "/dev/xvdc": "2000Gi"}
    mappings = [{"deviceName": name, "ebs": {"volumeSize": size}} for name, size in sizes.items()]
    await scene.resolve(blockDeviceMappings=mappings)

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, M5))

    found = {each["DeviceName"]: each["Ebs"]["VolumeSize"] for each in launch.template["BlockDeviceMappings"]}
    assert found == {"/dev/xvda": 20, "/dev/xvdb": 100, "/dev/xvdc": 2000}
    assert launch.instance.capacity["ephemeral-storage"] == 20 * 2**30


async def test_an_own_density_is_told_to_the_kubelet() -> None:
    scene = Scene()
    await scene.resolve(kubelet={"maxPods": 110})

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, M5))

    assert launch.instance.capacity["pods"] == 110
    assert "maxPods: 110" in launch.user_data


async def test_network_and_metadata_settings_are_sent_as_they_are_given() -> None:
    scene = Scene()
    options = {"httpEndpoint": "enabled", "httpTokens": "optional", "httpPutResponseHopLimit": 3}
    await scene.resolve(associatePublicIPAddress=False, detailedMonitoring=True, metadataOptions=options)

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, M5))

    (interface,) = launch.template["NetworkInterfaces"]
    assert interface["AssociatePublicIpAddress"] is False
    assert launch.template["Monitoring"] == {"Enabled": True}
    assert launch.template["MetadataOptions"]["HttpTokens"] == "optional"
    assert launch.template["MetadataOptions"]["HttpPutResponseHopLimit"] == 3


async def test_metadata_is_hardened_unless_the_class_says_otherwise() -> None:
    scene = Scene()
    await scene.resolve()

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, M5))

    options = launch.template["MetadataOptions"]
    assert (options["HttpTokens"], options["HttpPutResponseHopLimit"]) == ("required", 1)
    assert "AssociatePublicIpAddress" not in launch.template["NetworkInterfaces"][0]


async def test_the_emptiest_subnet_of_a_zone_is_used_and_a_full_one_closes_the_zone() -> None:
    scene = Scene()
    record, tags = scene.account.subnets[0]
    scene.account.subnets.append((attrs.evolve(record, id="subnet-a2", free_addresses=8000), tags))
    await scene.resolve()
    in_a = (labels.ZONE, [ZONES[0]])

    first = await scene.launch(a_claim("web-1", ON_DEMAND, M5, in_a))
    scene.account.shortages.append(Shortage(code="InsufficientFreeAddressesInSubnet"))
    for name in ("web-2", "web-3"):
        with pytest.raises(InsufficientCapacity):
            await scene.launch(a_claim(name, ON_DEMAND, M5, in_a))
    asked = len(scene.account.asked("CreateFleet"))
    scene.account.shortages.clear()
    await scene.clock.advance(181)
    again = await scene.launch(a_claim("web-4", ON_DEMAND, M5, in_a))

    assert {each["SubnetId"] for each in first.overrides} == {"subnet-a2"}
    assert asked == 2, "the third claim was refused without asking"
    assert again.instance.labels[labels.ZONE] == ZONES[0]


@pytest.mark.parametrize(("key", "value"), [(labels.ZONE, ZONES[1]), (labels.ZONE_ID, "euw2-az2")])
async def test_a_zone_is_asked_for_by_name_or_by_id(key: str, value: str) -> None:
    scene = Scene()
    await scene.resolve()

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, M5, (key, [value])))

    assert {each["SubnetId"] for each in launch.overrides} == {"subnet-b"}
    assert launch.instance.labels[labels.ZONE] == ZONES[1]
    assert launch.instance.labels[labels.ZONE_ID] == "euw2-az2"


async def test_a_subnet_in_a_local_zone_is_launched_into() -> None:
    scene = Scene()
    local = "eu-west-2-lhr-1a"
    scene.account.zones = [*ZONES, local]
    tags = {labels.DISCOVERY_TAG: "demo"}
    record = SubnetRecord(id="subnet-l", zone=local, zone_id="euw2-lhr1-az1", vpc="vpc-1", free_addresses=99)
    scene.account.subnets.append((record, tags))
    await scene.resolve()

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, M5, (labels.ZONE, [local])))

    assert {each["SubnetId"] for each in launch.overrides} == {"subnet-l"}


async def test_an_isolated_network_costs_no_call_to_iam_or_to_the_price_list() -> None:
    scene = Scene(isolated_vpc=True)
    await scene.resolve(role=None, instanceProfile="given")

    launch = await scene.launch(a_claim("web-1", ON_DEMAND, M5))
    await scene.reconcile("providers.pricing")

    names = {name for name, _ in scene.account.calls}
    reconcilers = {spec.reconciler.name for spec in scene.operator.controllers}
    assert not names & {"CreateInstanceProfile", "DeleteInstanceProfile", "GetProducts"}
    assert "instanceprofile.garbagecollection" not in reconcilers
    assert launch.template["IamInstanceProfile"] == {"Name": "given"}
    assert scene.operator.parts.prices.on_demand("m5.large") == pytest.approx(0.111)


async def test_pods_with_branch_interfaces_need_a_type_that_trunks() -> None:
    scene = Scene(shapes(("t3.large", "m5.large")))
    await scene.resolve()

    launch = await scene.launch(claim(**{POD_ENI: "1"}))

    assert launch.types == {"m5.large"}

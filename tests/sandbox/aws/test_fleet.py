"""CreateFleet: which pool is taken, what a failed pool says, what the launch template does (aws/launch)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from framework.data import on_demand_prices
from sandbox.aws.errors import AwsError
from sandbox.aws.faults import Shortage

pytestmark = pytest.mark.sandbox

Fleet = Callable[..., dict[str, Any]]


def launched(answer: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Return (type, zone letter, count) of each group."""
    return [
        (
            group["InstanceType"],
            group["LaunchTemplateAndOverrides"]["Overrides"]["AvailabilityZone"][-1],
            len(group["InstanceIds"]),
        )
        for group in answer["Instances"]
    ]


def failed(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (type, code) of each error."""
    return [
        (e["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"], e["ErrorCode"])
        for e in answer["Errors"]
    ]


def test_lowest_price_takes_the_cheapest_pool_for_all_instances(fleet: Fleet, platform: Any) -> None:
    prices = on_demand_prices("eu-west-2")
    assert prices["t3.medium"] < prices["m5.large"] < prices["m5.xlarge"]

    answer = fleet(platform.overrides(("m5.xlarge", "a"), ("t3.medium", "b"), ("m5.large", "c")), count=3)

    assert launched(answer) == [("t3.medium", "b", 3)]
    assert answer["Errors"] == []


def test_prioritized_follows_the_priority_not_the_price(fleet: Fleet, platform: Any) -> None:
    cheap = platform.overrides(("t3.medium", "a"), Priority=2.0)
    dear = platform.overrides(("m5.xlarge", "a"), Priority=1.0)

    assert launched(fleet(cheap + dear, strategy="prioritized")) == [("m5.xlarge", "a", 1)]


@pytest.mark.parametrize("strategy", ["price-capacity-optimized", "lowest-price"])
def test_spot_takes_the_zone_with_the_lowest_spot_price(
    fleet: Fleet, platform: Any, aws: Any, strategy: str
) -> None:
    rows = aws.client("ec2").describe_spot_price_history(InstanceTypes=["m5.large"])["SpotPriceHistory"]
    prices = {row["AvailabilityZone"][-1]: float(row["SpotPrice"]) for row in rows}
    cheapest = min("abc", key=lambda zone: prices[zone])

    pools = platform.overrides(*(("m5.large", z) for z in "abc"))
    answer = fleet(pools, capacity_type="spot", strategy=strategy)

    assert launched(answer) == [("m5.large", cheapest, 1)]
    assert answer["Instances"][0]["Lifecycle"] == "spot"


def test_a_pool_without_capacity_reports_and_the_next_is_taken(fleet: Fleet, platform: Any, aws: Any) -> None:
    aws.control.add_shortage(Shortage(instance_type="t3.*", capacity_type="on-demand"))

    answer = fleet(platform.overrides(("t3.medium", "a"), ("m5.large", "a")))

    assert launched(answer) == [("m5.large", "a", 1)]
    assert failed(answer) == [("t3.medium", "InsufficientInstanceCapacity")]
    assert "sufficient t3.medium capacity" in answer["Errors"][0]["ErrorMessage"]


def test_what_remains_of_a_pool_is_given_before_the_next(fleet: Fleet, platform: Any, aws: Any) -> None:
    aws.control.add_shortage(Shortage(instance_type="t3.medium", remaining=2))

    answer = fleet(platform.overrides(("t3.medium", "a"), ("m5.large", "b")), count=5)

    assert launched(answer) == [("t3.medium", "a", 2), ("m5.large", "b", 3)]


def test_all_pools_without_capacity_give_no_instance_and_no_exception(
    fleet: Fleet, platform: Any, aws: Any
) -> None:
    aws.control.add_shortage(Shortage(code="UnfulfillableCapacity"))

    answer = fleet(platform.overrides(("t3.medium", "a"), ("m5.large", "b")))

    assert answer["Instances"] == []
    assert {code for _, code in failed(answer)} == {"UnfulfillableCapacity"}


def test_pools_that_cannot_be_launched_say_why(fleet: Fleet, platform: Any) -> None:
    pools = [
        *platform.overrides(("m99.large", "a")),
        *platform.overrides(("inf2.xlarge", "b")),
        *platform.overrides(("m7g.large", "a")),
        *platform.overrides(("m5.large", "a"), ImageId="ami-00000000000000000"),
    ]

    answer = fleet(pools)

    assert answer["Instances"] == []
    assert sorted(failed(answer)) == [
        ("inf2.xlarge", "InvalidFleetConfiguration"),
        ("m5.large", "InvalidAMIID.NotFound"),
        ("m7g.large", "InvalidFleetConfiguration"),
        ("m99.large", "InvalidParameterValue"),
    ]


def test_an_arm_image_launches_on_an_arm_type(fleet: Fleet, platform: Any) -> None:
    answer = fleet(platform.overrides(("m7g.large", "a"), ImageId=platform.arm_image))

    assert launched(answer) == [("m7g.large", "a", 1)]


def test_a_spot_price_below_the_market_is_too_low(fleet: Fleet, platform: Any) -> None:
    answer = fleet(platform.overrides(("m5.large", "a"), MaxPrice="0.001"), capacity_type="spot")

    assert failed(answer) == [("m5.large", "SpotMaxPriceTooLow")]


def test_a_full_subnet_reports_and_makes_nothing(fleet: Fleet, platform: Any, aws: Any) -> None:
    ec2 = aws.client("ec2")
    small = ec2.create_subnet(VpcId=platform.vpc, CidrBlock="10.0.9.0/28", AvailabilityZone="eu-west-2a")[
        "Subnet"
    ]["SubnetId"]
    pool = [{"InstanceType": "t3.medium", "SubnetId": small, "AvailabilityZone": "eu-west-2a"}]

    answer = fleet(pool, count=12)

    assert launched(answer) == [("t3.medium", "a", 11)]
    assert failed(answer) == [("t3.medium", "InsufficientFreeAddressesInSubnet")]
    subnet = ec2.describe_subnets(SubnetIds=[small])["Subnets"][0]
    assert subnet["AvailableIpAddressCount"] == 0


def test_the_launch_template_is_applied(fleet: Fleet, platform: Any, aws: Any) -> None:
    tags = [
        {"ResourceType": "instance", "Tags": [{"Key": "karpenter.sh/nodepool", "Value": "default"}]},
        {"ResourceType": "volume", "Tags": [{"Key": "team", "Value": "a"}]},
    ]
    answer = fleet(platform.overrides(("m5.large", "b")), TagSpecifications=tags)
    ec2 = aws.client("ec2")
    instance = ec2.describe_instances(InstanceIds=answer["Instances"][0]["InstanceIds"])["Reservations"][0][
        "Instances"
    ][0]

    assert [g["GroupId"] for g in instance["SecurityGroups"]] == [platform.group]
    assert instance["IamInstanceProfile"]["Arn"].endswith("instance-profile/node")
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert instance["Monitoring"]["State"] == "enabled"
    assert (
        instance["PrivateDnsName"]
        == f"ip-{instance['PrivateIpAddress'].replace('.', '-')}.eu-west-2.compute.internal"
    )
    assert instance["Placement"]["AvailabilityZoneId"] == "euw2-az3"
    assert instance["Architecture"] == "x86_64"
    assert {t["Key"]: t["Value"] for t in instance["Tags"]}["karpenter.sh/nodepool"] == "default"
    volume = ec2.describe_volumes(VolumeIds=[instance["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]])[
        "Volumes"
    ][0]
    assert (volume["Size"], volume["VolumeType"], volume["Encrypted"]) == (20, "gp3", True)
    assert volume["Tags"] == [{"Key": "team", "Value": "a"}]


def test_user_data_can_be_read_back(fleet: Fleet, platform: Any, aws: Any) -> None:
    answer = fleet(platform.overrides(("m5.large", "a")))
    [instance_id] = answer["Instances"][0]["InstanceIds"]

    found = aws.client("ec2").describe_instance_attribute(InstanceId=instance_id, Attribute="userData")

    assert found["UserData"] == {"Value": "aGVsbG8="}


def test_spot_instances_carry_a_request_id(fleet: Fleet, platform: Any, aws: Any) -> None:
    answer = fleet(platform.overrides(("m5.large", "a")), capacity_type="spot")
    ec2 = aws.client("ec2")
    [instance_id] = answer["Instances"][0]["InstanceIds"]
    instance = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]

    [request] = ec2.describe_spot_instance_requests()["SpotInstanceRequests"]

    assert instance["InstanceLifecycle"] == "spot"
    assert request["SpotInstanceRequestId"] == instance["SpotInstanceRequestId"]


def test_the_same_client_token_answers_the_same_fleet(
    fleet: Fleet, platform: Any, aws: Any, template: Callable[..., str]
) -> None:
    name, pools = template(), platform.overrides(("m5.large", "a"))

    first = fleet(pools, name=name, ClientToken="claim-1")
    again = fleet(pools, name=name, ClientToken="claim-1")

    assert again["FleetId"] == first["FleetId"]
    assert len(aws.control.inventory()["instances"]) == 1
    with pytest.raises(ClientError, match="IdempotentParameterMismatch"):
        fleet(pools, name=name, count=2, ClientToken="claim-1")


def test_a_dry_run_makes_nothing(fleet: Fleet, platform: Any, aws: Any) -> None:
    with pytest.raises(ClientError, match="DryRunOperation"):
        fleet(platform.overrides(("m5.large", "a")), DryRun=True)

    assert aws.control.inventory()["instances"] == []


def test_an_unknown_template_is_an_error_of_the_call(fleet: Fleet, platform: Any) -> None:
    with pytest.raises(ClientError, match=r"InvalidLaunchTemplateName\.NotFoundException"):
        fleet(platform.overrides(("m5.large", "a")), name="missing")


def test_a_profile_that_is_not_there_is_named(
    fleet: Fleet, platform: Any, template: Callable[..., str]
) -> None:
    name = template(IamInstanceProfile={"Name": "gone"})

    answer = fleet(platform.overrides(("m5.large", "a")), name=name)

    assert "iamInstanceProfile.name is invalid" in answer["Errors"][0]["ErrorMessage"]


def test_spot_needs_its_role_when_the_sandbox_is_told_so(fleet: Fleet, platform: Any, aws: Any) -> None:
    aws.control.require_spot_role()
    pools = platform.overrides(("m5.large", "a"))
    refused = fleet(pools, capacity_type="spot", name=None)

    aws.client("iam").create_service_linked_role(AWSServiceName="spot.amazonaws.com")
    allowed = fleet(pools, capacity_type="spot", name="karpenter.k8s.aws/1")

    assert failed(refused) == [("m5.large", "AuthFailure.ServiceLinkedRoleCreationNotPermitted")]
    assert launched(allowed) == [("m5.large", "a", 1)]


def test_a_fleet_that_keeps_itself_up_is_not_modelled(fleet: Fleet, platform: Any) -> None:
    with pytest.raises(ClientError, match=r"NotModelled.*Type=maintain"):
        fleet(platform.overrides(("m5.large", "a")), Type="maintain")


def test_efa_interfaces_sit_on_their_cards(
    fleet: Fleet, platform: Any, aws: Any, template: Callable[..., str]
) -> None:
    cards = [
        {"NetworkCardIndex": i, "DeviceIndex": min(i, 1), "InterfaceType": "efa", "Groups": [platform.group]}
        for i in range(3)
    ]
    answer = fleet(platform.overrides(("m5.large", "a")), name=template(NetworkInterfaces=cards))
    ids = answer["Instances"][0]["InstanceIds"]
    instance = aws.client("ec2").describe_instances(InstanceIds=ids)["Reservations"][0]["Instances"][0]

    assert [
        (n["InterfaceType"], n["Attachment"]["NetworkCardIndex"], n["Attachment"]["DeviceIndex"])
        for n in instance["NetworkInterfaces"]
    ] == [("efa", 0, 0), ("efa", 1, 1), ("efa", 2, 1)]


def test_an_unknown_strategy_is_refused() -> None:
    from sandbox.aws.ec2.fleet import ordered

    with pytest.raises(AwsError, match="cheapest-first"):
        ordered([], "cheapest-first")

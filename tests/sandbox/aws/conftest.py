"""One AWS in this process for all tests of the package, emptied before each; time moves only by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import boto3
import pytest
from botocore.config import Config

from sandbox.aws import AwsServer
from sandbox.aws.control import Control

REGION = "eu-west-2"
START = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}


class ManualClock:
    """A clock that only moves when told."""

    def __init__(self) -> None:
        self.elapsed = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def advance(self, seconds: float) -> None:
        self.elapsed += seconds


@attrs.define
class Aws:
    """What tests talk to."""

    server: AwsServer
    clock: ManualClock
    control: Control

    def client(self, service: str, region: str = REGION) -> Any:
        """Return a boto3 client that does not retry."""
        return boto3.client(
            service,
            region_name=region,
            endpoint_url=self.server.endpoint,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 1}, parameter_validation=True),
        )


@attrs.define
class Platform:
    """A network, a node role with a profile, an image: what a launch needs."""

    vpc: str
    subnets: dict[str, str]
    """Zone letter → subnet."""
    group: str
    role_arn: str
    image: str
    arm_image: str

    def overrides(self, *pools: tuple[str, str], **more: Any) -> list[dict[str, Any]]:
        """Return overrides for (type, zone letter) pairs."""
        return [
            {"InstanceType": t, "SubnetId": self.subnets[z], "AvailabilityZone": REGION + z, **more}
            for t, z in pools
        ]


@pytest.fixture(scope="session")
def running() -> Iterator[Aws]:
    clock = ManualClock()
    with AwsServer(region=REGION, clock=clock) as server:
        yield Aws(server, clock, Control(server.endpoint))


@pytest.fixture
def aws(running: Aws) -> Aws:
    running.control.reset()
    running.control.clear(requests=True)
    return running


@pytest.fixture
def platform(aws: Aws) -> Platform:
    ec2, iam, ssm = aws.client("ec2"), aws.client("iam"), aws.client("ssm")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = {
        zone: ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{i}.0/24", AvailabilityZone=REGION + zone)[
            "Subnet"
        ]["SubnetId"]
        for i, zone in enumerate("abc")
    }
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    role = iam.create_role(RoleName="node", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]
    iam.create_instance_profile(InstanceProfileName="node")
    iam.add_role_to_instance_profile(InstanceProfileName="node", RoleName="node")
    folder = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023"

    def image(arch: str) -> str:
        return ssm.get_parameter(Name=f"{folder}/{arch}/standard/recommended/image_id")["Parameter"]["Value"]

    return Platform(vpc, subnets, group, role["Arn"], image("x86_64"), image("arm64"))


@pytest.fixture
def template(aws: Aws, platform: Platform) -> Callable[..., str]:
    """Create a launch template; keywords replace parts of its data."""

    def create(name: str = "karpenter.k8s.aws/1", **data: Any) -> str:
        defaults = {
            "ImageId": platform.image,
            "UserData": "aGVsbG8=",
            "IamInstanceProfile": {"Name": "node"},
            "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": [platform.group]}],
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "Monitoring": {"Enabled": True},
            "BlockDeviceMappings": [
                {
                    "DeviceName": "/dev/xvda",
                    "Ebs": {"VolumeSize": 20, "VolumeType": "gp3", "Encrypted": True},
                }
            ],
        }
        aws.client("ec2").create_launch_template(LaunchTemplateName=name, LaunchTemplateData=defaults | data)
        return name

    return create


@pytest.fixture
def fleet(aws: Aws, template: Callable[..., str]) -> Callable[..., dict[str, Any]]:
    """Create an instant fleet from overrides; the launch template is made when there is none yet."""

    def create(
        overrides: list[dict[str, Any]],
        count: int = 1,
        capacity_type: str = "on-demand",
        strategy: str = "lowest-price",
        name: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        option = "SpotOptions" if capacity_type == "spot" else "OnDemandOptions"
        specification = {"LaunchTemplateName": name or template(), "Version": "$Latest"}
        request = {
            "Type": "instant",
            "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": specification, "Overrides": overrides}],
            "TargetCapacitySpecification": {
                "TotalTargetCapacity": count,
                "DefaultTargetCapacityType": capacity_type,
            },
            option: {"AllocationStrategy": strategy},
        }
        return aws.client("ec2").create_fleet(**(request | more))

    return create

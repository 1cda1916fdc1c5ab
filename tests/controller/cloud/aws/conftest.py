"""One local AWS for the package's sandbox tests, emptied before each, and a platform to launch on."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from random import Random
from typing import Any

import attrs
import boto3
import pytest

from controller.clock import SystemClock
from controller.cloud.aws import AwsOperator, AwsSettings, Surroundings
from controller.cloud.aws.building import assemble
from controller.cloud.aws.catalogue import Catalogue
from controller.cloud.aws.gateway import Aws, connect
from controller.cloud.aws.metrics import AwsMetrics
from controller.cloud.aws.shape import TypeShape
from controller.cluster import Mirror
from controller.kube import Key, kinds
from controller.observability.metrics import Metrics
from sandbox.aws import AwsProcess
from sandbox.aws.control import Control
from tests.controller.cloud.aws.builders import CLUSTER, REGION, node_class_wire
from tests.controller.cloud.aws.fakes import FakeApi, FakeRecorder

TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
        ],
    }
)
SETTINGS = AwsSettings(cluster_name=CLUSTER, region=REGION, cluster_ca_bundle="Q0E=")


@attrs.define(kw_only=True)
class Running:
    """What all tests share: the server, the clients, and the catalogue, which no test changes."""

    endpoint: str
    aws: Aws
    shapes: Mapping[str, TypeShape] | None = None
    zones: Mapping[str, frozenset[str]] | None = None

    async def fill(self, catalogue: Catalogue) -> None:
        """Give a new provider the catalogue, read once a session."""
        if self.shapes is None or self.zones is None:
            await catalogue.refresh()
            self.shapes, self.zones = catalogue.shapes, catalogue.zones
        catalogue.shapes, catalogue.zones = self.shapes, self.zones
        catalogue.all_zones = tuple(sorted(frozenset().union(*self.zones.values())))


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with AwsProcess(region=REGION, directory=tmp_path_factory.mktemp("aws")) as process:
        before = dict(os.environ)
        os.environ.update(
            AWS_ENDPOINT_URL=process.endpoint,
            AWS_ACCESS_KEY_ID="test",
            AWS_SECRET_ACCESS_KEY="test",
            AWS_DEFAULT_REGION=REGION,
        )
        aws = connect(SystemClock(), user_agent="test", region=REGION)
        yield Running(endpoint=process.endpoint, aws=aws)
        aws.caller.close()
        os.environ.clear()
        os.environ.update(before)


@attrs.define(kw_only=True)
class World:
    """A platform in the local AWS, and the provider that serves it."""

    control: Control
    operator: AwsOperator
    api: FakeApi
    recorder: FakeRecorder
    vpc: str

    def client(self, service: str) -> Any:
        return boto3.client(service)

    async def reconcile(self, name: str, key: str = "") -> Any:
        """Run one of the operator's controllers once."""
        (spec,) = [spec for spec in self.operator.controllers if spec.reconciler.name == name]
        return await spec.reconciler.reconcile(Key(name=key))

    async def resolve(self, name: str = "default", **spec: Any) -> Any:
        """Create a class and resolve it; return what the mirror sees."""
        self.api.add(kinds.EC2NODECLASS, node_class_wire(name, **spec))
        await self.reconcile("nodeclass.hash", name)
        await self.reconcile("nodeclass", name)
        return self.api.node_class(name)

    def claim(self, wire: dict[str, Any], **meta: Any) -> Any:
        """Create a claim; return what the mirror sees."""
        self.api.add(kinds.NODECLAIM, wire, **meta)
        return self.api.mirror.claims[wire["metadata"]["name"]]


@pytest.fixture
async def world(running: Running) -> AsyncIterator[World]:
    control = Control(running.endpoint)
    control.reset()
    control.clear(requests=True)
    vpc = make_platform()
    mirror = Mirror()
    api, recorder, metrics = FakeApi(mirror), FakeRecorder(), Metrics()

    async def server_version() -> str:
        return "v1.34.4"

    operator = assemble(
        SETTINGS,
        running.aws,
        Surroundings(
            client=api,  # type: ignore[arg-type]  # a double with the same methods
            mirror=mirror,
            recorder=recorder,  # type: ignore[arg-type]  # the same
            clock=SystemClock(),
            random=Random(7),  # noqa: S311 - equal names in every run
            registry=metrics.registry,
            server_version=server_version,
        ),
        AwsMetrics(metrics.registry),
        dns_ip="10.100.0.10",
    )
    await running.fill(operator.parts.catalogue)
    return World(control=control, operator=operator, api=api, recorder=recorder, vpc=vpc)


def make_platform() -> str:
    """Make a network, a node role and a cluster; return the network's id."""
    ec2, iam, eks = boto3.client("ec2"), boto3.client("iam"), boto3.client("eks")
    tags = [{"Key": "karpenter.sh/discovery", "Value": CLUSTER}]
    vpc: str = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=f"10.0.{index * 16}.0/20",
            AvailabilityZone=f"{REGION}{zone}",
            TagSpecifications=[{"ResourceType": "subnet", "Tags": tags}],
        )["Subnet"]["SubnetId"]
        for index, zone in enumerate("abc")
    ]
    ec2.create_security_group(
        GroupName="nodes",
        Description="nodes",
        VpcId=vpc,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
    )
    role = iam.create_role(RoleName="node", AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    eks.create_cluster(name=CLUSTER, roleArn=role, version="1.34", resourcesVpcConfig={"subnetIds": subnets})
    return vpc

"""Instances become nodes once, when they are due and admitted, and fall silent when they end."""

from __future__ import annotations

import base64
from typing import Any, cast

import attrs
import pytest

from sandbox.kubernetes.api import Api, ApiError
from sandbox.kubernetes.kubeconfig import Access
from sandbox.nodes.agent import Agent
from sandbox.nodes.cloud import BootSettings, Cloud, Instance, NodeGroup
from sandbox.nodes.cloud_controller import CloudController
from sandbox.nodes.kubelet import HEARTBEAT_LABEL
from sandbox.nodes.machine_shape import MachineShape

SERVER, AUTHORITY = "https://127.0.0.1:6443", b"the authority"
ROLE = "arn:aws:iam::123456789012:role/node"


def user_data(server: str = SERVER, authority: bytes = AUTHORITY) -> str:
    return f"""
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: demo
    apiServerEndpoint: {server}
    certificateAuthority: {base64.b64encode(authority).decode()}
    cidr: 10.100.0.0/16
"""


def an_instance(instance_id: str = "i-1", **changes: Any) -> Instance:
    instance = Instance(
        id=instance_id,
        type="m6i.large",
        zone="eu-west-2a",
        zone_id="euw2-az2",
        private_dns=f"{instance_id}.internal",
        address="10.0.0.1",
        image_id="ami-1",
        profile="arn:aws:iam::123456789012:instance-profile/node",
        tags={},
        root_volume="vol-1",
    )
    return attrs.evolve(instance, **changes)


@attrs.define
class FakeCloud:
    """AWS with a list of running instances."""

    instances: list[Instance] = attrs.field(factory=list)
    data: str = attrs.field(factory=user_data)
    entry_type: str | None = "EC2_LINUX"
    settings: BootSettings = attrs.field(factory=BootSettings)
    region: str = "eu-west-2"

    def running(self) -> tuple[Instance, ...]:
        return tuple(self.instances)

    def boot_settings(self) -> BootSettings:
        return self.settings

    def user_data(self, instance_id: str) -> str:
        return self.data

    def shape(self, instance_type: str) -> MachineShape:
        return MachineShape(
            instance_type=instance_type, architecture="amd64", cpus=2, memory_kib=8_000_000, network_pods=29
        )

    def volume_bytes(self, volume_id: str) -> int:
        return 20 * 1024**3

    def role(self, profile: str) -> str | None:
        return ROLE

    def access_entry_type(self, cluster: str, role: str) -> str | None:
        return self.entry_type

    def node_group(self, cluster: str, name: str) -> NodeGroup:
        return NodeGroup(
            endpoint=SERVER,
            certificate_authority=base64.b64encode(AUTHORITY).decode(),
            labels={"eks.amazonaws.com/nodegroup": name},
            taints=(),
        )


@attrs.define
class FakeApi:
    """An API server that holds nodes only."""

    nodes: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    creators: list[str] = attrs.field(factory=list)
    access: Access = attrs.field(factory=lambda: Access(server=SERVER, authority=AUTHORITY, token="t"))
    identity: str = "admin"

    def as_node(self, name: str) -> FakeApi:
        return FakeApi(self.nodes, self.creators, self.access, f"system:node:{name}")

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        name = body["metadata"]["name"]
        if name in self.nodes:
            raise ApiError(f"POST {path}", 409, "AlreadyExists", "")
        body["metadata"]["uid"] = f"uid-{name}"
        self.nodes[name] = body
        self.creators.append(self.identity)
        return body

    def find(self, path: str) -> dict[str, Any] | None:
        return self.nodes.get(path.rpartition("/")[2])

    def get(self, path: str) -> dict[str, Any]:
        return {"gitVersion": "v1.34.4"} if path == "/version" else self.nodes[path.rpartition("/")[2]]

    def list(self, path: str) -> tuple[list[dict[str, Any]], str]:
        return list(self.nodes.values()), "1"

    def merge(self, path: str, body: dict[str, Any]) -> None:
        labels = self.nodes[path.rpartition("/")[2]]["metadata"]["labels"]
        for key, value in body["metadata"]["labels"].items():
            labels.pop(key, None) if value is None else labels.update({key: value})

    def delete(self, path: str, body: dict[str, Any]) -> None:
        del self.nodes[path.rpartition("/")[2]]


@attrs.define
class World:
    """An agent on fakes, with a clock moved by hand."""

    cloud: FakeCloud = attrs.field(factory=FakeCloud)
    api: FakeApi = attrs.field(factory=FakeApi)
    now: float = 0.0
    said: list[str] = attrs.field(factory=list)
    agent: Agent = attrs.field(init=False)
    cloud_controller: CloudController = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.agent = Agent(
            cast("Cloud", self.cloud), cast("Api", self.api), monotonic=lambda: self.now, say=self.said.append
        )
        self.cloud_controller = CloudController(self.agent, cast("Api", self.api), say=self.said.append)
        self.agent.recover()

    def tick(self, seconds: float = 0) -> None:
        """Move on, look once, and wait for what was begun."""
        self.now += seconds
        self.agent.tick()
        self.agent.settle()


@pytest.fixture
def world() -> World:
    return World()


def test_an_instance_joins_by_its_own_identity_when_its_boot_time_is_over(world: World) -> None:
    world.cloud.instances = [an_instance()]

    world.tick()
    world.tick(4.9)
    early = dict(world.api.nodes)
    world.tick(0.2)

    assert early == {}
    assert list(world.api.nodes) == ["i-1.internal"]
    assert world.api.creators == ["system:node:i-1.internal"]


def test_a_node_deleted_by_hand_does_not_come_back(world: World) -> None:
    world.cloud.instances = [an_instance()]
    world.tick()
    world.tick(6)
    world.api.nodes.clear()

    world.tick(60)

    assert world.api.nodes == {}


@pytest.mark.parametrize(
    ("cloud", "reason"),
    [
        (FakeCloud(entry_type=None), "has no access entry in cluster demo"),
        (FakeCloud(entry_type="STANDARD"), "is STANDARD, not EC2_LINUX"),
        (FakeCloud(data=user_data(server="https://10.0.0.1")), "its API server is https://10.0.0.1"),
        (FakeCloud(data=user_data(authority=b"another")), "signed by another authority"),
        (FakeCloud(data=""), "there is no user data"),
        (FakeCloud(settings=BootSettings(never_join=("m6i.*",))), None),
    ],
)
def test_an_instance_that_would_not_join_does_not(cloud: FakeCloud, reason: str | None) -> None:
    world = World(cloud)
    cloud.instances = [an_instance()]

    world.tick()
    world.tick(60)

    assert world.api.nodes == {}
    assert reason is None if not world.said else reason is not None and reason in world.said[0]


def test_a_refused_instance_joins_once_the_access_entry_is_there(world: World) -> None:
    world.cloud.instances = [an_instance()]
    world.cloud.entry_type = None
    world.tick()
    world.tick(6)

    world.cloud.entry_type = "EC2_LINUX"
    world.tick(6)

    assert list(world.api.nodes) == ["i-1.internal"]


def test_an_instance_without_profile_has_no_identity_to_join_with(world: World) -> None:
    world.cloud.instances = [an_instance(profile=None)]

    world.tick()
    world.tick(6)

    assert "no identity to join with" in world.said[0]


def test_an_instance_of_a_managed_node_group_needs_no_user_data(world: World) -> None:
    world.cloud.data = ""
    tags = {"eks:cluster-name": "demo", "eks:nodegroup-name": "system"}
    world.cloud.instances = [an_instance(tags=tags)]

    world.tick()
    world.tick(6)

    assert world.api.nodes["i-1.internal"]["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] == "system"


def test_a_node_falls_silent_with_its_instance_and_goes_when_it_is_not_ready(world: World) -> None:
    world.cloud.instances = [an_instance()]
    world.tick()
    world.tick(6)
    node = world.api.nodes["i-1.internal"]
    node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]

    world.cloud.instances = []
    world.tick(1)
    world.cloud_controller.tick()

    assert HEARTBEAT_LABEL not in node["metadata"]["labels"]
    assert world.agent.is_dead("i-1.internal")
    assert list(world.api.nodes) == ["i-1.internal"]  # silent, but not yet known to be

    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    world.cloud_controller.tick()

    assert world.api.nodes == {}


def test_a_new_agent_takes_over_the_nodes_of_the_one_before(world: World) -> None:
    world.cloud.instances = [an_instance()]
    world.tick()
    world.tick(6)

    later = World(FakeCloud(), world.api)
    later.tick()

    assert later.agent.silenced == {"i-1.internal": "i-1"}
    assert world.api.creators == ["system:node:i-1.internal"]

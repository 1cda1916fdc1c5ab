"""CapacityBuffers: template, replicas, status, room (core/scheduling §16, core/api §6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controller.cluster import Mirror
from controller.kube import Key, kinds
from controller.provisioning import Batching, ClaimWriter, Provisioner, build
from controller.provisioning.buffers import buffer_replicas
from controller.scheduling import Options, Plan, Problem, solve
from framework.api import CapacityBuffer
from tests.controller.fakes.objects import a_pod
from tests.controller.fakes.world import World

KEY = Key(name="web", namespace="shop")


class Buffers:
    def __init__(self) -> None:
        world = self.world = World(mirror=Mirror(buffers=True))
        writer = ClaimWriter(
            world.shell.client, world.mirror, metrics=world.metrics, random=world.shell.random
        )
        specs = build(world.shell, world.cloud, self.plan, writer, options=Options(), batching=Batching())
        found = {each.reconciler.name: each.reconciler for each in specs}
        self.resolver = found["capacitybuffer"]
        assert isinstance(found["provisioner"], Provisioner)
        self.provisioner = found["provisioner"]

    async def plan(self, problem: Problem) -> Plan:
        return solve(problem)

    def put(self, **spec: Any) -> None:
        self.world.api.put(kinds.CAPACITYBUFFER, {"metadata": {"name": "web"}, "spec": spec}, "shop")

    def put_template(self, spec: dict[str, Any] | None = None) -> None:
        pod = {"metadata": {"labels": {"app": "web"}}, "spec": spec or a_pod(cpu="2")["spec"]}
        self.world.api.put(kinds.PODTEMPLATE, {"metadata": {"name": "t"}, "template": pod}, "shop")

    def put_deployment(self, replicas: int) -> None:
        template = {"spec": a_pod(cpu="1")["spec"]}
        body = {"metadata": {"name": "web"}, "spec": {"replicas": replicas, "template": template}}
        self.world.api.put(kinds.DEPLOYMENT, body, "shop")

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.world.api.read(kinds.CAPACITYBUFFER, "web", "shop").get("status", {}))

    def condition(self, type: str) -> tuple[str, str]:
        return next((c["status"], c["reason"]) for c in self.status["conditions"] if c["type"] == type)


@pytest.fixture
def buffers() -> Buffers:
    return Buffers()


async def test_a_buffer_of_a_template_makes_nodes_and_says_so(buffers: Buffers) -> None:
    buffers.put_template()
    buffers.put(podTemplateRef={"name": "t"}, replicas=2)

    requeue = await buffers.resolver.reconcile(KEY)
    await buffers.provisioner.serve()

    assert requeue.after == timedelta(seconds=30)
    assert (buffers.status["replicas"], buffers.status["podTemplateRef"]) == (2, {"name": "t"})
    assert buffers.status["podTemplateGeneration"] == 1
    assert buffers.condition("ReadyForProvisioning") == ("True", "Resolved")
    assert buffers.condition("Provisioning") == ("False", "RequiresNewCapacity")
    names = buffers.world.api.names(kinds.NODECLAIM)
    requests = [buffers.world.claim(name)["spec"]["resources"]["requests"]["cpu"] for name in names]
    assert requests == ["2", "2"]

    for name in names:
        await buffers.world.lifecycle(name)
    await buffers.provisioner.serve()

    assert buffers.condition("Provisioning") == ("True", "FitsExistingCapacity")
    assert buffers.world.api.names(kinds.NODECLAIM) == names


async def test_a_buffer_in_percent_follows_its_workload(buffers: Buffers) -> None:
    buffers.put_deployment(replicas=5)
    buffers.put(scalableRef={"kind": "Deployment", "name": "web"}, percentage=30)

    await buffers.resolver.reconcile(KEY)

    assert buffers.status["replicas"] == 2


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"podTemplateRef": {"name": "t"}, "replicas": 1}, "PodTemplateNotFound"),
        ({"scalableRef": {"kind": "Deployment", "name": "web"}}, "ScalableRefNotFound"),
        ({"scalableRef": {"kind": "CronJob", "name": "web"}}, "ResolutionFailed"),
        ({"scalableRef": {"kind": "Deployment", "name": "web", "apiGroup": "other"}}, "ResolutionFailed"),
        ({"replicas": 1}, "ResolutionFailed"),
        ({"replicas": 1, "provisioningStrategy": "other"}, "ResolutionFailed"),
    ],
    ids=["no template", "no workload", "unknown kind", "unknown group", "no reference", "unknown strategy"],
)
async def test_a_buffer_whose_pods_are_not_known_says_why(
    buffers: Buffers, spec: dict[str, Any], reason: str
) -> None:
    buffers.put(**spec)

    await buffers.resolver.reconcile(KEY)

    assert buffers.condition("ReadyForProvisioning") == ("False", reason)
    assert buffers.condition("Provisioning") == ("False", "NotReadyForProvisioning")
    assert buffers.world.mirror.snapshot(buffers.world.clock.now()).buffers == ()


async def test_an_empty_buffer_says_so(buffers: Buffers) -> None:
    buffers.put_template()
    buffers.put(podTemplateRef={"name": "t"}, replicas=0)

    await buffers.resolver.reconcile(KEY)

    assert buffers.condition("Provisioning") == ("False", "BufferEmpty")


async def test_a_template_that_is_gone_takes_its_room_along(buffers: Buffers) -> None:
    buffers.put_template()
    buffers.put(podTemplateRef={"name": "t"}, replicas=2)
    await buffers.resolver.reconcile(KEY)
    before = buffers.world.mirror.consolidation_stamp(buffers.world.clock.now())
    buffers.world.api.remove(kinds.PODTEMPLATE, "t", "shop")

    await buffers.resolver.reconcile(KEY)

    assert buffers.status.get("replicas") is None
    assert buffers.world.mirror.snapshot(buffers.world.clock.now()).buffers == ()
    assert buffers.world.mirror.consolidation_stamp(buffers.world.clock.now()) != before


async def test_a_deleted_buffer_keeps_no_room(buffers: Buffers) -> None:
    buffers.put_template()
    buffers.put(podTemplateRef={"name": "t"}, replicas=2)
    await buffers.resolver.reconcile(KEY)
    buffers.world.api.remove(kinds.CAPACITYBUFFER, "web", "shop")

    assert buffers.world.mirror.snapshot(buffers.world.clock.now()).buffers == ()


async def test_volumes_that_stay_on_disk_are_left_out(buffers: Buffers) -> None:
    spec = a_pod()["spec"] | {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    buffers.put_template(spec)
    buffers.put(podTemplateRef={"name": "t"}, replicas=1)

    await buffers.resolver.reconcile(KEY)

    (buffer,) = buffers.world.mirror.snapshot(buffers.world.clock.now()).buffers
    assert buffer.sample.volume_claims == ()
    assert buffer.sample.labels == {"app": "web"}


@pytest.mark.parametrize(
    ("spec", "workload", "replicas"),
    [
        ({"replicas": 3}, None, 3),
        ({"percentage": 30}, 5, 2),
        ({"percentage": 1}, 5, 1),
        ({"percentage": 50}, 0, 0),
        ({"replicas": 1, "percentage": 100}, 5, 5),
        ({"replicas": 9, "limits": {"cpu": "5"}}, None, 2),
        ({"limits": {"cpu": "9", "memory": "3Gi"}}, None, 3),
        ({"limits": {"example.com/gpu": "9"}}, None, 0),
        ({}, 5, 0),
    ],
)
def test_the_size_of_a_buffer(spec: dict[str, Any], workload: int | None, replicas: int) -> None:
    buffer = CapacityBuffer.from_wire({"metadata": {"name": "b", "namespace": "n"}, "spec": spec})

    assert buffer_replicas(buffer, {"cpu": 2000, "memory": 2**30, "pods": 1}, workload) == replicas

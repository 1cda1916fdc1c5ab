"""Objects that cannot be read: told to their owner, in nobody's way, and forgotten once mended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from controller.clock import SystemClock
from controller.cluster import Mirror, watch_all
from controller.kube import SINGLETON, Client, Kind, Recorder, TokenBucket, WireObject, connect, kinds
from controller.nodeclaims.malformed import MalformedObjects
from controller.observability import Metrics
from framework.api import crds
from sandbox.kubernetes import Api, ControlPlane
from tests.controller.fakes.objects import CLASS, a_claim, a_node_class, a_pod, a_pool
from tests.controller.fakes.tasks import beside
from tests.controller.fakes.world import World

LOOK = "object.malformed"
OVERLAY = {"metadata": {"name": "o"}, "spec": {"requirements": [], "price": "0.1"}}
CONFIG = {"metadata": {"name": "c"}, "spec": {"nodeClassRef": CLASS}}


def verdict(obj: WireObject) -> tuple[str, str] | None:
    """Return status and reason of our condition."""
    for each in obj.get("status", {}).get("conditions", ()):
        if each["type"] == "ValidationSucceeded":
            return (each["status"], each["reason"])
    return None


def broken(obj: WireObject, **spec: Any) -> WireObject:
    return {**obj, "spec": {**obj["spec"], **spec}}


@pytest.mark.parametrize(
    ("kind", "sound", "fault"),
    [
        (kinds.NODEPOOL, a_pool("web"), {"weight": "heavy"}),
        (kinds.NODEPOOL, a_pool("web"), {"template": "none"}),
        (kinds.NODECLAIM, a_claim("web-abcde"), {"expireAfter": ["soon"]}),
        (kinds.EC2NODECLASS, a_node_class("web"), {"blockDeviceMappings": 7}),
        (kinds.NODEOVERLAY, OVERLAY, {"requirements": {"key": "a"}}),
        (kinds.SCHEDULINGCONFIG, CONFIG, {"headroom": "much"}),
    ],
)
async def test_a_malformed_object_gets_condition_and_event_until_mended(
    kind: Kind, sound: WireObject, fault: WireObject
) -> None:
    world = World()
    name = sound["metadata"]["name"]
    world.api.put(kind, broken(sound, **fault))
    assert world.woken[LOOK] == [SINGLETON]

    await world.run(LOOK)

    assert verdict(world.api.read(kind, name)) == ("False", "Malformed")
    (event,) = world.events.seen
    assert (event.regarding.name, event.reason, str(event.type)) == (name, "Malformed", "Warning")
    assert world.mirror.store(kind).get(name) is None

    await world.api.patch(kind, name, {"spec": {field: sound["spec"].get(field) for field in fault}})
    await world.run(LOOK)

    assert verdict(world.api.read(kind, name)) is None
    assert (world.mirror.malformed, len(world.events.seen)) == ((), 1)


async def test_the_last_readable_state_counts() -> None:
    world = World()
    world.api.put(kinds.NODEPOOL, a_pool("web", weight=10))

    await world.api.patch(kinds.NODEPOOL, "web", {"spec": {"weight": "heavy"}})
    await world.run(LOOK)

    assert world.mirror.pools["web"].spec.weight == 10
    assert verdict(world.api.read(kinds.NODEPOOL, "web")) == ("False", "Malformed")


async def test_the_condition_is_written_once() -> None:
    world = World()
    world.api.put(kinds.NODEPOOL, a_pool("web", weight="heavy"))
    await world.run(LOOK)
    before = len(world.api.calls)

    await world.run(LOOK)

    assert [call for call in world.api.calls[before:] if call[0] == "patch"] == []


async def test_a_malformed_status_is_put_right() -> None:
    world = World()
    world.api.put(kinds.NODEPOOL, {**a_pool("web"), "status": {"conditions": "none"}})

    await world.run(LOOK)

    assert verdict(world.api.read(kinds.NODEPOOL, "web")) == ("False", "Malformed")


async def test_objects_of_others_get_an_event_alone() -> None:
    world = World()
    pod = a_pod("web")
    pod["spec"]["containers"] = "none"
    world.api.put(kinds.POD, pod, "default")

    await world.run(LOOK)

    assert [event.regarding.name for event in world.events.seen] == ["web"]
    assert "conditions" not in str([call for call in world.api.calls if call[0] == "patch"])


async def test_what_is_gone_is_forgotten() -> None:
    world = World()
    world.api.put(kinds.NODEPOOL, a_pool("web", weight="heavy"))

    await world.api.delete(kinds.NODEPOOL, "web")

    assert world.mirror.malformed == ()


@pytest.fixture(scope="module")
def permissive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane whose CRDs let everything pass, as those of an older version may."""
    plane = ControlPlane(tmp_path_factory.mktemp("plane"))
    plane.start()
    try:
        for crd in crds():
            crd = dict(crd)
            for version in crd["spec"]["versions"]:
                anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                version["schema"] = {"openAPIV3Schema": anything}
                version.pop("selectableFields", None)
            Api(plane.admin).create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        yield plane
    finally:
        plane.stop()


@pytest.mark.sandbox
async def test_a_real_server_that_lets_it_pass(permissive: ControlPlane) -> None:
    api, clock, mirror = Api(permissive.admin), SystemClock(), Mirror()
    pools = "/apis/karpenter.sh/v1/nodepools"
    head = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}
    api.create(pools, head | a_pool("wrong", weight="heavy"))
    api.create(pools, head | a_pool("right"))
    connection = await connect(str(permissive.kubeconfig))
    limit = TokenBucket(clock, rate=200, burst=300)
    async with Client(connection, clock=clock, metrics=Metrics(), limit=limit, user_agent="test") as client:
        random = Random(0)  # noqa: S311 - jitter
        recorder = Recorder(client, clock=clock, random=random)
        look = MalformedObjects(mirror, client, recorder, clock)
        async with beside(watch_all(client, mirror, clock=clock, random=random)), beside(recorder.run()):
            async with asyncio.timeout(30):
                while not mirror.listed:  # noqa: ASYNC110 - watches a server, not a task
                    await asyncio.sleep(0.02)
                await look.reconcile(SINGLETON)
                query = "/api/v1/namespaces/default/events"
                while not api.list(query, fieldSelector="reason=Malformed")[0]:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

    assert verdict(api.get(f"{pools}/wrong")) == ("False", "Malformed")
    assert set(mirror.pools) == {"right"}

"""Client, watches, events and lease on a real API server, with exactly the permissions the stack grants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from controller.clock import SystemClock
from controller.cluster import Mirror, Writer, watch_all
from controller.kube import (
    AlreadyExists,
    Client,
    Conflict,
    Event,
    Forbidden,
    Invalid,
    Key,
    Kind,
    LeaderElector,
    LeaseSettings,
    NotFound,
    ObjectRef,
    Recorder,
    TokenBucket,
    connect,
    kinds,
)
from controller.nodeclaims.schedulingconfigs import ConfigStatus
from controller.observability import Metrics
from controller.provisioning import Batcher
from controller.provisioning.buffers import BufferResolver
from framework.api import crds
from framework.api.conditions import is_true
from framework.components import rbac_rules
from sandbox.kubernetes import Api, ControlPlane
from tests.controller.fakes.objects import CLASS, a_claim, a_pod, a_pool
from tests.controller.fakes.tasks import beside

pytestmark = pytest.mark.sandbox
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SECRET = Kind(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    plane = ControlPlane(tmp_path_factory.mktemp("plane"))
    plane.start()
    try:
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="module")
def environ(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a pod whose service account has the controller's roles."""
    api = Api(plane.admin)
    for crd in crds(frozenset({"CapacityBuffer"})):
        api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", dict(crd))
    account = "/api/v1/namespaces/kube-system/serviceaccounts"
    api.create(account, {"metadata": {"name": "karpenter"}})
    cluster = (*rbac_rules.CORE_READ, *rbac_rules.CORE_WRITE, *rbac_rules.AWS)
    _grant(api, "ClusterRole", "clusterroles", cluster)
    _grant(api, "Role", "namespaces/kube-system/roles", rbac_rules.LEASES)
    token = api.create(f"{account}/karpenter/token", {"spec": {"expirationSeconds": 3600}})
    directory = tmp_path_factory.mktemp("serviceaccount")
    (directory / "token").write_text(token["status"]["token"])
    (directory / "ca.crt").write_bytes(plane.authority.pair.certificate)
    (directory / "namespace").write_text("kube-system")
    host, _, port = plane.server.removeprefix("https://").partition(":")
    return {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
        "CHARPENTE_SERVICEACCOUNT_DIR": str(directory),
    }


def _grant(api: Api, kind: str, path: str, rules: Any) -> None:
    api.create(
        f"{RBAC}/{path}", {"metadata": {"name": "karpenter"}, "rules": [rule.to_wire() for rule in rules]}
    )
    subject = {"kind": "ServiceAccount", "name": "karpenter", "namespace": "kube-system"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "karpenter"}
    body = {"metadata": {"name": "karpenter"}, "subjects": [subject], "roleRef": reference}
    api.create(f"{RBAC}/{path.replace('roles', 'rolebindings')}", body)


@pytest.fixture
async def client(environ: dict[str, str]) -> AsyncIterator[Client]:
    clock = SystemClock()
    connection = await connect(environ=environ)
    limit = TokenBucket(clock, rate=200, burst=300)
    async with Client(connection, clock=clock, metrics=Metrics(), limit=limit, user_agent="test") as client:
        yield client


@pytest.fixture
async def mirror(client: Client) -> AsyncIterator[Mirror]:
    mirror = Mirror(buffers=True)
    async with beside(watch_all(client, mirror, clock=SystemClock(), random=Random(0))):  # noqa: S311
        await eventually(lambda: mirror.listed)
        yield mirror


async def eventually(holds: Any, seconds: float = 15) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - watches a server, not a task
            await asyncio.sleep(0.02)


async def test_every_mirrored_kind_may_be_read(mirror: Mirror) -> None:
    assert mirror.store(kinds.NODEPOOL).installed
    assert mirror.store(kinds.NODECLAIM).installed
    assert mirror.store(kinds.NAMESPACE).get("kube-system") is not None


async def test_writes_are_seen_and_old_versions_refused(
    plane: ControlPlane, client: Client, mirror: Mirror
) -> None:
    pool = a_pool("seen") | {"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}
    Api(plane.admin).create("/apis/karpenter.sh/v1/nodepools", pool)
    await eventually(lambda: "seen" in mirror.pools)
    created = await client.create(kinds.NODECLAIM, a_claim("seen-abcde"))
    await eventually(lambda: "seen-abcde" in mirror.claims)
    claim = mirror.claims["seen-abcde"]

    stale = {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
    with pytest.raises(Conflict):
        await client.patch(kinds.NODECLAIM, "seen-abcde", stale)
    with pytest.raises(AlreadyExists):
        await client.create(kinds.NODECLAIM, a_claim("seen-abcde"))
    with pytest.raises(Invalid):
        await client.create(kinds.NODECLAIM, a_claim("bad", spec={"expireAfter": "soon"}))
    await Writer(client, mirror).delete_claim(claim)

    assert mirror.claims["seen-abcde"].deleting
    assert created["metadata"]["uid"] == claim.metadata.uid
    await client.patch(kinds.NODECLAIM, "seen-abcde", {"metadata": {"finalizers": []}})
    await eventually(lambda: "seen-abcde" not in mirror.claims)
    with pytest.raises(NotFound):
        await client.get(kinds.NODECLAIM, "seen-abcde")


async def test_configs_and_buffers_are_judged(plane: ControlPlane, client: Client, mirror: Mirror) -> None:
    api, clock, writer = Api(plane.admin), SystemClock(), Writer(client, mirror)
    config = {"metadata": {"name": "judged"}, "spec": {"nodeClassRef": {**CLASS, "name": "of-no-pool"}}}
    api.create("/apis/karpenter.sh/v1/schedulingconfigs", _typed(kinds.SCHEDULINGCONFIG, config))
    template = {"metadata": {"name": "t"}, "template": {"spec": a_pod()["spec"]}}
    template["template"]["spec"]["containers"][0]["image"] = "pause"
    api.create("/api/v1/namespaces/default/podtemplates", template)
    buffer = {"metadata": {"name": "judged"}, "spec": {"podTemplateRef": {"name": "t"}, "replicas": 3}}
    api.create(kinds.CAPACITYBUFFER.path("default"), _typed(kinds.CAPACITYBUFFER, buffer))
    key = Key(name="judged", namespace="default")
    await eventually(lambda: "judged" in mirror.scheduling_configs and key in mirror.buffers)
    batcher = Batcher(clock, idle=timedelta(seconds=1), longest=timedelta(seconds=1))

    await ConfigStatus(mirror, writer, clock).reconcile(Key(name="judged"))
    await BufferResolver(mirror=mirror, client=client, writer=writer, batcher=batcher, clock=clock).reconcile(
        key
    )

    assert is_true(mirror.scheduling_configs["judged"].status.conditions, "Ready")
    assert mirror.buffers[key].status.replicas == 3
    assert is_true(mirror.buffers[key].status.conditions, "ReadyForProvisioning")


def _typed(kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **body}


async def test_a_missing_permission_is_named(client: Client) -> None:
    with pytest.raises(Forbidden, match="secrets"):
        await client.list(SECRET)


async def test_events_are_written(plane: ControlPlane, client: Client) -> None:
    recorder = Recorder(client, clock=SystemClock(), random=Random(0))  # noqa: S311
    regarding = ObjectRef(kind=kinds.NODEPOOL, name="web", uid="u")
    api = Api(plane.admin)
    async with beside(recorder.run()):
        recorder.publish(Event(regarding=regarding, reason="Tested", message="for real"))

        query = "/api/v1/namespaces/default/events"
        await eventually(lambda: api.list(query, fieldSelector="reason=Tested")[0])


async def test_a_released_lease_goes_to_the_other_replica(client: Client) -> None:
    clock = SystemClock()
    first, second = (
        LeaderElector(
            client,
            LeaseSettings(name=rbac_rules.LEASE, namespace="kube-system", identity=identity),
            clock=clock,
        )
        for identity in ("a", "b")
    )
    await first.acquire()
    waiting = asyncio.ensure_future(second.acquire())
    await asyncio.sleep(0.5)
    early = waiting.done()

    await first.release()
    await asyncio.wait_for(waiting, 5)

    assert (early, second.leading) == (False, True)


async def test_the_servers_version_is_read(client: Client) -> None:
    assert (await client.server_version()).startswith("v1.")

"""Instances become nodes here, as their own bootstrap would make them, and nodes of dead instances fall
silent.

`Agent.tick` is level-triggered: it looks at what runs in EC2, boots what is new, and takes the heartbeat
from nodes whose instance no longer runs. Called in a loop by `sandbox.daemon`. Nodes are created by the
node's own identity (`system:node:<name>`), so the Node authorizer and NodeRestriction have their say. It
never deletes a Node: that is `sandbox.nodes.cloud_controller`'s.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from fnmatch import fnmatch

import attrs
import urllib3
from botocore.exceptions import BotoCoreError, ClientError

from sandbox.kubernetes.api import Api, ApiError
from sandbox.nodes.bootstrap import Bootstrap, BootstrapError
from sandbox.nodes.cloud import BootSettings, Cloud, Instance
from sandbox.nodes.kubelet import HEARTBEAT_LABEL, HEARTBEAT_ON, Host, node_object
from sandbox.nodes.user_data import read

__all__ = ["Agent", "Refused"]

PARALLEL_BOOTS = 8
RETRY_S = 5.0
"""How often a kubelet that was refused tries again."""
GIB = 1024**3
DEFAULT_ROOT_BYTES = 20 * GIB
NODE_ENTRY_TYPES = ("EC2_LINUX", "EC2_WINDOWS", "EC2", "HYBRID_LINUX")


class Refused(Exception):
    """The cluster would not take the node now; its kubelet keeps trying."""


@attrs.define
class _Boot:
    """How far an instance is on its way to being a node."""

    running_since: float
    not_before: float = 0.0
    node: str | None = None
    """Set when it registered."""
    failed: str | None = None
    """Set when it never will."""
    in_flight: bool = False
    said: str = ""


class Agent:
    """The kubelets of all instances that belong to one cluster."""

    def __init__(
        self, cloud: Cloud, api: Api, *, monotonic: Callable[[], float], say: Callable[[str], None] = print
    ) -> None:
        """Take AWS, the cluster (as an identity that may impersonate) and a clock in seconds."""
        self._cloud = cloud
        self._api = api
        self._monotonic = monotonic
        self._say = say
        self._boots: dict[str, _Boot] = {}
        self._silenced: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(PARALLEL_BOOTS, thread_name_prefix="boot")
        self._under_way: list[Future[None]] = []
        self._version = ""

    @property
    def silenced(self) -> dict[str, str]:
        """Nodes whose instance is gone: node name → instance id, until `forget` is called."""
        return dict(self._silenced)

    def forget(self, node: str) -> None:
        """Drop a silenced node that is deleted."""
        self._silenced.pop(node, None)

    def is_dead(self, node: str) -> bool:
        """Whether the instance of a node is gone."""
        return node in self._silenced

    def recover(self) -> None:
        """Take over the nodes that an earlier process registered."""
        self._version = self._api.get("/version")["gitVersion"]
        nodes, _ = self._api.list("/api/v1/nodes")
        for node in nodes:
            provider_id = node["spec"].get("providerID", "")
            if provider_id.startswith("aws:///"):
                boot = _Boot(self._monotonic(), node=node["metadata"]["name"])
                self._boots[provider_id.rpartition("/")[2]] = boot

    def tick(self) -> None:
        """Look once, and act on what changed."""
        running = {i.id: i for i in self._cloud.running()}
        settings = self._cloud.boot_settings()
        now = self._monotonic()
        for instance in running.values():
            boot = self._boots.setdefault(instance.id, _Boot(now))
            if self._is_due(instance, boot, settings, now):
                boot.in_flight = True
                self._under_way.append(self._pool.submit(self._boot, instance, boot))
        self._under_way = [boot for boot in self._under_way if not boot.done()]
        for instance_id in [i for i in self._boots if i not in running]:
            boot = self._boots[instance_id]
            if not boot.in_flight:
                del self._boots[instance_id]
                self._silence(instance_id, boot)

    def settle(self) -> None:
        """Wait until every boot that is under way has come to an end."""
        wait(self._under_way)

    def close(self) -> None:
        """Wait for boots that are under way."""
        self._pool.shutdown(cancel_futures=True)

    def _is_due(self, instance: Instance, boot: _Boot, settings: BootSettings, now: float) -> bool:
        if boot.node or boot.failed or boot.in_flight or now < boot.not_before:
            return False
        if now - boot.running_since < settings.boot_seconds:
            return False
        names = (instance.id, instance.type, instance.zone)
        return not any(fnmatch(name, pattern) for pattern in settings.never_join for name in names)

    def _boot(self, instance: Instance, boot: _Boot) -> None:
        try:
            boot.node = self._join(instance)
            took = self._monotonic() - boot.running_since
            self._say(
                f"{instance.id} ({instance.type}, {instance.zone}): joined as {boot.node} after {took:.1f} s"
            )
        except BootstrapError as exc:
            boot.failed = str(exc)
            self._say(f"{instance.id}: never joins: {exc}")
        except (Refused, ApiError, ClientError, BotoCoreError, urllib3.exceptions.HTTPError, OSError) as exc:
            boot.not_before = self._monotonic() + RETRY_S
            if boot.said != str(exc):
                boot.said = str(exc)
                self._say(f"{instance.id}: not joined yet: {exc}")
        finally:
            boot.in_flight = False

    def _join(self, instance: Instance) -> str:
        bootstrap = self._bootstrap(instance)
        self._check_cluster(bootstrap)
        if instance.node_group is None:
            self._check_access(instance, bootstrap.cluster_name)
        shape = self._cloud.shape(instance.type)
        storage = self._storage_bytes(instance, bootstrap.striped_disks, shape.local_disks_bytes)
        host = Host(
            instance_id=instance.id,
            name=instance.private_dns,
            address=instance.address,
            zone=instance.zone,
            zone_id=instance.zone_id,
            region=self._cloud.region,
            image_id=instance.image_id,
            storage_bytes=storage,
            kubernetes_version=self._version,
        )
        self._register(node_object(host, shape, bootstrap), host)
        return host.name

    def _bootstrap(self, instance: Instance) -> Bootstrap:
        if instance.node_group is not None:
            cluster, name = instance.node_group
            group = self._cloud.node_group(cluster, name)
            image = {"eks.amazonaws.com/nodegroup-image": instance.image_id}
            return Bootstrap(
                cluster_name=cluster,
                endpoint=group.endpoint,
                certificate_authority=group.certificate_authority,
                labels={**group.labels, **image},
                taints=group.taints,
            )
        return read(self._cloud.user_data(instance.id))

    def _check_cluster(self, bootstrap: Bootstrap) -> None:
        access = self._api.access
        if bootstrap.endpoint.rstrip("/") != access.server.rstrip("/"):
            raise BootstrapError(f"its API server is {bootstrap.endpoint}, not this cluster's")
        try:
            authority = base64.b64decode(bootstrap.certificate_authority, validate=True)
        except ValueError as exc:
            raise BootstrapError("the certificate authority in its user data is not base64") from exc
        if authority.strip() != access.authority.strip():
            raise BootstrapError(
                "x509: the API server's certificate is signed by another authority than it was told"
            )

    def _check_access(self, instance: Instance, cluster: str) -> None:
        role = None if instance.profile is None else self._cloud.role(instance.profile)
        if role is None:
            raise Refused("the instance has no instance profile with a role, so no identity to join with")
        kind = self._cloud.access_entry_type(cluster, role)
        if kind is None:
            raise Refused(f"Unauthorized: {role} has no access entry in cluster {cluster}")
        if kind not in NODE_ENTRY_TYPES:
            raise Refused(
                f"Unauthorized: the access entry of {role} in cluster {cluster} is {kind}, not EC2_LINUX"
            )

    def _storage_bytes(self, instance: Instance, striped: bool, local_disks: int) -> int:
        if striped and local_disks:
            return local_disks
        if instance.root_volume is None:
            return DEFAULT_ROOT_BYTES
        return self._cloud.volume_bytes(instance.root_volume)

    def _register(self, node: dict[str, object], host: Host) -> None:
        kubelet = self._api.as_node(host.name)
        try:
            kubelet.create("/api/v1/nodes", node)
        except ApiError as exc:
            if exc.status != 409:
                raise
            found = kubelet.get(f"/api/v1/nodes/{host.name}")
            if not found["spec"].get("providerID", "").endswith(f"/{host.instance_id}"):
                raise Refused(f"a node {host.name} of another instance is still there") from exc

    def _silence(self, instance_id: str, boot: _Boot) -> None:
        if boot.node is None:
            return
        path = f"/api/v1/nodes/{boot.node}"
        node = self._api.find(path)
        # A node of the same name may stand for a younger instance by now.
        if node is None or not node["spec"].get("providerID", "").endswith(f"/{instance_id}"):
            return
        if node["metadata"]["labels"].get(HEARTBEAT_LABEL) == HEARTBEAT_ON:
            self._api.merge(path, {"metadata": {"labels": {HEARTBEAT_LABEL: None}}})
        self._silenced[boot.node] = instance_id
        self._say(f"{instance_id}: no longer runs; node {boot.node} falls silent")

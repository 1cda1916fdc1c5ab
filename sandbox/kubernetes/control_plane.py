"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-scheduler, kube-controller-manager.

Started by `sandbox.machine` and `python -m sandbox kubernetes`. Owns `<dir>/kubernetes` (certificates,
kubeconfigs, etcd's files) and four processes of the sandbox's process table. It authorises with RBAC and
the Node authorizer, restricts nodes by NodeRestriction, signs service account tokens, and optionally asks a
webhook about bearer tokens that it does not know (`sandbox.kubernetes.eks_tokens`). It never runs pods or
nodes.
"""

from __future__ import annotations

import ipaddress
import shutil
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import attrs
import yaml

from sandbox import tools
from sandbox.errors import SandboxError, StartFailed
from sandbox.kubernetes.api import Api, Object
from sandbox.kubernetes.certificates import Authority, new_key
from sandbox.kubernetes.kubeconfig import Access
from sandbox.processes import ProcessTable, Program, free_port, port_is_free

__all__ = ["PROGRAMS", "ControlPlane", "Options"]

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""The programs and process names, in the order in which they start."""
READY_TIMEOUT_S = 60
DNS_HOST = 10
"""The cluster's DNS is the tenth address of the service range, as on EKS."""
PORT_ATTEMPTS = 3
"""A free port can be taken by a neighbour between the look and the start; then other ports are tried."""


@attrs.frozen(kw_only=True)
class Options:
    """What may differ between two control planes."""

    port: int | None = None
    """Port of the API server; any free one when not set."""
    service_cidr: str = "10.100.0.0/16"
    """EKS takes 10.100.0.0/16, or 172.20.0.0/16 when the VPC has addresses in the former."""
    node_grace_s: int | None = None
    """Seconds without a lease after which a node is not ready; Kubernetes' own default (50) when not set."""
    follows_preferences: bool = False
    """Whether the scheduler takes, of the nodes that pass all its rules, the one a pod's node affinity likes
    best, and has no other taste."""
    token_webhook: str | None = None
    """Address of a TokenReview webhook, for instance `https://127.0.0.1:9999/authenticate`."""


class ControlPlane:
    """The control plane of the sandbox in `directory`."""

    def __init__(self, directory: Path, options: Options | None = None) -> None:
        """Remember where and how; nothing is started or written yet."""
        self._dir = directory / "kubernetes"
        self._options = options or Options()
        self._processes = ProcessTable(directory)
        self._etcd_port = 0
        self._port = 0
        self.kubeconfig = directory / "kubeconfig"

    @cached_property
    def authority(self) -> Authority:
        """The authority that signed everything here; it must have been created."""
        return Authority.load(self._dir / "pki")

    @property
    def server(self) -> str:
        """Address of the API server."""
        return self.admin.server

    @property
    def admin(self) -> Access:
        """Full access (group system:masters), from the kubeconfig file."""
        return Access.read(self.kubeconfig)

    def start(self) -> None:
        """Start everything and return when the API server, the scheduler and the controllers are at work.

        Raises: SandboxError when the port is taken; StartFailed with the end of a log otherwise.
        """
        alive = [r.name for r in self._processes.all() if r.name in PROGRAMS and r.alive]
        if alive:
            raise SandboxError(
                f"control plane in {self._dir}",
                f"runs already ({', '.join(alive)})",
                "use it, or stop it first: python -m sandbox down",
            )
        port = self._options.port
        if port is not None and not port_is_free(port):
            raise SandboxError(
                f"port {port}", "another program listens on it", "choose another or stop that program"
            )
        programs = tools.ensure(PROGRAMS)
        for attempt in range(1, PORT_ATTEMPTS + 1):
            self._port = port or free_port()
            self._etcd_port = free_port()
            try:
                self._start(programs)
                return
            except StartFailed as exc:
                self.stop()
                if attempt == PORT_ATTEMPTS or "address already in use" not in str(exc):
                    raise

    def stop(self) -> tuple[str, ...]:
        """End the processes and remove their files (logs stay); returns the names of those that ran."""
        stopped = self._processes.stop(PROGRAMS)
        shutil.rmtree(self._dir, ignore_errors=True)
        self.kubeconfig.unlink(missing_ok=True)
        self.__dict__.pop("authority", None)
        return stopped

    def _start(self, programs: Mapping[str, Path]) -> None:
        shutil.rmtree(self._dir, ignore_errors=True)
        self._write_files()
        api = Api(self.admin)
        self._run(programs, "etcd", self._etcd_flags())
        self._run(programs, "kube-apiserver", self._apiserver_flags())
        self._processes.wait_until(
            api.is_ready,
            needs=("kube-apiserver", "etcd"),
            what="the API server is ready",
            timeout_s=READY_TIMEOUT_S,
        )
        self._run(programs, "kube-controller-manager", self._controller_manager_flags())
        self._run(programs, "kube-scheduler", self._scheduler_flags())
        self._processes.wait_until(
            lambda: api.find("/api/v1/namespaces/default/serviceaccounts/default") is not None,
            needs=("kube-controller-manager", "kube-scheduler", "kube-apiserver", "etcd"),
            what="the controllers are at work",
            timeout_s=READY_TIMEOUT_S,
        )
        self._add_cluster_dns(api)

    def _add_cluster_dns(self, api: Api) -> None:
        """Create the Service of the cluster's DNS, which EKS clusters have and the controller looks up."""
        address = str(ipaddress.ip_network(self._options.service_cidr)[DNS_HOST])
        ports = [
            {"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
        ]
        service: Object = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kube-dns", "labels": {"k8s-app": "kube-dns"}},
            "spec": {"clusterIP": address, "selector": {"k8s-app": "kube-dns"}, "ports": ports},
        }
        api.create("/api/v1/namespaces/kube-system/services", service)

    def _run(self, programs: Mapping[str, Path], name: str, flags: Mapping[str, str | int | Path]) -> None:
        command = (str(programs[name]), *(f"--{flag}={value}" for flag, value in flags.items()))
        self._processes.start(Program(name=name, command=command))

    def _write_files(self) -> None:
        pki = self._dir / "pki"
        authority = Authority.create("charpente-sandbox")
        authority.pair.write(pki, "ca")
        self.__dict__.pop("authority", None)
        service = ipaddress.ip_network(self._options.service_cidr)[1]
        hosts = (
            "127.0.0.1",
            "localhost",
            str(service),
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
        )
        authority.issue("kube-apiserver", hosts=hosts).write(pki, "apiserver")
        authority.issue("etcd", hosts=("127.0.0.1",)).write(pki, "etcd")
        (pki / "service-accounts.key").touch(mode=0o600)
        (pki / "service-accounts.key").write_bytes(new_key())
        server = f"https://127.0.0.1:{self._port}"
        for path, user, groups in (
            (self.kubeconfig, "sandbox-admin", ("system:masters",)),
            (self._dir / "kube-controller-manager.yaml", "system:kube-controller-manager", ()),
            (self._dir / "kube-scheduler.yaml", "system:kube-scheduler", ()),
        ):
            pair = authority.issue(user, organizations=groups)
            Access(server=server, authority=authority.pair.certificate, client=pair).write(path)
        self._write_scheduler_configuration()
        if self._options.token_webhook is not None:
            # The webhook speaks with the authority's certificate too, and takes any caller on loopback.
            pair = authority.issue("kube-apiserver")
            Access(
                server=self._options.token_webhook, authority=authority.pair.certificate, client=pair
            ).write(self._dir / "token-webhook.yaml")

    def _write_scheduler_configuration(self) -> None:
        configuration: Object = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {
                "kubeconfig": str(self._dir / "kube-scheduler.yaml"),
                "qps": 500,
                "burst": 1000,
            },
        }
        if self._options.follows_preferences:
            scoring = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeAffinity"}]}
            profile = {"schedulerName": "default-scheduler", "plugins": {"score": scoring}}
            configuration["profiles"] = [profile]
        (self._dir / "scheduler-configuration.yaml").write_text(yaml.safe_dump(configuration))

    def _etcd_flags(self) -> dict[str, str | int | Path]:
        client, peer = f"https://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{free_port()}"
        pki = self._dir / "pki"
        return {
            "name": "sandbox",
            "data-dir": self._dir / "etcd",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"sandbox={peer}",
            "client-cert-auth": "true",
            "trusted-ca-file": pki / "ca.crt",
            "cert-file": pki / "etcd.crt",
            "key-file": pki / "etcd.key",
            "unsafe-no-fsync": "true",
            "quota-backend-bytes": 4 * 1024**3,
            "log-level": "warn",
        }

    def _apiserver_flags(self) -> dict[str, str | int | Path]:
        pki = self._dir / "pki"
        flags: dict[str, str | int | Path] = {
            "etcd-servers": f"https://127.0.0.1:{self._etcd_port}",
            "etcd-cafile": pki / "ca.crt",
            "etcd-certfile": pki / "etcd.crt",
            "etcd-keyfile": pki / "etcd.key",
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            # A loopback address may not stand in an Endpoints object: nothing is reconciled there.
            "endpoint-reconciler-type": "none",
            "secure-port": self._port,
            "tls-cert-file": pki / "apiserver.crt",
            "tls-private-key-file": pki / "apiserver.key",
            "client-ca-file": pki / "ca.crt",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": pki / "service-accounts.key",
            "service-account-signing-key-file": pki / "service-accounts.key",
            "service-cluster-ip-range": self._options.service_cidr,
            "allow-privileged": "true",
            "max-requests-inflight": 1200,
            "max-mutating-requests-inflight": 600,
            "profiling": "false",
        }
        if self._options.token_webhook is not None:
            flags["authentication-token-webhook-config-file"] = self._dir / "token-webhook.yaml"
            flags["authentication-token-webhook-version"] = "v1"
            flags["authentication-token-webhook-cache-ttl"] = "10s"
        return flags

    def _controller_manager_flags(self) -> dict[str, str | int | Path]:
        pki, kubeconfig = self._dir / "pki", self._dir / "kube-controller-manager.yaml"
        flags: dict[str, str | int | Path] = {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "use-service-account-credentials": "true",
            "service-account-private-key-file": pki / "service-accounts.key",
            "root-ca-file": pki / "ca.crt",
            "cluster-signing-cert-file": pki / "ca.crt",
            "cluster-signing-key-file": pki / "ca.key",
            "leader-elect": "false",
            "bind-address": "127.0.0.1",
            "secure-port": 0,
            "kube-api-qps": 300,
            "kube-api-burst": 600,
            "profiling": "false",
        }
        if self._options.node_grace_s is not None:
            flags["node-monitor-grace-period"] = f"{self._options.node_grace_s}s"
        return flags

    def _scheduler_flags(self) -> dict[str, str | int | Path]:
        kubeconfig = self._dir / "kube-scheduler.yaml"
        return {
            "config": self._dir / "scheduler-configuration.yaml",
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "bind-address": "127.0.0.1",
            "secure-port": 0,
        }

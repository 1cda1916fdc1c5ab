"""One pod, run as a process of the host and reported on as its kubelet would.

Driven by `sandbox.host_pods.runner` in a thread of its own. Everything is done with the identity of the
node that the pod is bound to: the token, the status, the final delete. The pod's declared ports are moved
to free ports of the host, because all pods share it; an annotation on the pod says where they are.
"""

from __future__ import annotations

import base64
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import attrs

from sandbox.host_pods.credentials import ROLE_ANNOTATION
from sandbox.host_pods.pod_spec import ContainerSpec, UnsupportedPod, environment, read_container
from sandbox.host_pods.pod_status import Progress, status_patch
from sandbox.host_pods.probing import Probing, ask
from sandbox.kubernetes.api import Api, ApiError, Object
from sandbox.processes import ProcessTable, Program, free_port

__all__ = ["PORTS_ANNOTATION", "HostPod", "Surroundings"]

PORTS_ANNOTATION = "sandbox.charpente.dev/ports"
"""On the pod: `8080=41233,8081=38711`, container port = port of the host."""
PORT_VARIABLES = {"METRICS_PORT": 8080, "HEALTH_PROBE_PORT": 8081}
"""The controller's port settings and their defaults."""
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
TOKEN_S = 3600
TICK_S = 0.1
FIRST_BACKOFF_S, LONGEST_BACKOFF_S, CALM_S = 10.0, 300.0, 600.0
"""As the kubelet's: the first restart is at once, then 10 s, doubling; forgotten after ten calm minutes."""


class Credentials(Protocol):
    """Where a pod's AWS credentials come from (`sandbox.host_pods.credentials`)."""

    @property
    def address(self) -> str:
        """Where a pod fetches them."""

    def associated_role(self, namespace: str, service_account: str) -> str | None:
        """Return the role of a service account."""

    def admit(self, role: str, pod: str) -> str:
        """Return a token for the role's credentials."""

    def dismiss(self, token: str) -> None:
        """Take a token back."""


@attrs.frozen(kw_only=True)
class Surroundings:
    """What every host pod shares."""

    api: Api
    processes: ProcessTable
    directory: Path
    credentials: Credentials
    aws_endpoint: str
    region: str
    monotonic: Callable[[], float]
    now: Callable[[], datetime]
    say: Callable[[str], None]
    expected: tuple[type[Exception], ...]
    """Failures of others that are waited out."""


class HostPod:
    """A bound pod and its process."""

    def __init__(self, pod: Object, pod_ip: str, around: Surroundings) -> None:
        """Take over a pod that was just bound; `run` does the work."""
        self._pod = pod
        self._around = around
        self._namespace, self._name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        self._uid = pod["metadata"]["uid"]
        self._node: str = pod["spec"]["nodeName"]
        self._kubelet = around.api.as_node(self._node)
        self._path = f"/api/v1/namespaces/{self._namespace}/pods/{self._name}"
        self._process = f"pod-{self._name}"
        self._folder = around.directory / "pods" / self._uid
        self._pod_ip = pod_ip
        self._vanished = threading.Event()
        self._changed = threading.Event()
        self._progress = Progress(pod_started=self._stamp())
        self._reported: Progress | None = None
        self._ports: dict[int, int] = {}
        self._probes: dict[str, Probing] = {}
        self._start_at = 0.0
        self._started_at = 0.0
        self._backoff_s = 0.0
        self._token_until = 0.0
        self._aws_token: str | None = None

    @property
    def node(self) -> str:
        """The node the pod is bound to."""
        return self._node

    def update(self, pod: Object) -> None:
        """Take the pod's newest object: its deletion shows there."""
        self._pod = pod
        self._changed.set()

    def vanish(self) -> None:
        """The pod is gone, or its node is dead: end the process without a word."""
        self._vanished.set()
        self._changed.set()

    def run(self) -> None:
        """Work until the pod is gone."""
        try:
            container = read_container(self._pod)
        except UnsupportedPod as exc:
            self._around.say(f"pod {self._namespace}/{self._name}: cannot run: {exc}")
            return
        troubles: tuple[type[Exception], ...] = (UnsupportedPod, *self._around.expected)
        said = ""
        while not self._vanished.is_set() and "deletionTimestamp" not in self._pod["metadata"]:
            try:
                self._tick(container)
                said = ""
            except troubles as exc:
                if str(exc) != said:
                    said = str(exc)
                    self._around.say(f"pod {self._namespace}/{self._name}: {said}")
                self._wait_on(str(exc) if isinstance(exc, UnsupportedPod) else "")
            self._changed.wait(TICK_S)
            self._changed.clear()
        self._finish()

    def _wait_on(self, message: str) -> None:
        if message:
            self._progress = attrs.evolve(
                self._progress, waiting="CreateContainerConfigError", message=message, started=None
            )
            self._start_at = self._around.monotonic() + FIRST_BACKOFF_S

    def _tick(self, container: ContainerSpec) -> None:
        now = self._around.monotonic()
        running = self._around.processes.get(self._process)
        if self._progress.started is None:
            if now >= self._start_at:
                self._start(container)
        elif running is None or not running.alive:
            self._ended(container, now)
        else:
            self._probe(now)
            if now > self._token_until:
                self._write_token()
        if self._progress != self._reported:
            self._report(container)

    def _start(self, container: ContainerSpec) -> None:
        program = shutil.which(container.command[0], path=str(Path(sys.executable).parent))
        if program is None:
            raise UnsupportedPod(f"{container.command[0]} is not installed beside this Python")
        self._write_token()
        variables = environment(self._pod, self._data)
        self._move_ports(container, variables)
        variables |= self._surrounding_variables(variables)
        command = (program, *container.command[1:])
        self._around.processes.start(
            Program(name=self._process, command=command, env=variables, inherits=INHERITED)
        )
        self._started_at = self._around.monotonic()
        self._probes = {
            kind: Probing(probe, self._started_at, passes)
            for kind, probe, passes in (
                ("startup", container.startup, False),
                ("liveness", container.liveness, True),
                ("readiness", container.readiness, False),
            )
            if probe is not None
        }
        self._progress = attrs.evolve(
            self._progress,
            started=self._stamp(),
            passed_startup="startup" not in self._probes,
            ready="readiness" not in self._probes,
            waiting=None,
            message="",
        )
        self._around.say(
            f"pod {self._namespace}/{self._name}: runs on {self._node} ({' '.join(container.command)})"
        )

    def _probe(self, now: float) -> None:
        startup = self._probes.get("startup")
        asked = ("startup",) if startup is not None and not startup.passes else ("liveness", "readiness")
        for kind in asked:
            probing = self._probes.get(kind)
            if probing is not None and probing.is_due(now):
                probe = probing.probe
                probing.record(ask(self._ports.get(probe.port, probe.port), probe.path, probe.timeout_s), now)
        liveness, readiness = self._probes.get("liveness"), self._probes.get("readiness")
        passed = startup is None or startup.passes
        self._progress = attrs.evolve(
            self._progress, passed_startup=passed, ready=passed and (readiness is None or readiness.passes)
        )
        if liveness is not None and not liveness.passes:
            self._around.say(f"pod {self._namespace}/{self._name}: liveness probe failed; restarting")
            self._terminate(self._grace_s())

    def _ended(self, container: ContainerSpec, now: float) -> None:
        code = self._around.processes.exit_code(self._process)
        if now - self._started_at > CALM_S:
            self._backoff_s = 0.0
        self._start_at = now + self._backoff_s if container.restarts else float("inf")
        waiting = "CrashLoopBackOff" if self._backoff_s else "ContainerCreating"
        self._backoff_s = min(max(self._backoff_s * 2, FIRST_BACKOFF_S), LONGEST_BACKOFF_S)
        tail = self._around.processes.tail(self._process, 1)
        self._progress = attrs.evolve(
            self._progress,
            started=None,
            ready=False,
            restarts=self._progress.restarts + 1,
            waiting=waiting,
            message=tail,
            last_exit=code if code is not None else 137,
            last_finished=self._stamp(),
        )
        self._around.say(f"pod {self._namespace}/{self._name}: ended with {code}: {tail[:300]}")

    def _finish(self) -> None:
        if self._vanished.is_set():
            self._terminate(0)
        else:
            self._terminate(self._grace_s())
            self._delete()
        if self._aws_token is not None:
            self._around.credentials.dismiss(self._aws_token)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._around.say(f"pod {self._namespace}/{self._name}: stopped")

    def _delete(self) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self._uid}}
        while not self._vanished.is_set():
            try:
                self._kubelet.delete(self._path, options)
                return
            except ApiError as exc:
                if exc.status in (404, 409):
                    return
                self._around.say(f"pod {self._namespace}/{self._name}: {exc}")
            except self._around.expected as exc:
                self._around.say(f"pod {self._namespace}/{self._name}: {exc}")
            self._vanished.wait(1)

    def _terminate(self, grace_s: float) -> None:
        self._around.processes.stop([self._process], grace_s=grace_s)

    def _grace_s(self) -> float:
        granted = self._pod["metadata"].get("deletionGracePeriodSeconds")
        return float(
            granted if granted is not None else self._pod["spec"].get("terminationGracePeriodSeconds", 30)
        )

    def _report(self, container: ContainerSpec) -> None:
        progress = self._progress
        body = status_patch(
            container, progress, host_ip=self._host_ip(), pod_ip=self._pod_ip, now=self._stamp()
        )
        self._kubelet.patch(f"{self._path}/status", body)
        self._reported = progress

    def _host_ip(self) -> str:
        node = self._around.api.get(f"/api/v1/nodes/{self._node}")
        addresses: list[dict[str, str]] = node["status"].get("addresses", [])
        return next(a["address"] for a in addresses if a["type"] == "InternalIP")

    def _move_ports(self, container: ContainerSpec, variables: dict[str, str]) -> None:
        inside = set(container.ports.values())
        settings = {name: int(variables.get(name, default)) for name, default in PORT_VARIABLES.items()}
        self._ports = {port: free_port() for port in sorted(inside | set(settings.values()))}
        variables |= {name: str(self._ports[port]) for name, port in settings.items()}
        text = ",".join(f"{inner}={outer}" for inner, outer in self._ports.items())
        self._around.api.merge(self._path, {"metadata": {"annotations": {PORTS_ANNOTATION: text}}})

    def _surrounding_variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        server = urlsplit(self._around.api.access.server)
        region = variables.get("AWS_REGION") or self._around.region
        return {
            "HOSTNAME": self._name,
            "PYTHONUNBUFFERED": "1",
            "KUBERNETES_SERVICE_HOST": server.hostname or "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(server.port or 443),
            "CHARPENTE_SERVICEACCOUNT_DIR": str(self._folder),
            "AWS_ENDPOINT_URL": self._around.aws_endpoint,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            **self._aws_variables(),
        }

    def _aws_variables(self) -> dict[str, str]:
        credentials = self._around.credentials
        account = self._service_account()
        role = credentials.associated_role(self._namespace, account)
        if role is not None:
            if self._aws_token is None:
                self._aws_token = credentials.admit(role, self._name)
            self._write("eks-pod-identity-token", self._aws_token)
            return {
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": credentials.address,
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(self._folder / "eks-pod-identity-token"),
            }
        found = self._around.api.get(f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{account}")
        annotated = found["metadata"].get("annotations", {}).get(ROLE_ANNOTATION)
        if annotated is None:
            self._around.say(
                f"pod {self._namespace}/{self._name}: {account} has no role, so no AWS credentials"
            )
            return {}
        self._write("aws-token", self._request_token(["sts.amazonaws.com"]))
        return {"AWS_ROLE_ARN": annotated, "AWS_WEB_IDENTITY_TOKEN_FILE": str(self._folder / "aws-token")}

    def _service_account(self) -> str:
        return str(self._pod["spec"].get("serviceAccountName") or "default")

    def _write_token(self) -> None:
        self._write("token", self._request_token([]))
        self._write("ca.crt", self._around.api.access.authority.decode())
        self._write("namespace", self._namespace)
        self._token_until = self._around.monotonic() + TOKEN_S * 0.8

    def _request_token(self, audiences: list[str]) -> str:
        request: Object = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": audiences,
                "expirationSeconds": TOKEN_S,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": self._name, "uid": self._uid},
            },
        }
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{self._service_account()}/token"
        # The kubelet may only ask for audiences that a volume of the pod names; IRSA would add one.
        asker = self._around.api if audiences else self._kubelet
        return str(asker.create(path, request)["status"]["token"])

    def _write(self, name: str, content: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        scratch = self._folder / f".{name}"
        scratch.touch(mode=0o600)
        scratch.write_text(content)
        scratch.replace(self._folder / name)

    def _data(self, kind: str, name: str) -> Mapping[str, str] | None:
        plural = {"Secret": "secrets", "ConfigMap": "configmaps"}[kind]
        found = self._kubelet.find(f"/api/v1/namespaces/{self._namespace}/{plural}/{name}")
        if found is None:
            return None
        content: Mapping[str, str] = found.get("data", {})
        if kind == "Secret":
            return {key: base64.b64decode(value).decode() for key, value in content.items()}
        return content

    def _stamp(self) -> str:
        return self._around.now().strftime("%Y-%m-%dT%H:%M:%SZ")

"""The whole sandbox: a control plane, AWS, nodes and the controller's pods, started and ended together.

`Sandbox` is what the command line, the demo and the tests use. It owns one folder; several sandboxes live
side by side in different folders. Inside a `with` block the sandbox ends with the process that started it,
even when that process is killed.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

from sandbox.errors import SandboxError
from sandbox.kubernetes import Api, ControlPlane, Options
from sandbox.processes import ProcessTable, Program, free_port, port_is_free
from sandbox.state import State, default_directory

__all__ = ["PARTS", "Sandbox", "SandboxOptions"]

REGION = "eu-west-2"
AWS, NODES = "aws", "nodes"
PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", AWS, "kwok", NODES)
"""Every process of a whole sandbox, beside the pods of the controller."""
AWS_READY_TIMEOUT_S = 60
STOP_GRACE_S = 1.0
"""Nothing of a sandbox outlives it, so a program that takes its time to end is not waited for."""


@attrs.frozen(kw_only=True)
class SandboxOptions:
    """What may differ between two sandboxes."""

    region: str = REGION
    kubernetes: Options = attrs.field(factory=Options)
    aws_port: int | None = None
    """Any free one when not set."""


class Sandbox:
    """One sandbox in one folder."""

    def __init__(self, directory: Path | None = None, options: SandboxOptions | None = None) -> None:
        """Remember the folder (this user's default one if not given); nothing is started yet."""
        self.directory = directory or default_directory()
        self.options = options or SandboxOptions()
        self.processes = ProcessTable(self.directory)
        self._control_plane = ControlPlane(self.directory, self.options.kubernetes)
        self._token_webhook_port: int | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def state(self) -> State:
        """What the sandbox in this folder says of itself."""
        return State.read(self.directory)

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of a cluster administrator."""
        return self.directory / "kubeconfig"

    @property
    def aws_endpoint(self) -> str:
        """Address of AWS. Raises: SandboxError when it does not run."""
        endpoint = self.state.aws_endpoint
        if endpoint is None:
            raise SandboxError(
                f"sandbox in {self.directory}", "AWS is not running", "start it: python -m sandbox up"
            )
        return endpoint

    @property
    def api(self) -> Api:
        """A client of the API server with full access."""
        return Api.from_kubeconfig(self.kubeconfig)

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables for programs that use this sandbox: kubectl, aws, pulumi, boto3."""
        return {
            "KUBECONFIG": str(self.kubeconfig),
            "AWS_ENDPOINT_URL": self.aws_endpoint,
            "AWS_REGION": self.state.region or self.options.region,
            "AWS_DEFAULT_REGION": self.state.region or self.options.region,
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "sandbox",
        }

    def __enter__(self) -> Self:
        """Start, tied to this process: it ends when this process does, however that happens."""
        self._guard = subprocess.Popen(
            [sys.executable, "-m", "sandbox", "guard", "--dir", str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def start(self) -> None:
        """Start everything and return when it is ready; nothing stays behind when a part fails.

        Raises: SandboxError when a sandbox runs here already or a port is taken; StartFailed; ToolMissing.
        """
        self.refuse_second()
        self._ask_about_tokens()
        try:
            with ThreadPoolExecutor(2) as pool:
                aws = pool.submit(self.start_aws)
                kubernetes = pool.submit(self.start_kubernetes)
                for part in (aws, kubernetes):
                    part.result()
            self.introduce()
            self.start_nodes(self.kubeconfig, self.aws_endpoint)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> tuple[str, ...]:
        """End every process and remove everything but the logs; returns the names of those that ran.

        Works on whatever is found: a whole sandbox, the rest of a crashed one, nothing.
        """
        # The process that keeps kwok and the pods alive goes first, or it would start them anew.
        stopped = self.processes.stop([NODES])
        stopped += self.processes.stop(grace_s=STOP_GRACE_S)
        self._control_plane.stop()
        # Pulumi's state goes too: it speaks of an AWS that no longer exists.
        for name in ("run", "kwok", "pods", "pulumi", "state.json"):
            path = self.directory / name
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        if self._guard is not None:
            self._guard.terminate()
            self._guard.wait()
            if self._guard.stdin is not None:
                self._guard.stdin.close()
            self._guard = None
        return stopped

    def refuse_second(self) -> None:
        """Clear the rest of a crashed sandbox. Raises: SandboxError when a living one is here."""
        alive = [r.name for r in self.processes.all() if r.alive]
        if alive:
            raise SandboxError(
                f"sandbox in {self.directory}",
                f"runs already ({', '.join(alive)})",
                "use it, stop it with `python -m sandbox down`, or choose another folder with --dir",
            )
        if self.processes.all():
            self.stop()
        shutil.rmtree(self.directory / "logs", ignore_errors=True)

    def _ask_about_tokens(self) -> None:
        """Let the API server ask the node side about EKS tokens: both will run here."""
        self._token_webhook_port = free_port()
        address = f"https://127.0.0.1:{self._token_webhook_port}/"
        options = attrs.evolve(self.options.kubernetes, token_webhook=address)
        self._control_plane = ControlPlane(self.directory, options)

    def start_kubernetes(self) -> None:
        """Start the control plane alone."""
        self._control_plane.start()
        self._note(kubeconfig=str(self.kubeconfig), server=self._control_plane.server)

    def start_aws(self) -> None:
        """Start AWS alone."""
        port = self.options.aws_port
        if port is not None and not port_is_free(port):
            raise SandboxError(
                f"port {port}", "another program listens on it", "choose another or stop that program"
            )
        port_file = self.directory / "run" / "aws.port"
        port_file.parent.mkdir(parents=True, exist_ok=True)
        port_file.unlink(missing_ok=True)
        arguments = ("--port", str(port or 0), "--port-file", str(port_file), "--region", self.options.region)
        self.processes.start(Program(name=AWS, command=(sys.executable, "-m", "sandbox.aws", *arguments)))
        self.processes.wait_until(
            lambda: port_file.is_file() and port_file.read_text().strip().isdigit(),
            needs=(AWS,),
            what="AWS answers",
            timeout_s=AWS_READY_TIMEOUT_S,
        )
        endpoint = f"http://127.0.0.1:{port_file.read_text().strip()}"
        self._note(aws_endpoint=endpoint, region=self.options.region)

    def introduce(self) -> None:
        """Tell AWS which API server every EKS cluster of the sandbox stands for."""
        access = self._control_plane.admin
        body = {
            "endpoint": access.server,
            "certificateAuthority": base64.b64encode(access.authority).decode(),
        }
        request = urllib.request.Request(  # noqa: S310 - the sandbox's own address
            f"{self.aws_endpoint}/sandbox/eks",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        with urllib.request.urlopen(request, timeout=10):  # noqa: S310 - as above
            pass

    def start_nodes(self, kubeconfig: Path, endpoint: str) -> None:
        """Start the node side beside any control plane and AWS."""
        command: tuple[str, ...] = (
            *(sys.executable, "-m", "sandbox", "nodes", "--foreground"),
            *("--dir", str(self.directory), "--kubeconfig", str(kubeconfig)),
            *("--endpoint", endpoint, "--region", self.options.region),
        )
        if self._token_webhook_port is not None:
            command += ("--token-webhook-port", str(self._token_webhook_port))
        self.processes.start(Program(name=NODES, command=command))
        self.processes.wait_until(
            lambda: (kwok := self.processes.get("kwok")) is not None and kwok.alive,
            needs=(NODES,),
            what="kwok runs",
            timeout_s=AWS_READY_TIMEOUT_S,
        )

    def _note(self, **changes: Any) -> None:
        attrs.evolve(self.state, **changes).write(self.directory)

"""The sandbox's own long-running process: nodes, their cloud controller, host pods and EKS tokens.

Started detached by `sandbox.machine` (`python -m sandbox nodes --foreground`). Each loop looks, acts and
looks again; an API server or AWS that is away for a while is waited for. It owns kwok, which it starts anew
when it ends.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import attrs
import urllib3
from botocore.exceptions import BotoCoreError, ClientError

from sandbox.errors import SandboxError
from sandbox.host_pods import CredentialServer, HostPods, Surroundings
from sandbox.kubernetes.api import Api, ApiError
from sandbox.kubernetes.certificates import Authority
from sandbox.kubernetes.eks_tokens import TokenReviewer, TokenWebhook, bind_access_policies
from sandbox.nodes import Agent, Cloud, CloudController, kwok_program
from sandbox.nodes.cloud_controller import PERIOD_S as CLOUD_CONTROLLER_PERIOD_S
from sandbox.processes import ProcessTable

__all__ = ["Config", "Daemon", "run"]

AGENT_PERIOD_S = 0.5
KWOK_PERIOD_S = 1.0
RETRY_S = 1.0
EXPECTED = (ApiError, ClientError, BotoCoreError, urllib3.exceptions.HTTPError, OSError, SandboxError)
"""What a part that is away, or being changed at the same time, looks like."""


@attrs.frozen(kw_only=True)
class Config:
    """What the process needs to know."""

    kubeconfig: Path
    endpoint: str
    """Of AWS."""
    region: str
    directory: Path
    """The sandbox's folder, for logs and process records."""
    token_webhook_port: int | None = None
    """Where the API server asks about EKS tokens; None beside a control plane that does not ask."""


class Daemon:
    """The loops, each in a thread of its own."""

    def __init__(self, config: Config) -> None:
        """Prepare every part; nothing is sent yet."""
        self._config = config
        self._stop = threading.Event()
        self._processes = ProcessTable(config.directory)
        self._api = api = Api.from_kubeconfig(config.kubeconfig)
        self._webhook: TokenWebhook | None = None
        self._cloud = Cloud(config.endpoint, config.region)
        self._agent = Agent(self._cloud, api, monotonic=time.monotonic, say=say)
        self._cloud_controller = CloudController(self._agent, api, say=say)
        self._credentials = CredentialServer(config.endpoint, config.region)
        around = Surroundings(
            api=api,
            processes=self._processes,
            directory=config.directory,
            credentials=self._credentials,
            aws_endpoint=config.endpoint,
            region=config.region,
            monotonic=time.monotonic,
            now=lambda: datetime.now(UTC),
            say=say,
            expected=EXPECTED,
        )
        self._host_pods = HostPods(around, is_dead=self._agent.is_dead)

    def start(self) -> None:
        """Start the loops."""
        self._answer_token_reviews()
        self._agent.recover()
        self._host_pods.recover()
        program = kwok_program(self._config.kubeconfig, self._config.directory / "kwok")

        def keep_kwok() -> None:
            running = self._processes.get(program.name)
            if running is None or not running.alive:
                self._processes.start(program)

        self._loop("kwok", keep_kwok, KWOK_PERIOD_S)
        self._loop("nodes", self._agent.tick, AGENT_PERIOD_S)
        self._loop("host pods", self._host_pods.follow, 0)
        self._loop("dead nodes", self._host_pods.check_nodes, AGENT_PERIOD_S)
        self._loop("cloud controller", self._cloud_controller.tick, CLOUD_CONTROLLER_PERIOD_S)

    def _answer_token_reviews(self) -> None:
        config = self._config
        if config.token_webhook_port is None:
            return
        folder = config.directory / "kubernetes" / "pki"
        reviewer = TokenReviewer(config.endpoint, config.region, lambda: datetime.now(UTC))
        self._webhook = TokenWebhook(
            reviewer, Authority.load(folder), port=config.token_webhook_port, folder=folder
        )
        bind_access_policies(self._api)

    def ask_to_stop(self) -> None:
        """End the loops at their next look."""
        self._stop.set()

    def wait(self) -> None:
        """Return when the loops have ended; kwok is ended too."""
        while not self._stop.wait(1):
            pass
        if self._webhook is not None:
            self._webhook.close()
        self._host_pods.close()
        self._credentials.close()
        self._agent.close()
        self._processes.stop(["kwok"], grace_s=2)

    def _loop(self, name: str, tick: Callable[[], None], period_s: float) -> None:
        thread = threading.Thread(target=self._repeat, args=(name, tick, period_s), name=name, daemon=True)
        thread.start()

    def _repeat(self, name: str, tick: Callable[[], None], period_s: float) -> None:
        said = ""
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                tick()
                said = ""
            except EXPECTED as exc:
                if str(exc) != said:
                    said = str(exc)
                    say(f"{name}: {said}; trying again")
                    self._stop.wait(RETRY_S)
            # A look that took long (thousands of instances) is not repeated at once.
            self._stop.wait(max(period_s, time.monotonic() - began) if period_s else 0)


def say(line: str) -> None:
    """Print one line with the time, to the process's log."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def run(config: Config) -> None:
    """Run until SIGTERM or SIGINT."""
    daemon = Daemon(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: daemon.ask_to_stop())
    daemon.start()
    daemon.wait()

"""The demo: an empty machine to a platform, pods to nodes, no pods to no nodes, and nothing left.

Called by `python -m sandbox demo`. Starts a sandbox in a folder of its own that ends with this process. Every
stage waits for the state of the API server or of AWS, never for a log line, and raises `DemoFailed` when it
does not come about, so that exit code 0 means that all of it happened.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import attrs

from framework.api import labels
from sandbox import tools
from sandbox.aws.control import Control
from sandbox.demo.report import Report
from sandbox.demo.timeline import Step, Timeline
from sandbox.errors import SandboxError
from sandbox.kubernetes import Api, Object
from sandbox.machine import Sandbox
from sandbox.platform import Platform
from sandbox.workloads import Workload

__all__ = ["run"]

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
WEB = Workload(name="web", replicas=20, spread_over=labels.ZONE)
GIANT = Workload(name="giant", cpu="1000")
POLL_S = 0.2
PATIENCE_S = 180
"""How long any one thing may take before the demo gives up; a warm run needs under two minutes in all."""

STEPS = (
    ("detect", "pods created → marked unschedulable", Step.POD_CREATED, Step.POD_UNSCHEDULABLE),
    (
        "simulate",
        "unschedulable → first NodeClaim (1 s batch window)",
        Step.POD_UNSCHEDULABLE,
        Step.CLAIM_CREATED,
    ),
    ("call the provider", "NodeClaims created → launched", Step.CLAIM_CREATED, Step.CLAIM_LAUNCHED),
    ("provision", "launched → nodes ready", Step.CLAIM_LAUNCHED, Step.CLAIM_INITIALIZED),
    ("run", "launched → pods running", Step.CLAIM_LAUNCHED, Step.POD_RUNNING),
)


@attrs.frozen
class DemoFailed(SandboxError):
    """Something that the demo shows did not happen."""


def run() -> None:
    """Run every stage. Raises: SandboxError (DemoFailed among them) at the first that fails."""
    report = Report()
    began = time.monotonic()
    with report.stage("programs of the sandbox found or built"):
        tools.ensure()
    with tempfile.TemporaryDirectory(prefix="charpente-demo-") as scratch:
        _Demo(Sandbox(Path(scratch)), report).run()
    report.out.print(f"\n[bold green]All of it happened[/], in {time.monotonic() - began:.0f} s.")


class _Demo:
    """The stages, sharing one sandbox and one report."""

    def __init__(self, sandbox: Sandbox, report: Report) -> None:
        self._sandbox = sandbox
        self._report = report
        self._own_instances = 0
        """Instances of the platform's first capacity, which outlive the pods."""

    def run(self) -> None:
        with ExitStack() as running:
            with self._report.stage("control plane and AWS ready"):
                running.enter_context(self._sandbox)
            self._show()

    def _show(self) -> None:
        platform = Platform(self._sandbox)
        before = self._inventory()
        with self._report.stage("pulumi up: network, EKS, roles, queue, CRDs, controller, pools"):
            platform.up(progress=self._report.detail)
        self._own_instances = self._instances()
        self._cost("the platform alone")
        self._scale_up()
        self._refuse()
        self._scale_down()
        with self._report.stage("pulumi destroy"):
            platform.destroy(progress=self._report.detail)
        self._nothing_left(before)

    @property
    def _api(self) -> Api:
        return self._sandbox.api

    def _control(self) -> Control:
        return Control(self._sandbox.aws_endpoint)

    def _scale_up(self) -> None:
        with (
            self._report.stage(
                f"{WEB.replicas} pods over the zones, each running on a node of its own making"
            ),
            Timeline(self._api, WEB.namespace, WEB.name) as timeline,
        ):
            self._api.create(DEPLOYMENTS, WEB.manifest())
            self._wait(f"{WEB.replicas} pods running", lambda: _running(self._api) == WEB.replicas)
            self._wait("every node initialized", lambda: all(map(_initialized, self._claims())))
            time.sleep(2 * POLL_S)  # one more poll of the timeline
        self._print_steps(timeline)
        rows = [_claim_row(claim) for claim in self._claims()]
        self._report.table("nodes", ("claim", "type", "zone", "capacity", "node"), rows)
        zones = {row[2] for row in rows}
        if len(zones) < 2:
            raise DemoFailed("zone spread", f"all nodes are in {zones}", "see the controller's log")
        self._cost("with the pods' nodes")

    def _refuse(self) -> None:
        with self._report.stage("a pod no node can hold is refused, with the reason"):
            self._api.create(DEPLOYMENTS, GIANT.manifest())
            messages: list[str] = []

            def refused() -> bool:
                messages[:] = _refusals(self._api)
                return bool(messages)

            self._wait("an event on the pod", refused)
            self._api.delete(f"{DEPLOYMENTS}/{GIANT.name}")
        self._report.say(f"FailedScheduling: {messages[0]}")

    def _scale_down(self) -> None:
        # The default budget lets a tenth of the nodes go at a time; a show need not be that careful.
        everything = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
        self._api.merge(f"{POOLS}/default", {"spec": {"disruption": everything}})
        with self._report.stage("scale to zero: the nodes go, all at once by a budget of 100%"):
            self._api.merge(f"{DEPLOYMENTS}/{WEB.name}", {"spec": {"replicas": 0}})
            self._wait("no claim left", lambda: not self._claims())
            self._wait("no node of theirs left", lambda: not self._nodes())
            self._wait("no instance of theirs left", lambda: self._instances() == self._own_instances)
        self._cost("after the pods are gone")

    def _nothing_left(self, before: dict[str, list[str]]) -> None:
        with self._report.stage("inventory of AWS: nothing left"):
            left = {
                kind: sorted(set(ids) - set(before.get(kind, ())))
                for kind, ids in self._inventory().items()
                if set(ids) - set(before.get(kind, ()))
            }
            if left:
                raise DemoFailed("inventory", f"left behind: {left}", "a destroy must remove what up made")

    def _inventory(self) -> dict[str, list[str]]:
        return self._control().inventory()

    def _nodes(self) -> list[Object]:
        return self._api.list("/api/v1/nodes", labelSelector=labels.NODEPOOL)[0]

    def _instances(self) -> int:
        return self._control().costs().instances

    def _claims(self) -> list[Object]:
        return self._api.list(CLAIMS)[0]

    def _cost(self, moment: str) -> None:
        costs = self._control().costs()
        self._report.say(f"cost {moment}: ${costs.usd_per_hour:.4f} an hour, {costs.instances} instances")

    def _print_steps(self, timeline: Timeline) -> None:
        rows = []
        for name, meaning, start, end in STEPS:
            first, last = timeline.times(start), timeline.times(end)
            if first is None or last is None:
                raise DemoFailed("timeline", f"step {name!r} was not seen", "see the controller's log")
            moment = last.first if end is Step.CLAIM_CREATED else last.last
            rows.append((name, meaning, f"{moment - first.last:.1f} s"))
        self._report.table("steps (polled every 0.1 s)", ("step", "from → to", "time"), rows)

    def _wait(self, what: str, happened: Callable[[], bool]) -> None:
        self._report.detail(f"(waiting for {what})")
        end = time.monotonic() + PATIENCE_S
        while not happened():
            if time.monotonic() > end:
                raise DemoFailed(what, f"did not happen within {PATIENCE_S} s", "see the controller's log")
            time.sleep(POLL_S)


def _running(api: Api) -> int:
    pods, _ = api.list("/api/v1/namespaces/default/pods", labelSelector=f"app={WEB.name}")
    return sum(pod.get("status", {}).get("phase") == "Running" for pod in pods)


def _initialized(claim: Object) -> bool:
    conditions = claim.get("status", {}).get("conditions", ())
    return any(c["type"] == "Initialized" and c["status"] == "True" for c in conditions)


def _refusals(api: Api) -> list[str]:
    events, _ = api.list("/api/v1/namespaces/default/events", fieldSelector="reason=FailedScheduling")
    return [
        event["message"]
        for event in events
        if event.get("source", {}).get("component") == "karpenter"
        and event["involvedObject"]["name"].startswith(GIANT.name)
    ]


def _claim_row(claim: Object) -> tuple[str, ...]:
    of = claim["metadata"]["labels"]
    keys = (labels.INSTANCE_TYPE, labels.ZONE, labels.CAPACITY_TYPE)
    node = claim.get("status", {}).get("nodeName", "")
    return (claim["metadata"]["name"], *(of.get(key, "") for key in keys), node)

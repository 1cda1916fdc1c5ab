"""kwok, told to keep the leases of our nodes and to run the pods on them, and nothing else.

Nodes carry their capacity, labels and addresses already: kwok makes them ready and renews their leases.
Pods become running after a moment, jobs complete, deleted pods stop. Pods whose command is a program of
this project are left to `sandbox.host_pods`, which runs them for real. Used by `sandbox.daemon`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from sandbox import tools
from sandbox.nodes.kubelet import HEARTBEAT_LABEL, HEARTBEAT_ON
from sandbox.processes import Program

__all__ = ["HOST_PROGRAM", "kwok_program"]

HOST_PROGRAM = "charpente"
"""First word of the command of pods that run as real processes."""
STOP_ANNOTATION = "sandbox.charpente.dev/stop-after"
"""On a pod: how long its containers take to stop, for instance `20s`."""
RUN_ANNOTATION = "sandbox.charpente.dev/run-for"
"""On a job's pod: how long it runs before it completes."""
NODE_READY_MS, POD_START_MS, POD_STOP_MS, JOB_RUN_MS = 500, 300, 200, 1000
PARALLELISM = 16
LEASE_S = 40
"""As the kubelet's: renewed every quarter of it."""

_CONDITIONS = """
conditions:
{{ $now := Now }}
{{ range NodeConditions }}
- lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
  message: {{ .message | Quote }}
  reason: {{ .reason | Quote }}
  status: {{ .status | Quote }}
  type: {{ .type | Quote }}
{{ end }}
"""

_RUNNING = """
{{ $now := Now }}
{{ $uid := or .metadata.uid "" }}
{{ $host := or .spec.hostNetwork false }}
phase: Running
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName $host $uid .metadata.name .metadata.namespace | Quote }}
startTime: {{ $now | Quote }}
conditions:
{{ range $type := list "Initialized" "Ready" "ContainersReady" }}
- lastTransitionTime: {{ $now | Quote }}
  status: "True"
  type: {{ $type }}
{{ end }}
{{ range .spec.readinessGates }}
- lastTransitionTime: {{ $now | Quote }}
  status: "True"
  type: {{ .conditionType | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  imageID: ""
  name: {{ .name | Quote }}
  ready: true
  started: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
{{ end }}
"""

_COMPLETED = """
{{ $now := Now }}
phase: Succeeded
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  imageID: ""
  name: {{ .name | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: 0
      finishedAt: {{ $now | Quote }}
      reason: Completed
      startedAt: {{ $now | Quote }}
{{ end }}
"""


def kwok_program(kubeconfig: Path, directory: Path) -> Program:
    """Write kwok's configuration into `directory` and return the program to start.

    Raises: ToolMissing when kwok cannot be had.
    """
    directory.mkdir(parents=True, exist_ok=True)
    configuration = directory / "stages.yaml"
    configuration.write_text(yaml.safe_dump_all([_options(), *stages()], sort_keys=False))
    return Program(
        name="kwok",
        command=(
            str(tools.find("kwok")),
            f"--kubeconfig={kubeconfig}",
            f"--config={configuration}",
            "--manage-all-nodes=false",
            f"--manage-nodes-with-label-selector={HEARTBEAT_LABEL}={HEARTBEAT_ON}",
            f"--node-lease-duration-seconds={LEASE_S}",
            "--cidr=100.64.0.0/10",
        ),
        # kwok also reads a configuration from the user's home; here there is none.
        env={"KWOK_WORKDIR": str(directory)},
    )


def _options() -> dict[str, Any]:
    """Return kwok's own configuration: enough workers for hundreds of nodes that come at once."""
    workers = ("nodePlayStageParallelism", "podPlayStageParallelism", "nodeLeaseParallelism")
    return {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": dict.fromkeys(workers, PARALLELISM),
    }


def stages() -> list[dict[str, Any]]:
    """Return kwok's Stage objects: how nodes and pods get on."""
    ready = _node_stage()
    not_ours = _expression(".spec.containers.[].command.[0]", "NotIn", HOST_PROGRAM)
    alive = _expression(".metadata.deletionTimestamp", "DoesNotExist")
    start = _pod_stage(
        "pod-start", [not_ours, alive, _expression(".status.podIP", "DoesNotExist")], POD_START_MS
    )
    start["spec"]["next"] = {"statusTemplate": _RUNNING}
    running = _expression(".status.phase", "In", "Running")
    of_job = _expression(".metadata.ownerReferences.[].kind", "In", "Job")
    complete = _pod_stage("pod-complete", [not_ours, alive, running, of_job], JOB_RUN_MS, RUN_ANNOTATION)
    complete["spec"]["next"] = {"statusTemplate": _COMPLETED}
    deleted = _expression(".metadata.deletionTimestamp", "Exists")
    stop = _pod_stage("pod-stop", [not_ours, deleted], POD_STOP_MS, STOP_ANNOTATION)
    stop["spec"]["next"] = {"delete": True}
    return [ready, start, complete, stop]


def _node_stage() -> dict[str, Any]:
    not_ready = _expression('.status.conditions.[] | select( .type == "Ready" ) | .status', "NotIn", "True")
    stage = _stage("node-ready", "Node", [not_ready], NODE_READY_MS)
    stage["spec"]["next"] = {"statusTemplate": _CONDITIONS}
    return stage


def _pod_stage(
    name: str, expressions: list[dict[str, Any]], delay_ms: int, annotation: str | None = None
) -> dict[str, Any]:
    stage = _stage(name, "Pod", expressions, delay_ms)
    if annotation is not None:
        stage["spec"]["delay"]["durationFrom"] = {"expressionFrom": f'.metadata.annotations["{annotation}"]'}
    return stage


def _stage(name: str, kind: str, expressions: list[dict[str, Any]], delay_ms: int) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": expressions},
            "delay": {"durationMilliseconds": delay_ms},
        },
    }


def _expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}

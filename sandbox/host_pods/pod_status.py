"""The status of a pod as the kubelet that runs it reports it. Pure."""

from __future__ import annotations

import attrs

from sandbox.host_pods.pod_spec import ContainerSpec
from sandbox.kubernetes.api import Object

__all__ = ["Progress", "status_patch"]


@attrs.frozen(kw_only=True)
class Progress:
    """How a container is doing; times are RFC 3339."""

    pod_started: str
    started: str | None = None
    """When the present run began; None while it waits."""
    passed_startup: bool = False
    ready: bool = False
    restarts: int = 0
    waiting: str | None = None
    """Why it waits: a reason such as CrashLoopBackOff."""
    message: str = ""
    last_exit: int | None = None
    last_finished: str | None = None


def status_patch(
    container: ContainerSpec, progress: Progress, *, host_ip: str, pod_ip: str, now: str
) -> Object:
    """Return the strategic merge patch of the pod's status."""
    ready = progress.ready and progress.started is not None
    reason = {} if ready else {"reason": "ContainersNotReady", "message": f"not ready: [{container.name}]"}
    conditions = [
        _condition("PodReadyToStartContainers", True, progress.pod_started),
        _condition("Initialized", True, progress.pod_started),
        {**_condition("ContainersReady", ready, now), **reason},
        {**_condition("Ready", ready, now), **reason},
    ]
    state: Object = {"running": None, "waiting": None, "terminated": None}
    if progress.started is not None:
        state["running"] = {"startedAt": progress.started}
    else:
        state["waiting"] = {"reason": progress.waiting or "ContainerCreating", "message": progress.message}
    last: Object = {}
    if progress.last_exit is not None:
        last["terminated"] = {
            "exitCode": progress.last_exit,
            "reason": "Completed" if progress.last_exit == 0 else "Error",
            "finishedAt": progress.last_finished,
        }
    status: Object = {
        "phase": "Running" if progress.started or progress.restarts else "Pending",
        "startTime": progress.pod_started,
        "hostIP": host_ip,
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "conditions": conditions,
        "containerStatuses": [
            {
                "name": container.name,
                "image": container.image,
                "imageID": "",
                "ready": ready,
                "started": progress.started is not None and progress.passed_startup,
                "restartCount": progress.restarts,
                "state": state,
                "lastState": last,
            }
        ],
    }
    return {"status": status}


def _condition(kind: str, holds: bool, when: str) -> Object:
    return {"type": kind, "status": "True" if holds else "False", "lastTransitionTime": when}

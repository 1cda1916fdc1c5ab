"""Which pods run as processes of the host: those bound to a live node whose command is a program of this
project.

Called in a loop by `sandbox.daemon`. Follows all bound pods by a watch and keeps one `HostPod` per pod of
ours.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import attrs

from sandbox.host_pods.host_pod import HostPod, Surroundings
from sandbox.kubernetes.api import Object
from sandbox.nodes.kwok import HOST_PROGRAM

__all__ = ["HostPods", "is_host_pod"]

WATCH_S = 20
BOUND = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


def is_host_pod(pod: Object) -> bool:
    """Whether a pod runs as a process of the host; kwok leaves exactly these alone."""
    commands = [(c.get("command") or [""])[0] for c in pod["spec"]["containers"]]
    return bool(pod["spec"].get("nodeName")) and HOST_PROGRAM in commands


@attrs.define
class _Worker:
    pod: HostPod
    thread: threading.Thread


class HostPods:
    """The processes of all host pods."""

    def __init__(self, around: Surroundings, is_dead: Callable[[str], bool]) -> None:
        """Take what pods share, and a predicate that tells nodes whose instance is gone."""
        self._around = around
        self._is_dead = is_dead
        self._workers: dict[str, _Worker] = {}
        self._addresses = (f"100.127.{n // 250}.{n % 250 + 1}" for n in itertools.count())

    def recover(self) -> None:
        """End processes that an earlier process of this sandbox left; their pods are started anew."""
        left = [r.name for r in self._around.processes.all() if r.name.startswith("pod-")]
        self._around.processes.stop(left, grace_s=2)

    def follow(self) -> None:
        """List the bound pods, then follow them for some seconds. Raises: ApiError and connection errors."""
        pods, version = self._around.api.list("/api/v1/pods", fieldSelector=BOUND)
        present = {p["metadata"]["uid"]: p for p in pods if is_host_pod(p)}
        for uid in [u for u in self._workers if u not in present]:
            self._drop(uid)
        for pod in present.values():
            self._take(pod)
        for kind, pod in self._around.api.watch(
            "/api/v1/pods", version, seconds=WATCH_S, fieldSelector=BOUND
        ):
            if kind == "BOOKMARK" or not is_host_pod(pod):
                continue
            if kind == "DELETED":
                self._drop(pod["metadata"]["uid"])
            else:
                self._take(pod)

    def check_nodes(self) -> None:
        """End the pods of nodes whose instance is gone: a dead machine runs nothing."""
        for worker in list(self._workers.values()):
            if self._is_dead(worker.pod.node):
                worker.pod.vanish()

    def close(self) -> None:
        """End every process."""
        for uid in list(self._workers):
            self._drop(uid)

    def _take(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        known = self._workers.get(uid)
        if known is not None:
            known.pod.update(pod)
            return
        if self._is_dead(pod["spec"]["nodeName"]):
            return
        host_pod = HostPod(pod, next(self._addresses), self._around)
        thread = threading.Thread(target=host_pod.run, name=f"pod {pod['metadata']['name']}", daemon=True)
        self._workers[uid] = _Worker(host_pod, thread)
        thread.start()

    def _drop(self, uid: str) -> None:
        worker = self._workers.pop(uid, None)
        if worker is not None:
            worker.pod.vanish()

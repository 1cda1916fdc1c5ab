"""When each pod, claim and node reached each step, read off the API server by polling.

Used by the demo's table. Owns no process and writes nothing. Times are the poller's own clock, so a step is
known to within one period.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from enum import StrEnum
from types import TracebackType
from typing import Any, Self

import attrs

from sandbox.kubernetes import Api, Object

__all__ = ["Step", "Timeline", "Times"]

PERIOD_S = 0.1
"""Seconds between two reads of pods and claims."""


class Step(StrEnum):
    """What a poll can see happen to a pod or claim."""

    POD_CREATED = "pod created"
    POD_UNSCHEDULABLE = "pod marked unschedulable"
    POD_RUNNING = "pod running"
    CLAIM_CREATED = "claim created"
    CLAIM_LAUNCHED = "claim launched"
    CLAIM_REGISTERED = "claim registered"
    CLAIM_INITIALIZED = "claim initialized"


@attrs.frozen
class Times:
    """First and last moment of a step over all its objects, in seconds of one monotonic clock."""

    first: float
    last: float
    count: int


class Timeline:
    """A context manager that polls in a thread while the block runs."""

    def __init__(self, api: Api, namespace: str, app: str) -> None:
        """Watch the pods of one app and every claim made after this call."""
        self._api = api
        self._pods_path = f"/api/v1/namespaces/{namespace}/pods"
        self._selector = f"app={app}"
        self._seen: dict[Step, dict[str, float]] = {step: {} for step in Step}
        self._ignored = {claim["metadata"]["name"] for claim in self._claims()}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="timeline", daemon=True)
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def times(self, step: Step) -> Times | None:
        """Return when the step was seen, or None if it never was."""
        moments = self._seen[step].values()
        return Times(min(moments), max(moments), len(moments)) if moments else None

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._poll()
            except Exception as exc:  # noqa: BLE001 - handed to the caller when the block ends
                self._failure = exc
                return
            self._stop.wait(PERIOD_S)

    def _poll(self) -> None:
        pods, _ = self._api.list(self._pods_path, labelSelector=self._selector)
        claims = [c for c in self._claims() if c["metadata"]["name"] not in self._ignored]
        now = time.monotonic()
        for pod in pods:
            self._note(pod, _pod_steps(pod), now)
        for claim in claims:
            self._note(claim, _claim_steps(claim), now)

    def _claims(self) -> list[Object]:
        return self._api.list("/apis/karpenter.sh/v1/nodeclaims")[0]

    def _note(self, item: Object, steps: Iterable[Step], now: float) -> None:
        for step in steps:
            self._seen[step].setdefault(item["metadata"]["uid"], now)


def _conditions(item: Object) -> dict[str, dict[str, Any]]:
    return {c["type"]: c for c in item.get("status", {}).get("conditions", ())}


def _pod_steps(pod: Object) -> list[Step]:
    steps = [Step.POD_CREATED]
    if _conditions(pod).get("PodScheduled", {}).get("reason") == "Unschedulable":
        steps.append(Step.POD_UNSCHEDULABLE)
    if pod.get("status", {}).get("phase") == "Running":
        steps.append(Step.POD_RUNNING)
    return steps


def _claim_steps(claim: Object) -> list[Step]:
    conditions = _conditions(claim)
    wanted = {
        "Launched": Step.CLAIM_LAUNCHED,
        "Registered": Step.CLAIM_REGISTERED,
        "Initialized": Step.CLAIM_INITIALIZED,
    }
    reached = [step for kind, step in wanted.items() if conditions.get(kind, {}).get("status") == "True"]
    return [Step.CLAIM_CREATED, *reached]

"""Probes of one container, run when they are due, and what they add up to."""

from __future__ import annotations

import http.client

import attrs

from sandbox.host_pods.pod_spec import HttpProbe

__all__ = ["Probing", "ask"]


def ask(port: int, path: str, timeout_s: float) -> bool:
    """Whether a GET on that port of the host is answered with 2xx or 3xx in time."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("GET", path, headers={"User-Agent": "kube-probe/sandbox"})
        return 200 <= connection.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@attrs.define
class Probing:
    """The state of one probe of one run of a container."""

    probe: HttpProbe
    started: float
    """When the container started, in monotonic seconds."""
    passes: bool
    """The verdict so far: liveness begins as True, readiness as False."""
    _next: float = attrs.field(init=False)
    _streak: int = 0
    _last: bool | None = None

    def __attrs_post_init__(self) -> None:
        """Plan the first question."""
        self._next = self.started + self.probe.initial_delay_s

    def is_due(self, now: float) -> bool:
        """Whether the probe should be asked now."""
        return now >= self._next

    def record(self, ok: bool, now: float) -> None:
        """Take an answer: the verdict changes when as many in a row say so as the thresholds ask."""
        self._next = now + self.probe.period_s
        self._streak = self._streak + 1 if ok == self._last else 1
        self._last = ok
        threshold = self.probe.success_threshold if ok else self.probe.failure_threshold
        if self._streak >= threshold:
            self.passes = ok

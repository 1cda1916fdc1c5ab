"""How long pods wait for us: from when we saw them to the decision, to being bound, to being ready.

Fed by the cluster observer (what pods do) and the provisioner (what was decided for them); read at each
scrape (spec core/observability §1.3). Instants are monotonic seconds; a restart forgets them.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Histogram

__all__ = ["PodTimes"]


class PodTimes:
    """What is known of pods that were seen pending, by UID."""

    def __init__(self, *, decision: Histogram, bound: Histogram, startup: Histogram) -> None:
        """Observe into these: seen to decided, placed by a plan to bound, and to ready."""
        self._decision = decision
        self._to_bound = bound
        self._to_startup = startup
        self._seen: dict[str, float] = {}
        """Pods that no plan has decided on yet."""
        self._planned: dict[str, float] = {}
        """Pods that a plan placed, since the first time it did, until they are ready."""
        self._bound: set[str] = set()

    def saw(self, uid: str, at: float) -> None:
        """Take note of a pod that waits for a node."""
        if uid not in self._planned:
            self._seen.setdefault(uid, at)

    def decided(self, uid: str, at: float, *, placed: bool) -> None:
        """Take note of what a plan says of a pod."""
        seen = self._seen.pop(uid, None)
        if seen is not None:
            self._decision.observe(at - seen)
        if placed:
            self._planned.setdefault(uid, at)

    def bound(self, uid: str, at: float) -> None:
        """Take note that a pod has a node."""
        self._seen.pop(uid, None)
        planned = self._planned.get(uid)
        if planned is not None and uid not in self._bound:
            self._bound.add(uid)
            self._to_bound.observe(at - planned)

    def started(self, uid: str, at: float) -> None:
        """Take note that a pod is ready."""
        planned = self._planned.get(uid)
        if planned is not None:
            self._to_startup.observe(at - planned)
        self.forget(uid)

    def forget(self, uid: str) -> None:
        """Drop a pod that ended or went."""
        self._seen.pop(uid, None)
        self._planned.pop(uid, None)
        self._bound.discard(uid)

    def waiting(self, uid: str, at: float) -> Iterator[tuple[str, float]]:
        """Yield what a pod waits for, by the metric's name, and the seconds so far."""
        if uid in self._seen:
            yield "provisioning_scheduling_undecided", at - self._seen[uid]
        if uid in self._planned:
            yield "provisioning_unstarted", at - self._planned[uid]
            if uid not in self._bound:
                yield "provisioning_unbound", at - self._planned[uid]

"""Which pods of a node are to go, and in what order (spec core/lifecycle §8.1).

Called by node termination; pure. The eviction queue does the evicting.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import attrs

from controller.scheduling import Pod, is_daemonset, is_evictable, is_mirror, is_terminal
from controller.scheduling.taints import DISRUPTED

__all__ = ["Drain", "Forced", "drain", "is_drainable"]

_STUCK: Final = timedelta(minutes=1)
"""A pod that should be gone that long is not waited for: its kubelet is dead."""
_CRITICAL: Final = frozenset({"system-cluster-critical", "system-node-critical"})
_DEFAULT_GRACE_S: Final = 30


@attrs.frozen(kw_only=True)
class Forced:
    """A pod to delete, not evict, so that it ends before the node's deadline."""

    pod: Pod
    grace_seconds: int
    """What is left until the deadline, at least 1."""


@attrs.frozen(kw_only=True)
class Drain:
    """What one pass over a node's pods found."""

    waiting: tuple[Pod, ...]
    """Pods that hold the drain up, do-not-disrupt ones included."""
    evict: tuple[Pod, ...]
    """Those of the first group that is not empty which may be evicted now."""
    forced: tuple[Forced, ...]


def is_drainable(pod: Pod, now: datetime) -> bool:
    """Tell whether the pod has to leave before its node goes."""
    if any(toleration.covers(DISRUPTED) for toleration in pod.tolerations) or is_mirror(pod):
        return False
    return pod.deletion_timestamp is None or now - pod.deletion_timestamp <= _STUCK


def drain(pods: Iterable[Pod], *, now: datetime, deadline: datetime | None) -> Drain:
    """Return who is waited for, who is evicted now and who is forced; `deadline` is the node's, if any."""
    waiting = tuple(
        sorted((pod for pod in pods if not is_terminal(pod) and is_drainable(pod, now)), key=lambda p: p.key)
    )
    forced = tuple(
        Forced(pod=pod, grace_seconds=max(1, int((deadline - now).total_seconds())))
        for pod in waiting
        if deadline is not None and _must_go(pod, now, deadline)
    )
    group = min((_group(pod) for pod in waiting), default=0)
    evict = tuple(pod for pod in waiting if _group(pod) == group and is_evictable(pod, now))
    return Drain(waiting=waiting, evict=evict, forced=forced)


def _group(pod: Pod) -> int:
    """Return the pod's turn: plain pods, then DaemonSets', then critical ones, then critical DaemonSets'."""
    critical = pod.priority_class_name in _CRITICAL
    return 2 * critical + is_daemonset(pod)


def _must_go(pod: Pod, now: datetime, deadline: datetime) -> bool:
    """Tell whether the pod needs all the time that is left to end gracefully, or has asked for more."""
    if pod.deletion_timestamp is not None:
        return pod.deletion_timestamp > deadline
    grace = pod.termination_grace_period_seconds
    return now > deadline - timedelta(seconds=_DEFAULT_GRACE_S if grace is None else grace)

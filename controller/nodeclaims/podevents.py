"""Pod events: when a pod last came to or left a node, which consolidateAfter counts from (lifecycle §10.2).

A reconciler of NodeClaims that is woken by pods; `event_keys` says which changes count. At most one write
per claim in ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

import attrs

from controller.clock import Clock
from controller.cluster import Mirror, Writer
from controller.kube import DONE, Change, Key, Requeue
from controller.scheduling import Pod, is_daemonset, is_terminal

__all__ = ["PodEvents", "event_keys", "is_event"]

_RESOLUTION: Final = timedelta(seconds=10)


def is_event(old: Pod | None, new: Pod | None) -> bool:
    """Tell whether a change of a pod counts: bound, ended, or asked to end."""
    if new is None or not new.node_name or is_daemonset(new):
        return False
    if old is None or not old.node_name:
        return True
    ended = is_terminal(new) and not is_terminal(old)
    return ended or (new.deletion_timestamp is not None and old.deletion_timestamp is None)


def event_keys(mirror: Mirror) -> Callable[[Change], Iterable[Key]]:
    """Return the mapping from changes of pods to the claims of their nodes."""

    def keys(change: Change) -> Iterable[Key]:
        if not is_event(change.old, change.new):
            return ()
        node = mirror.nodes.get(change.new.node_name)
        claim = mirror.claim_of(node) if node is not None else None
        return (Key(name=claim.name),) if claim is not None else ()

    return keys


class PodEvents:
    """Stamps claims."""

    name = "nodeclaim.podevents"

    def __init__(self, mirror: Mirror, writer: Writer, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer
        self._clock = clock

    async def reconcile(self, key: Key) -> Requeue:
        """Write the time of a pod event on one claim."""
        claim = self._mirror.claims.get(key.name)
        if claim is None or claim.deleting:
            return DONE
        now, last = self._clock.now(), claim.status.last_pod_event_time
        if last is not None and now - last < _RESOLUTION:
            return DONE
        status = attrs.evolve(claim.status, last_pod_event_time=now.replace(microsecond=0))
        await self._writer.claim(claim, attrs.evolve(claim, status=status))
        return DONE

"""One sample pod per DaemonSet, for the overhead that every node will carry (spec core/scheduling §13.2).

Owned by the mirror. The newest pod of a DaemonSet is the sample, since admission may have changed what
the template asks for; without one the template is, with the requests that its namespace's LimitRanges would
give it. Node affinity is always the template's.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import attrs

from controller.cluster.objects import DaemonSet, LimitRange
from controller.cluster.store import Index, Store
from controller.kube import Change
from controller.scheduling import Pod

__all__ = ["DaemonSamples"]

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class DaemonSamples:
    """Follows DaemonSets, their pods and the LimitRanges of their namespaces."""

    def __init__(
        self, daemonsets: Store[DaemonSet], pods: Store[Pod], limit_ranges: Store[LimitRange]
    ) -> None:
        """Follow the stores."""
        self._daemonsets = daemonsets
        self._limit_ranges = Index(limit_ranges, _namespace)
        self._pods = Index(pods, _daemonset_uids)
        self._samples: dict[str, Pod] = {}
        pods.subscribe(self._pod_changed)
        daemonsets.subscribe(self._daemonset_changed)
        limit_ranges.subscribe(self._limit_range_changed)

    def samples(self) -> tuple[Pod, ...]:
        """Return the sample of every DaemonSet, by namespace and name."""
        return tuple(self._sample(each) for each in sorted(self._daemonsets.objects.values(), key=_name))

    def _sample(self, daemonset: DaemonSet) -> Pod:
        uid = daemonset.metadata.uid
        if uid not in self._samples:
            template = Pod.from_wire(daemonset.admitted(self.defaults(daemonset.metadata.namespace or "")))
            newest = max(self._pods.get(uid), key=_age, default=None)
            self._samples[uid] = template if newest is None else _with_affinity(newest, template)
        return self._samples[uid]

    def defaults(self, namespace: str) -> dict[str, Any]:
        """Return the default requests of containers in a namespace; the first LimitRange by name wins."""
        found: dict[str, Any] = {}
        ranges = self._limit_ranges.get(namespace)
        for each in sorted(ranges, key=lambda limits: limits.metadata.name):
            found = {**each.requests, **found}
        return found

    def _pod_changed(self, change: Change) -> None:
        if change.old is None or change.new is None:
            for uid in _daemonset_uids(change.current):
                self._samples.pop(uid, None)

    def _daemonset_changed(self, change: Change) -> None:
        self._samples.pop(change.current.metadata.uid, None)

    def _limit_range_changed(self, _: Change) -> None:
        self._samples.clear()


def _with_affinity(pod: Pod, template: Pod) -> Pod:
    """Return the pod with the template's node affinity: the DaemonSet controller pinned it to its node."""
    return attrs.evolve(pod, required_terms=template.required_terms, node_name=None)


def _daemonset_uids(pod: Pod) -> tuple[str, ...]:
    return tuple(owner.uid for owner in pod.owners if owner.kind == "DaemonSet" and owner.controller)


def _namespace(limits: LimitRange) -> tuple[str, ...]:
    return (limits.metadata.namespace or "",)


def _name(daemonset: DaemonSet) -> tuple[str, str]:
    return (daemonset.metadata.namespace or "", daemonset.metadata.name)


def _age(pod: Pod) -> tuple[datetime, str]:
    return (pod.created or _EPOCH, pod.name)

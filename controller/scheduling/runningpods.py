"""The pods that run, grouped by what counters ask about them (spec core/scheduling §12.2, §12.5).

Made once per picture and shared by every run on it: a simulated removal then looks at groups of pods, not
at each of thousands. Private to the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from controller.scheduling.memo import IdentityMemo
from controller.scheduling.podfields import PodAffinityTerm
from controller.scheduling.pods import Pod, is_active
from controller.scheduling.snapshot import StateNode

__all__ = ["LabelGroup", "OwnerGroup", "RunningPods", "running_pods"]

_Place = tuple[Pod, StateNode]


@attrs.frozen(kw_only=True)
class LabelGroup:
    """Active pods of one namespace with the same labels."""

    namespace: str
    labels: Mapping[str, str]
    places: tuple[_Place, ...]


@attrs.frozen(kw_only=True)
class OwnerGroup:
    """Active pods of one namespace that carry the same required anti-affinity term."""

    namespace: str
    term: PodAffinityTerm
    places: tuple[_Place, ...]


@attrs.frozen(kw_only=True)
class RunningPods:
    """All active bound pods, in both groupings, in the order of the picture."""

    by_labels: tuple[LabelGroup, ...]
    owners: tuple[OwnerGroup, ...]

    @classmethod
    def of(cls, nodes: Sequence[StateNode]) -> RunningPods:
        """Group the pods of these nodes."""
        by_labels: dict[tuple[str, frozenset[tuple[str, str]]], list[_Place]] = {}
        owners: dict[tuple[str, PodAffinityTerm], list[_Place]] = {}
        for node in nodes:
            for pod in node.pods:
                if not is_active(pod):
                    continue
                key = (pod.namespace, frozenset(pod.labels.items()))
                by_labels.setdefault(key, []).append((pod, node))
                for term in pod.anti_affinity:
                    owners.setdefault((pod.namespace, term), []).append((pod, node))
        return cls(
            by_labels=tuple(
                LabelGroup(namespace=namespace, labels=places[0][0].labels, places=tuple(places))
                for (namespace, _), places in by_labels.items()
            ),
            owners=tuple(
                OwnerGroup(namespace=namespace, term=term, places=tuple(places))
                for (namespace, term), places in owners.items()
            ),
        )


_PICTURES: Final[IdentityMemo[RunningPods]] = IdentityMemo(4)
"""Few: a provisioning round, a disruption pass and its validation."""


def running_pods(nodes: Sequence[StateNode]) -> RunningPods:
    """Return the groups of these very nodes; made once per picture."""
    return _PICTURES.get((nodes,), lambda: RunningPods.of(nodes))

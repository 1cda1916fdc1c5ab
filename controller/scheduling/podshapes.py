"""Everything about a pod that decides where it may run, shared by all pods alike in it.

Used by `Pod.shape`; the engine works per shape, not per pod (design: pod classes). Labels are not
part of it: which of them matter depends on the selectors of the run.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakValueDictionary

import attrs

from controller.scheduling.podfields import (
    HostPort,
    PodAffinityTerm,
    PreferredNodeTerm,
    PreferredPodTerm,
    TopologySpread,
)
from controller.scheduling.requirements import Requirements
from controller.scheduling.taints import Toleration

__all__ = ["PodConstraints", "PodShape", "intern_shape"]


@attrs.frozen(kw_only=True, eq=False, slots=True, weakref_slot=True)
class PodConstraints:
    """One combination of constraints; equal combinations are the same object."""

    selector: Requirements
    required_terms: tuple[Requirements, ...]
    """Alternatives; empty when there are none."""
    preferred_terms: tuple[PreferredNodeTerm, ...]
    """Heaviest first, like the other preferences."""
    affinity: tuple[PodAffinityTerm, ...]
    anti_affinity: tuple[PodAffinityTerm, ...]
    preferred_affinity: tuple[PreferredPodTerm, ...]
    preferred_anti_affinity: tuple[PreferredPodTerm, ...]
    spread: tuple[TopologySpread, ...]
    tolerations: tuple[Toleration, ...]
    host_ports: tuple[HostPort, ...]
    volume_claims: tuple[str, ...]
    resource_claims: bool

    @property
    def has_pod_rules(self) -> bool:
        """Whether other pods decide where it may run."""
        return bool(
            self.affinity
            or self.anti_affinity
            or self.preferred_affinity
            or self.preferred_anti_affinity
            or self.spread
        )


@attrs.frozen(eq=False, slots=True, weakref_slot=True)
class PodShape:
    """Requests and constraints together; equal shapes are the same object."""

    requests: tuple[tuple[str, int], ...]
    """Sorted by name, zero amounts left out."""
    constraints: PodConstraints


_CONSTRAINTS: Final[WeakValueDictionary[tuple[object, ...], PodConstraints]] = WeakValueDictionary()
_SHAPES: Final[WeakValueDictionary[tuple[object, ...], PodShape]] = WeakValueDictionary()
"""Shapes in use; an entry goes when the last pod of that shape goes."""


def intern_shape(requests: tuple[tuple[str, int], ...], constraints: PodConstraints) -> PodShape:
    """Return the one shape with these requests and constraints."""
    key = tuple(getattr(constraints, name) for name in _FIELDS)
    known = _CONSTRAINTS.setdefault(key, constraints)
    return _SHAPES.setdefault((requests, known), PodShape(requests, known))


_FIELDS: Final = tuple(field.name for field in attrs.fields(PodConstraints))

"""The question asked of the engine and its answer (spec core/scheduling §4, §19).

`Problem` goes in, `Plan` comes out of `solve`. Frozen values; printing and carrying out is the shell's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import attrs

from controller.scheduling.instancetypes import InstanceType
from controller.scheduling.pods import Pod
from controller.scheduling.reasons import Reason
from controller.scheduling.requirements import Requirements
from controller.scheduling.resources import Resources
from controller.scheduling.snapshot import Snapshot
from controller.scheduling.taints import Taint
from framework.api import labels
from framework.api.schedulingconfig import MinValuesPolicy, Objective, PreferencePolicy

__all__ = [
    "MinValuesPolicy",
    "Objective",
    "Options",
    "Placement",
    "Plan",
    "PlannedClaim",
    "PreferencePolicy",
    "Problem",
    "ReservedMode",
    "Stats",
    "Unplaced",
]


class ReservedMode(StrEnum):
    """What happens when reserved capacity is compatible but cannot be had (§14)."""

    STRICT = "Strict"
    FALLBACK = "Fallback"


@attrs.frozen(kw_only=True)
class Options:
    """How to solve (§4)."""

    objective: Objective = Objective.FIRST_FIT
    preference_policy: PreferencePolicy = PreferencePolicy.RESPECT
    min_values_policy: MinValuesPolicy = MinValuesPolicy.STRICT
    reserved_mode: ReservedMode = ReservedMode.STRICT
    reserved_capacity: bool = True
    """Gate ReservedCapacity."""
    well_known: frozenset[str] = labels.WELL_KNOWN | labels.AWS_WELL_KNOWN
    """Labels a pod may require although no pool mentions them."""
    ignore_dra: bool = True
    excluded: frozenset[str] = frozenset()
    """Names of nodes to leave out: candidates of a simulated disruption."""
    search_steps: int = 2000
    """Most steps that the Cost objective may take; the same budget always gives the same plan."""


@attrs.frozen(kw_only=True)
class Problem:
    """One question: where would these pods go."""

    snapshot: Snapshot
    pods: tuple[Pod, ...] = attrs.field(converter=tuple[Pod, ...])
    """Pods to place: pending ones and those of nodes that go away."""
    instance_types: Mapping[str, Sequence[InstanceType]]
    """By pool name; a pool without an entry is skipped."""
    options: Options = attrs.field(factory=Options)


@attrs.frozen(kw_only=True)
class PlannedClaim:
    """A node to create."""

    pool: str
    requirements: Requirements
    """Ready for the claim's spec: the instance types are in it, host names are not."""
    instance_types: tuple[str, ...]
    """Cheapest first, at most 600."""
    requests: Resources
    """Its pods and the least daemon overhead of the remaining types, `pods` included."""
    pods: tuple[str, ...]
    """UIDs, in the order they were placed."""
    pod_keys: tuple[str, ...]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    startup_taints: tuple[Taint, ...]
    price: float
    """USD per hour of the cheapest offering that may be launched."""
    min_values_relaxed: bool = False

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones it is narrowed to, sorted; empty when the pool leaves them open."""
        zone = self.requirements.get(labels.ZONE)
        return tuple(sorted(zone.values)) if zone is not None and not zone.complement else ()


@attrs.frozen(kw_only=True)
class Placement:
    """A pod on a node that exists or is on its way."""

    pod_key: str
    pod_uid: str
    node: str
    """`StateNode.name`."""


@attrs.frozen(kw_only=True)
class Unplaced:
    """A pod that found no place, and why."""

    pod_key: str
    pod_uid: str
    reason: Reason
    retryable: bool = False
    """Waits for a reservation or for time: no event, tried again next round (§14)."""


@attrs.frozen(kw_only=True)
class Stats:
    """What a run did, for metrics."""

    pods: int = 0
    classes: int = 0
    """Groups of pods that no scheduler can tell apart."""
    tries: int = 0
    relaxed: int = 0
    ignored: int = 0
    """Pods that failed validation."""
    search_steps: int = 0
    timed_out: bool = False


@attrs.frozen(kw_only=True)
class Plan:
    """What a run decided."""

    claims: tuple[PlannedClaim, ...] = ()
    placements: tuple[Placement, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    pool_problems: Mapping[str, Reason] = attrs.field(factory=dict)
    """Why a pool could not be used at all, by name."""
    stats: Stats = attrs.field(factory=Stats)

    @property
    def hourly_price(self) -> float:
        """USD per hour of all new claims."""
        return sum(claim.price for claim in self.claims)

"""Pods that no scheduler can tell apart, and what is tried for them in turn (spec core/scheduling §6).

A class has a ladder of variants: the pod as written, then with one preference less each, down to
its hard rules. Private to the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from controller.scheduling.claimshapes import ClaimShape, ShapeTable
from controller.scheduling.podfields import HostPort, PodAffinityTerm, PreferredNodeTerm, TopologySpread
from controller.scheduling.podrules import PodRule
from controller.scheduling.pods import Pod
from controller.scheduling.podshapes import PodConstraints
from controller.scheduling.requirements import EMPTY, Requirements
from controller.scheduling.taints import Toleration, tolerates
from controller.scheduling.topology import Counter

__all__ = ["ClassRules", "NodeRules", "PodClass", "Terms", "Variant", "ladder"]

_SOFT_TAINTS = Toleration(operator="Exists", effect="PreferNoSchedule")
_NEVER = -1


@attrs.frozen(kw_only=True)
class Terms:
    """One rung of the ladder: which constraints are in force."""

    required_terms: tuple[Requirements, ...]
    """Alternatives left; only the first is in force."""
    preferred_terms: tuple[PreferredNodeTerm, ...]
    """Only the first, the heaviest, is in force."""
    affinity: tuple[PodAffinityTerm, ...]
    preferred_affinity: tuple[PodAffinityTerm, ...]
    anti_affinity: tuple[PodAffinityTerm, ...]
    preferred_anti_affinity: tuple[PodAffinityTerm, ...]
    spread: tuple[TopologySpread, ...]
    tolerates_soft_taints: bool = False

    @classmethod
    def of(cls, constraints: PodConstraints, *, preferences: bool) -> Terms:
        """Return the first rung; without preferences only hard constraints are in it."""
        return cls(
            required_terms=constraints.required_terms,
            preferred_terms=constraints.preferred_terms if preferences else (),
            affinity=constraints.affinity,
            preferred_affinity=tuple(p.term for p in constraints.preferred_affinity) if preferences else (),
            anti_affinity=constraints.anti_affinity,
            preferred_anti_affinity=tuple(p.term for p in constraints.preferred_anti_affinity)
            if preferences
            else (),
            spread=tuple(c for c in constraints.spread if c.hard or preferences),
        )

    def strict(self, selector: Requirements) -> Requirements:
        """Return the node requirements in force without the preference."""
        return selector.union(self.required_terms[0]) if self.required_terms else selector

    def effective(self, selector: Requirements) -> Requirements:
        """Return the node requirements in force, the heaviest preference included."""
        strict = self.strict(selector)
        return strict.union(self.preferred_terms[0].requirements) if self.preferred_terms else strict

    def relaxed(self, *, soft_taints: bool) -> Terms | None:
        """Return the next rung, None when nothing more may be dropped (§6)."""
        if len(self.required_terms) > 1:
            return attrs.evolve(self, required_terms=self.required_terms[1:])
        for name in ("preferred_affinity", "preferred_anti_affinity", "preferred_terms"):
            if left := getattr(self, name):
                return attrs.evolve(self, **{name: left[1:]})
        for place, constraint in enumerate(self.spread):
            if not constraint.hard:
                kept = list(self.spread)
                kept[place] = kept[-1]
                return attrs.evolve(self, spread=tuple(kept[:-1]))
        if soft_taints and not self.tolerates_soft_taints:
            return attrs.evolve(self, tolerates_soft_taints=True)
        return None


def ladder(constraints: PodConstraints, *, preferences: bool, soft_taints: bool) -> Iterator[Terms]:
    """Yield the rungs from the pod as written to its hard rules alone."""
    rung: Terms | None = Terms.of(constraints, preferences=preferences)
    while rung is not None:
        yield rung
        rung = rung.relaxed(soft_taints=soft_taints)


class NodeRules:
    """What a pod demands of a node's labels, taints and daemon ports, shared by all that demand the same."""

    def __init__(
        self, requirements: Requirements, tolerations: tuple[Toleration, ...], ports: tuple[HostPort, ...]
    ) -> None:
        """Start without knowing any claim state."""
        self.requirements = requirements
        self.tolerations = tolerations
        self.ports = ports
        self._moves: dict[int, ClaimShape | None] = {}
        self._column: NDArray[np.int32] = np.empty(0, dtype=np.int32)

    def move(self, shape: ClaimShape, shapes: ShapeTable) -> ClaimShape | None:
        """Return the state a claim is in after taking such a pod, None when it cannot."""
        if shape.id in self._moves:
            return self._moves[shape.id]
        moved = self._moves[shape.id] = self._find(shape, shapes)
        return moved

    def _find(self, shape: ClaimShape, shapes: ShapeTable) -> ClaimShape | None:
        template = shape.template
        if tolerates(self.tolerations, template.taints) is not None:
            return None
        free = template.daemons.free_of(self.ports) if self.ports else None
        if free is not None:
            base = shape.base & free
            narrowed = shapes.intern(template, shape.requirements, base)
            if narrowed is None:
                return None
            shape = narrowed
        return shapes.narrow_all(shape, self.requirements)

    def moves(self, shapes: ShapeTable) -> NDArray[np.int32]:
        """Return the number of the next state per state, -1 where there is none: (states,) int32."""
        done = self._column.size
        if done < len(shapes.shapes):
            found: list[int] = []
            for shape in shapes.shapes[done:]:
                moved = self.move(shape, shapes)
                found.append(_NEVER if moved is None else moved.id)
            self._column = np.concatenate([self._column, np.array(found, dtype=np.int32)])
        return self._column


@attrs.define(kw_only=True, eq=False)
class Variant:
    """One rung of a class, ready to be tried."""

    rules: tuple[NodeRules, ...]
    """One per alternative of its volumes, tried in order."""
    strict: Requirements
    ports: tuple[HostPort, ...]
    host_rules: tuple[PodRule, ...]
    domain_rules: tuple[PodRule, ...]


@attrs.define(kw_only=True, eq=False)
class ClassRules:
    """What classes share that differ in requests only."""

    sample: Pod
    constraints: PodConstraints
    counters: tuple[Counter, ...]
    """Those that select its pods."""
    counts_in: tuple[Counter, ...]
    """Those and the ones of its own required anti-affinity terms: its pods are counted in them."""
    volumes: tuple[tuple[str, str], ...]
    """(driver, claim key) of each volume that takes an attach slot."""
    variants: tuple[Variant, ...] = ()
    """The ladder; filled when first asked for."""


class PodClass:
    """Pods alike to the engine, with their requests as columns."""

    __slots__ = ("failed_at", "request", "rules", "views")

    def __init__(self, rules: ClassRules, request: list[int]) -> None:
        """Start without notes; `request` is per resource column."""
        self.rules = rules
        self.request = request
        self.failed_at = -1
        """Number of placements when it last found no place."""
        self.views: dict[object, Any] = {}
        """Notes of the packing on which rows may take it, by variant or node rules."""


def alternatives_of(volumes: Iterable[tuple[Requirements, ...]]) -> tuple[Requirements, ...]:
    """Return every combination of volumes' alternatives that is not contradictory (§13.4).

    When all are, the contradictory ones stay, so that the pod fails and says why.
    """
    combined: list[Requirements] = [EMPTY]
    for alternatives in volumes:
        if not alternatives:
            continue
        crossed = [(left, right) for left in combined for right in alternatives]
        agreeing = [left.union(right) for left, right in crossed if left.intersects(right)]
        combined = agreeing or [left.union(right) for left, right in crossed]
    return tuple(dict.fromkeys(combined))


def signature(pod: Pod, keys: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the labels that some selector of the run looks at, in the order of the keys."""
    labels = pod.labels
    return tuple([(key, labels[key]) for key in keys if key in labels])

"""Turns open claims into planned ones (spec core/scheduling §8 truncation, §11 finalisation, §14, §19).

Private to the engine.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from controller.scheduling.catalog import BoolColumn
from controller.scheduling.claimshapes import ClaimShape, ShapeTable
from controller.scheduling.instancetypes import CapacityType
from controller.scheduling.openclaims import OpenClaim
from controller.scheduling.plan import PlannedClaim
from controller.scheduling.requirements import Requirement, Requirements
from controller.scheduling.resources import Resources
from controller.scheduling.templates import Template
from framework.api import labels
from framework.api.requirement_spec import Operator
from framework.api.schedulingconfig import MinValuesPolicy

__all__ = ["Finisher"]

MAX_TYPES: Final = 600
"""Most instance types that a claim names."""


class Finisher:
    """Freezes claims; what claims of one state share is worked out once."""

    def __init__(self, shapes: ShapeTable, resources: tuple[str, ...], well_known: frozenset[str]) -> None:
        """Take the run's states and resource columns."""
        self._shapes = shapes
        self._resources = resources
        self._well_known = well_known
        self._orders: dict[int, NDArray[np.int64]] = {}
        self._specs: dict[tuple[int, bytes], tuple[Requirements, tuple[str, ...], float]] = {}
        self._fixed: dict[int, tuple[dict[str, str], dict[str, str]]] = {}

    def freeze(self, claim: OpenClaim) -> PlannedClaim | None:
        """Return the planned claim; None when truncation leaves too few values for a strict minValues."""
        shape = self._pinned(claim)
        template = shape.template
        types = shape.types_holding(claim.used)
        requirements, names, price = self._spec(shape, types)
        if shape.min_values:
            if not self._keeps_values(shape, names, claim):
                return None
            for key, count in claim.lowered.items():
                lowered = attrs.evolve(requirements[key], min_values=count)
                requirements = Requirements({**requirements, key: lowered})
        marks = self._marks(template, names, relaxed=bool(claim.lowered))
        return PlannedClaim(
            pool=template.name,
            requirements=requirements,
            instance_types=names,
            requests=self._requests(claim, types),
            pods=tuple([pod.uid for pod in claim.pods]),
            pod_keys=tuple([pod.key for pod in claim.pods]),
            labels=self._labels(template, requirements),
            annotations={**template.pool.spec.template.metadata.annotations, **marks},
            taints=template.taints,
            startup_taints=template.startup_taints,
            price=price,
            min_values_relaxed=bool(claim.lowered),
        )

    def _pinned(self, claim: OpenClaim) -> ClaimShape:
        """A claim that holds reservations may only become one of those."""
        if not claim.held:
            return claim.shape
        pins = (
            Requirement.new(labels.CAPACITY_TYPE, Operator.IN, (CapacityType.RESERVED,)),
            Requirement.new(labels.CAPACITY_RESERVATION_ID, Operator.IN, claim.held),
        )
        shape = claim.shape
        pinned = self._shapes.intern(shape.template, shape.requirements.add(*pins), shape.base)
        return shape if pinned is None else pinned

    def _spec(self, shape: ClaimShape, types: BoolColumn) -> tuple[Requirements, tuple[str, ...], float]:
        key = (shape.id, types.tobytes())
        known = self._specs.get(key)
        if known is None:
            order = self._orders.get(shape.id)
            if order is None:
                order = self._orders[shape.id] = np.argsort(shape.price, kind="stable")
            rows = order[types[order]][:MAX_TYPES]
            names = tuple(shape.template.table.names[rows].tolist())
            price = float(shape.price[rows[0]]) if rows.size else float("inf")
            chosen = np.zeros_like(types)
            chosen[rows] = True
            known = self._specs[key] = (self._requirements(shape, names, chosen), names, price)
        return known

    def _requirements(self, shape: ClaimShape, names: tuple[str, ...], chosen: BoolColumn) -> Requirements:
        by_key = dict(shape.requirements)
        asked = by_key.get(labels.INSTANCE_TYPE)
        by_key[labels.INSTANCE_TYPE] = Requirement(
            key=labels.INSTANCE_TYPE,
            complement=False,
            values=frozenset(names),
            min_values=None if asked is None else asked.min_values,
        )
        offered = []
        for capacity_type in CapacityType:
            one = Requirement.new(labels.CAPACITY_TYPE, Operator.IN, (capacity_type,))
            known = shape.requirements.get(labels.CAPACITY_TYPE)
            if known is None or known.overlaps(one):
                has, _ = shape.template.table.offered(shape.requirements.add(one))
                if (has & chosen).any():
                    offered.append(capacity_type)
        asked = by_key.get(labels.CAPACITY_TYPE)
        by_key[labels.CAPACITY_TYPE] = Requirement.new(
            labels.CAPACITY_TYPE, Operator.IN, offered, None if asked is None else asked.min_values
        )
        return Requirements(by_key)

    def _keeps_values(self, shape: ClaimShape, names: tuple[str, ...], claim: OpenClaim) -> bool:
        if shape.template.min_values_policy is not MinValuesPolicy.STRICT:
            return True
        table = shape.template.table
        chosen = np.isin(table.names, np.array(names, dtype=object))
        return all(
            table.distinct_values(key, chosen) >= claim.lowered.get(key, wanted)
            for key, wanted in shape.min_values.items()
        )

    def _requests(self, claim: OpenClaim, types: BoolColumn) -> Resources:
        """Return pods and the least daemon overhead of the types left (§13.2)."""
        daemons = claim.shape.template.daemons
        if daemons.is_empty:
            return {name: used for name, used in zip(self._resources, claim.used, strict=True) if used}
        overhead = daemons.overhead[types]
        least = overhead.min(axis=0).tolist() if overhead.size else [0] * len(self._resources)
        totals = zip(self._resources, claim.used, least, strict=True)
        return {name: used + daemon for name, used, daemon in totals if used + daemon}

    def _labels(self, template: Template, requirements: Requirements) -> dict[str, str]:
        """Return the template's labels and a value per custom key that the pool requires (core/api §8.1)."""
        ref = template.pool.spec.template.spec.node_class_ref
        chosen = dict(template.pool.spec.template.metadata.labels)
        chosen[labels.NODEPOOL] = template.name
        chosen[f"{ref.group}/{ref.kind.lower()}"] = ref.name
        for key in sorted(template.requirements):
            if key not in chosen and key not in self._well_known:
                value = any_value(requirements[key])
                if value is not None:
                    chosen[key] = value
        return chosen

    def _marks(self, template: Template, names: tuple[str, ...], *, relaxed: bool) -> dict[str, str]:
        marks = {labels.MIN_VALUES_RELAXED: "true" if relaxed else "false"}
        if template.has_overlays:
            wanted = set(names)
            types = [t for t in template.table.types if t.name in wanted]
            if any(offering.overlaid for t in types for offering in t.offerings):
                marks[labels.PRICE_OVERLAY_APPLIED] = "true"
            if any(t.overlaid for t in types):
                marks[labels.CAPACITY_OVERLAY_APPLIED] = "true"
        return marks


def any_value(requirement: Requirement) -> str | None:
    """Return the first value allowed: the least listed one, or the least whole number in range."""
    if not requirement.complement:
        return min(requirement.values, default=None)
    number = requirement.gte or 0
    if requirement.lte is not None and requirement.lte < number:
        number = requirement.lte
    while not requirement.has(str(number)):
        number += 1
    return str(number)

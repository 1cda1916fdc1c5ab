"""Puts pods on claims opened in this run, or opens new ones (spec core/scheduling §11, §12.6).

Private to the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from controller.scheduling.catalog import BoolColumn
from controller.scheduling.claimshapes import ClaimShape, ShapeTable
from controller.scheduling.openclaims import FEW_CLAIMS, REFUSED, ClaimView, OpenClaim, OpenClaims
from controller.scheduling.podclasses import NodeRules, PodClass, Variant
from controller.scheduling.podrules import PodRule
from controller.scheduling.pods import Pod
from controller.scheduling.requirements import Requirement
from controller.scheduling.reservations import Reservations, ReservedRefusal
from controller.scheduling.templates import Template
from controller.scheduling.topology import Counter
from framework.api.requirement_spec import Operator
from framework.api.schedulingconfig import MinValuesPolicy

__all__ = ["ClaimPacking"]


@attrs.define(kw_only=True, eq=False)
class _Move:
    """What taking a pod would make of a claim."""

    shape: ClaimShape
    used: list[int]
    held: frozenset[str] = frozenset()
    lowered: dict[str, int] = attrs.field(factory=dict)


class ClaimPacking:
    """Open claims with the ways of adding to them."""

    def __init__(self, shapes: ShapeTable, resources: int, reservations: Reservations) -> None:
        """Start without claims."""
        self.shapes = shapes
        self.open = OpenClaims(shapes, resources)
        self._nothing = [0] * resources
        self._reservations = reservations
        self._narrowings: dict[int, tuple[ClaimShape, ...]] = {}
        self._wanted: dict[tuple[str, frozenset[str]], Requirement] = {}

    # Open claims

    def place(self, pods: Sequence[Pod], cls: PodClass, variant: Variant) -> int:
        """Put as many of the pods, all of the class, as may go at once on the first claim that takes one.

        Return how many were placed, the first so many of them; 0 when no open claim takes any.
        """
        for rules in variant.rules:
            self._narrowings.clear()
            if len(self.open) <= FEW_CLAIMS:
                found, keys = self._first(cls, variant, rules), None
            else:
                found, keys = self._first_of_many(cls, variant, rules)
            if found is not None:
                claim, move = found
                count = 1 if len(pods) == 1 else self._at_once(claim, move, cls, variant, keys)
                chosen = pods[:count]
                self._settle(claim, move, chosen, cls, variant)
                return len(chosen)
        return 0

    def _at_once(
        self,
        claim: OpenClaim,
        move: _Move,
        cls: PodClass,
        variant: Variant,
        keys: NDArray[np.int64] | None,
    ) -> int:
        """How many pods the claim takes before anything about them or their order can change."""
        template = move.shape.template
        one_by_one = (
            variant.domain_rules
            or variant.host_rules
            or variant.ports
            or move.shape.min_values
            or template.has_reservations
        )
        if one_by_one:
            return 1
        return min(move.shape.more(claim.used, cls.request), self.open.lead(claim, keys))

    def _first(self, cls: PodClass, variant: Variant, rules: NodeRules) -> tuple[OpenClaim, _Move] | None:
        claims = self.open.claims
        for _, row in self.open.order:
            claim = claims[row]
            moved = self.open.fits(claim, variant, rules, cls)
            if moved is not None and (move := self._move(claim, moved, cls, variant)) is not None:
                return claim, move
        return None

    def _first_of_many(
        self, cls: PodClass, variant: Variant, rules: NodeRules
    ) -> tuple[tuple[OpenClaim, _Move] | None, NDArray[np.int64] | None]:
        known = cls.views.get(rules)
        opens = any(rule.opens for rule in variant.host_rules)
        fresh = known if isinstance(known, ClaimView) and not opens else None
        view = cls.views[rules] = self.open.view(variant, rules, cls, fresh)
        keys = view.keys[: len(self.open)]
        owned = False
        while True:
            row = int(keys.argmin())
            if keys[row] == REFUSED:
                return None, None
            claim = self.open.claims[row]
            moved = rules.move(claim.shape, self.shapes)
            move = None if moved is None else self._move(claim, moved, cls, variant)
            if move is not None:
                return (claim, move), keys
            if not owned:
                keys, owned = keys.copy(), True
            if moved is not None and self._narrowings.get(moved.id) == ():
                keys[self.open.shape_ids() == claim.shape.id] = REFUSED
            keys[row] = REFUSED

    def _move(self, claim: OpenClaim, moved: ClaimShape, cls: PodClass, variant: Variant) -> _Move | None:
        """Return what taking the pod would make of a claim that `fits` it in state `moved`."""
        used = claim.with_request(cls.request)
        narrowed = self._narrowed(moved, variant)
        for shape in narrowed:
            if shape is not moved and not shape.holds(used):
                continue
            if not shape.min_values and not shape.template.has_reservations:
                return _Move(shape=shape, used=used)
            types = shape.types_holding(used)
            if self._lacks_values(shape, types, claim.lowered):
                continue
            try:
                held = self._reservations.choose(shape.template, shape.requirements, types, claim.held)
            except ReservedRefusal:
                continue
            return _Move(shape=shape, used=used, held=held, lowered=claim.lowered)
        return None

    def _narrowed(self, moved: ClaimShape, variant: Variant) -> tuple[ClaimShape, ...]:
        """Return the states that satisfy every rule about domains, best first."""
        if not variant.domain_rules:
            return (moved,)
        known = self._narrowings.get(moved.id)
        if known is None:
            known = self._narrowings[moved.id] = tuple(self._narrow(moved, variant.domain_rules, variant))
        return known

    def _narrow(self, shape: ClaimShape, rules: Sequence[PodRule], variant: Variant) -> list[ClaimShape]:
        if not rules:
            return [shape]
        rule, rest = rules[0], rules[1:]
        key = rule.counter.key.topology_key
        choices = rule.choices(shape.requirements.get(key), variant.strict.get(key))
        if choices is None:
            return self._narrow(shape, rest, variant)
        found: list[ClaimShape] = []
        for values in choices:
            wanted = self._wanted.get((key, values))
            if wanted is None:
                wanted = self._wanted[key, values] = Requirement.new(key, Operator.IN, values)
            narrowed = self.shapes.narrow(shape, wanted)
            if narrowed is not None:
                found += self._narrow(narrowed, rest, variant)
        return found

    def _lacks_values(self, shape: ClaimShape, types: BoolColumn, lowered: dict[str, int]) -> bool:
        return any(
            shape.template.table.distinct_values(key, types) < lowered.get(key, wanted)
            for key, wanted in shape.min_values.items()
        )

    def _settle(
        self, claim: OpenClaim, move: _Move, pods: Sequence[Pod], cls: PodClass, variant: Variant
    ) -> None:
        before, count = claim.shape, len(pods)
        used = move.used
        if count > 1:
            used = [have + (count - 1) * more for have, more in zip(used, cls.request, strict=True)]
        if move.held != claim.held:
            self._reservations.exchange(claim.held, move.held)
            claim.held = move.held
        claim.lowered = move.lowered
        claim.ports += variant.ports
        self.open.settle(claim, move.shape, used, pods)
        if before is not move.shape and claim.counted:
            self._recount(claim, before)
        if cls.rules.counts_in:
            claim.counted[cls] = claim.counted.get(cls, 0) + count
            for counter in cls.rules.counts_in:
                self._count(counter, claim, count)

    def settle_group(
        self, counter: Counter, cls: PodClass, variant: Variant, templates: Sequence[Template]
    ) -> None:
        """Narrow one claim with pods that the counter selects to a domain in which the pod may be.

        They may all come up anywhere; the pod that has to follow them could not be bound if they came up
        elsewhere.
        """
        key = counter.key.topology_key
        allowed = variant.strict.get(key)
        wanted = [
            Requirement.new(key, Operator.IN, (domain,))
            for domain in sorted(counter.counts)
            if allowed is None or allowed.has(domain)
        ]
        starts = [self._start(template) for template in templates]
        moved = [rules.move(start, self.shapes) for start in starts if start for rules in variant.rules]
        for claim in self.open.claims:
            if not any(counter in mate.rules.counters for mate in claim.counted):
                continue
            for requirement in wanted:
                narrowed = self.shapes.narrow(claim.shape, requirement)
                if narrowed is None or narrowed.min_values or not narrowed.holds(claim.used):
                    continue
                places = (self.shapes.narrow(shape, requirement) for shape in moved if shape)
                if any(place is not None and place.holds(cls.request) for place in places):
                    before = claim.shape
                    self.open.reshape(claim, narrowed)
                    self._recount(claim, before)
                    return

    def _count(self, counter: Counter, claim: OpenClaim, pods: int) -> None:
        counter.add_claim(claim.row, _domains(counter, claim.shape), pods)

    def _recount(self, claim: OpenClaim, before: ClaimShape) -> None:
        """Move the pods of a claim to the domains that it may be in now."""
        for cls, pods in claim.counted.items():
            for counter in cls.rules.counts_in:
                old, new = _domains(counter, before), _domains(counter, claim.shape)
                if old != new:
                    counter.add_claim(claim.row, old, -pods)
                    counter.add_claim(claim.row, new, pods)

    # New claims

    def open_new(self, pod: Pod, cls: PodClass, variant: Variant, template: Template) -> bool:
        """Open a claim of the template for the pod; False when it cannot be.

        Raises ReservedRefusal as `Reservations.choose` does.
        """
        start = self._start(template)
        if start is None or not all(rule.host(0) for rule in variant.host_rules):
            return False
        return any(self._open_from(each, pod, cls, variant) for each in self._steered(start, variant))

    def _open_from(self, start: ClaimShape, pod: Pod, cls: PodClass, variant: Variant) -> bool:
        for rules in variant.rules:
            moved = rules.move(start, self.shapes)
            if moved is None:
                continue
            self._narrowings.clear()
            for shape in self._narrowed(moved, variant):
                if (move := self._opening(shape, cls)) is not None:
                    self._open(start, move, pod, cls, variant)
                    return True
        return False

    def _steered(self, start: ClaimShape, variant: Variant) -> Iterable[ClaimShape]:
        """Return the states to open in, best first, as the pool's SchedulingConfig has it."""
        steering = start.template.steering
        return (start,) if steering is None else steering.starts(start, variant, self.open, self.shapes)

    def openings(self, start: ClaimShape, variant: Variant) -> tuple[ClaimShape, ...]:
        """Return the states that a claim for such a pod may now be opened in, for explanations."""
        return tuple(self._steered(start, variant))

    def _start(self, template: Template) -> ClaimShape | None:
        return self.shapes.intern(template, template.requirements, template.allowed())

    def open_guided(self, pod: Pod, cls: PodClass, variant: Variant, start: ClaimShape) -> OpenClaim | None:
        """Open a claim from a given state for the pod, as a planned bin; None when it cannot be."""
        if not all(rule.host(0) for rule in variant.host_rules):
            return None
        for each in self._steered(start, variant):
            if self._open_from(each, pod, cls, variant):
                return self.open.claims[-1]
        return None

    def add_guided(self, claim: OpenClaim, pods: Sequence[Pod], cls: PodClass, variant: Variant) -> int:
        """Put as many of the pods as may go at once on this claim; return how many, 0 when none may."""
        moved = self.open.fits(claim, variant, variant.rules[0], cls)
        if moved is None:
            return 0
        self._narrowings.clear()
        move = self._move(claim, moved, cls, variant)
        if move is None:
            return 0
        single = variant.domain_rules or variant.host_rules or variant.ports
        count = 1 if single else move.shape.more(claim.used, cls.request)
        chosen = pods[:count]
        self._settle(claim, move, chosen, cls, variant)
        return len(chosen)

    def _opening(self, shape: ClaimShape, cls: PodClass) -> _Move | None:
        used = list(cls.request)
        if not shape.holds(used):
            return None
        if not shape.min_values and not shape.template.has_reservations:
            return _Move(shape=shape, used=used)
        types = shape.types_holding(used)
        lowered: dict[str, int] = {}
        for key, wanted in shape.min_values.items():
            count = shape.template.table.distinct_values(key, types)
            if count < wanted:
                if shape.template.min_values_policy is MinValuesPolicy.STRICT:
                    return None
                lowered[key] = count
        held = self._reservations.choose(shape.template, shape.requirements, types, frozenset())
        return _Move(shape=shape, used=used, held=held, lowered=lowered)

    def _open(self, start: ClaimShape, move: _Move, pod: Pod, cls: PodClass, variant: Variant) -> None:
        template = start.template
        claim = self.open.open(start, self._nothing)
        self._settle(claim, move, (pod,), cls, variant)
        if template.ledgers:
            possible = move.shape.types_holding(move.used)
            for ledger in template.ledgers:
                ledger.charge(template.capacity, possible)


def _domains(counter: Counter, shape: ClaimShape) -> frozenset[str]:
    return counter.domains_of(shape.id, shape.requirements, shape.template.taints)

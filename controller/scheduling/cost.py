"""The Cost objective: looks for a cheaper plan than first fit (design: SchedulingConfig, packing).

Starts from the first-fit run. For each pool it asks which machines would hold everything cheapest,
deals the pods out over them so that no resource is left over, and lets the engine itself put them
there, rule by rule; whatever does not go goes by first fit. Never returns a dearer plan, nor one that
places fewer pods. Pools keep their order: a pod stays with the pool that first fit chose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from controller.scheduling.binmix import Column, Demand, cheapest_mix, undominated
from controller.scheduling.claimshapes import ClaimShape
from controller.scheduling.openclaims import OpenClaim
from controller.scheduling.plan import Plan, Problem
from controller.scheduling.podclasses import PodClass, Variant
from controller.scheduling.podrules import SpreadRule
from controller.scheduling.pods import Pod
from controller.scheduling.requirements import Requirement
from controller.scheduling.run import Run
from controller.scheduling.templates import Template
from controller.scheduling.virtualpods import is_virtual
from framework.api import labels
from framework.api.requirement_spec import Operator

__all__ = ["cheaper_plan"]

_TRIES: Final = ((1, 0.004), (1, 0.1), (1, 0.2), (8, 0.01), (8, 0.04), (1, 0.04))
"""Smallest machine in multiples of the largest pod, and the margin, in the order they are tried."""
_PODS_PER_TRY: Final = 10
"""A batch of few pods is worth few tries: it should not wait longer for its plan than it saves."""
_CLOSE_ENOUGH: Final = 1.006
"""Stop once a plan is this near to what its mix of machines would cost with nothing left over."""


@attrs.define(kw_only=True, eq=False)
class _Group:
    """Pods of one class that first fit put on new claims of one pool."""

    cls: PodClass
    variant: Variant
    pods: list[Pod]
    by_zone: bool
    """A rule spreads them over zones."""
    kinds: dict[str | None, frozenset[int]] = attrs.field(factory=dict)
    """Kinds of machines that suit it, by zone; under None those of any zone."""


@attrs.define(kw_only=True, eq=False)
class _Bin:
    """A machine to fill."""

    column: Column
    pinned: bool = False
    claim: OpenClaim | None = None


def cheaper_plan(problem: Problem, first: Run, plan: Plan, expired: Callable[[], bool]) -> Plan:
    """Return the cheapest plan found, `plan` itself when nothing beats it."""
    best, steps = plan, 0
    virtual = {pod.uid for pod in problem.pods if is_virtual(pod)}

    def lost(found: Plan) -> int:
        """Count the pods left out that exist: room kept free is never worth one of them."""
        return sum(each.pod_uid not in virtual for each in found.unplaced)

    for smallest, slack in _TRIES[: max(2, len(problem.pods) // _PODS_PER_TRY)]:
        if expired() or steps >= problem.options.search_steps or not plan.claims:
            break
        steps += max(1, len(problem.pods) // 100)
        run = Run(problem)
        guide = _Guide(first, run, smallest, slack)
        if not guide.follow():
            continue
        candidate = run.plan()
        fewer = lost(candidate) > lost(best) or len(candidate.unplaced) > len(best.unplaced)
        if not fewer and cost_of(candidate, first) < cost_of(best, first) - 1e-9:
            best = candidate
        if smallest == 1 and cost_of(best, first) <= guide.mix_price / (1 + slack) * _CLOSE_ENOUGH:
            break
    return attrs.evolve(best, stats=attrs.evolve(best.stats, search_steps=steps))


def cost_of(plan: Plan, run: Run) -> float:
    """Return USD per hour of the plan's new nodes, what each node costs beside its instance included."""
    beside = {template.name: template.node_cost for template in run.pools.templates}
    return sum(claim.price + beside[claim.pool] for claim in plan.claims)


class _Guide:
    """Fills one run by one mix of machines."""

    def __init__(self, first: Run, run: Run, smallest: int, slack: float) -> None:
        self._first = first
        self._run = run
        self._smallest = smallest
        self._slack = slack
        self.mix_price = 0.0
        """USD per hour of the machines that were dealt out."""

    def follow(self) -> bool:
        """Place everything; False when no pool has a mix to follow."""
        run = self._run
        for pod, _ in self._first.on_nodes.placements:
            cls = run.class_of[pod.uid]
            for variant in run.classing.variants(cls.rules, soft_taints=run.pools.has_soft_taints):
                if run.on_nodes.place(pod, cls, variant):
                    break
        followed = False
        for template in run.pools.templates:
            followed |= self._fill(template)
        placed = {pod.uid for pod, _ in run.on_nodes.placements}
        placed.update(pod.uid for claim in run.on_claims.open.claims for pod in claim.pods)
        if followed:
            run.placed = len(placed)
            run.drain(lambda: False, skip=placed)
        return followed

    def _fill(self, template: Template) -> bool:
        every = list(self._groups(template))
        bonds = {
            rule.counter
            for group in every
            for rule in (*group.variant.domain_rules, *group.variant.host_rules)
            if not isinstance(rule, SpreadRule)
        }
        groups = [g for g in every if _can_be_dealt(g) and bonds.isdisjoint(g.cls.rules.counters)]
        if not groups or template.has_reservations or template.requirements.min_values:
            return False
        zones = _zones(template) if any(group.by_zone for group in groups) else [None]
        columns = self._columns(template, groups, zones)
        if not columns:
            return False
        counts = cheapest_mix(columns, _demands(groups, zones), self._slack)
        if counts is None:
            return False
        self.mix_price += sum(c.price * count for c, count in zip(columns, counts, strict=True))
        bins = [_Bin(column=c) for c, count in zip(columns, counts, strict=True) for _ in range(count)]
        if bins:
            self._deal(template, groups, zones, bins)
        return bool(bins)

    def _groups(self, template: Template) -> Iterator[_Group]:
        """Yield the first-fit run's pods of the pool by class, largest first."""
        run = self._run
        found: dict[PodClass, list[Pod]] = {}
        for claim in self._first.on_claims.open.claims:
            if claim.shape.template.name == template.name:
                for pod in claim.pods:
                    found.setdefault(run.class_of[pod.uid], []).append(pod)
        largest = np.maximum(template.room.max(axis=0), 1)
        sized = sorted(
            found.items(),
            key=lambda item: (-float((np.array(item[0].request) / largest).max()), item[1][0].uid),
        )
        for cls, pods in sized:
            variant = run.classing.variants(cls.rules, soft_taints=run.pools.has_soft_taints)[0]
            rules = variant.domain_rules
            by_zone = all(
                isinstance(r, SpreadRule) and r.counter.key.topology_key == labels.ZONE for r in rules
            )
            yield _Group(cls=cls, variant=variant, pods=pods, by_zone=bool(rules) and by_zone)

    def _columns(
        self, template: Template, groups: Sequence[_Group], zones: Sequence[str | None]
    ) -> list[Column]:
        """Return the machines worth buying, and note in each group which kinds of them suit it."""
        shapes = self._run.shapes
        start = shapes.intern(template, template.requirements, template.allowed())
        states = [None if start is None else group.variant.rules[0].move(start, shapes) for group in groups]
        largest = np.array([group.cls.request for group in groups]).max(axis=0)
        roomy = (template.room >= self._smallest * largest).all(axis=1)
        kinds: dict[tuple[str | None, bytes], int] = {}
        columns: list[Column] = []
        for zone in zones:
            placed = [s if s is None or zone is None else shapes.narrow(s, _in_zone(zone)) for s in states]
            base = start if start is None or zone is None else shapes.narrow(start, _in_zone(zone))
            if base is None:
                continue
            masks = np.array([np.zeros_like(base.mask) if s is None else s.mask for s in placed])
            worth = base.mask & np.isfinite(base.price) & roomy & masks.any(axis=0)
            for row in np.flatnonzero(worth).tolist():
                columns.append(
                    Column(
                        row=row,
                        zone=zone,
                        price=float(base.price[row]) + template.node_cost,
                        room=tuple(template.room[row].tolist()),
                        kind=kinds.setdefault((zone, masks[:, row].tobytes()), len(kinds)),
                    )
                )
        for place, group in enumerate(groups):
            suiting = [(zone, kind) for (zone, packed), kind in kinds.items() if packed[place]]
            group.kinds = {zone: frozenset(k for z, k in suiting if z == zone) for zone in zones}
            group.kinds[None] = frozenset(kind for _, kind in suiting)
        return undominated(columns)

    def _deal(
        self, template: Template, groups: Sequence[_Group], zones: Sequence[str | None], bins: list[_Bin]
    ) -> None:
        """Give each pod to the machine it fills least, so that all fill evenly in every resource."""
        room = np.maximum(np.array([b.column.room for b in bins], dtype=np.float64), 1.0)
        used = np.zeros_like(room)
        kinds = np.array([b.column.kind for b in bins])
        orders: list[list[int]] = []
        for group in groups:
            request = np.array(group.cls.request, dtype=np.float64) / room
            suitable = [
                np.flatnonzero(np.isin(kinds, list(group.kinds[zone])))
                for zone in (zones if group.by_zone else [None])
            ]
            chosen: list[int] = []
            for number in range(len(group.pods)):
                here = suitable[number % len(suitable)]
                load = (used[here] + request[here]).max(axis=1)
                best = int(load.argmin()) if load.size else -1
                if best < 0 or load[best] > 1.0:
                    chosen.append(-1)
                    continue
                row = int(here[best])
                used[row] += request[row]
                bins[row].pinned |= group.by_zone
                chosen.append(row)
            orders.append(chosen)
        for group, chosen in zip(groups, orders, strict=True):
            self._realize(template, group, chosen, bins)

    def _realize(self, template: Template, group: _Group, chosen: list[int], bins: list[_Bin]) -> None:
        """Let the engine put each pod where it was dealt; it refuses what breaks a rule."""
        packing = self._run.on_claims
        for pod, number in zip(group.pods, chosen, strict=True):
            if number < 0:
                continue
            target = bins[number]
            if target.claim is not None:
                packing.add_guided(target.claim, (pod,), group.cls, group.variant)
                continue
            start = self._start(template, target)
            if start is not None:
                target.claim = packing.open_guided(pod, group.cls, group.variant, start)

    def _start(self, template: Template, target: _Bin) -> ClaimShape | None:
        """The state a machine's claim opens in: only types no dearer than the machine, room permitting."""
        shapes = self._run.shapes
        start = shapes.intern(template, template.requirements, template.allowed())
        if start is None or not target.pinned or target.column.zone is None:
            return start
        return shapes.narrow(start, _in_zone(target.column.zone))


def _can_be_dealt(group: _Group) -> bool:
    """Only plain pods and those spread over zones, as long as no rule of other pods looks at them.

    Others follow by first fit, where each sees what the ones before it did.
    """
    variant = group.variant
    own = {rule.counter for rule in variant.domain_rules}
    plain = not variant.domain_rules or group.by_zone
    unwatched = own.issuperset(group.cls.rules.counters)
    return plain and unwatched and not variant.host_rules and not variant.ports and len(variant.rules) == 1


def _demands(groups: Sequence[_Group], zones: Sequence[str | None]) -> list[Demand]:
    """Sum up what groups that the same machines suit ask for; spread ones in equal parts per zone."""
    totals: dict[frozenset[int], NDArray[np.int64]] = {}
    for group in groups:
        parts = zones if group.by_zone else [None]
        for number, zone in enumerate(parts):
            count = len(range(number, len(group.pods), len(parts)))
            amount = np.array(group.cls.request, dtype=np.int64) * count
            known = totals.get(group.kinds[zone])
            totals[group.kinds[zone]] = amount if known is None else known + amount
    return [
        Demand(total=tuple(total.tolist()), kinds=kinds)
        for kinds, total in sorted(totals.items(), key=lambda item: sorted(item[0]))
        if total.any()
    ]


def _zones(template: Template) -> list[str | None]:
    allowed: Requirement | None = template.requirements.get(labels.ZONE)
    values = sorted(template.table.values(labels.ZONE))
    return [value for value in values if allowed is None or allowed.has(value)]


def _in_zone(zone: str) -> Requirement:
    return Requirement.new(labels.ZONE, Operator.IN, (zone,))

"""Whether a set of nodes can go, alone or for one cheaper node (spec core/disruption §10, §11).

Called by multi-node and single-node consolidation, by validation and by `explain`. Pure: a set of
candidates in, a command or the reason against it out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import attrs

from controller.disruption.command import Candidate, Command, ConsolidationType
from controller.disruption.prices import LaunchPrices, PriceBook, min_needed, min_values_met
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.simulation import Expired, Simulation, Simulator, never
from controller.disruption.world import World
from controller.scheduling import CapacityType, PlannedClaim, Reason, Requirement
from framework.api import ClaimCondition, ConsolidationPolicy, DisruptionReason, conditions, labels
from framework.api.requirement_spec import Operator

__all__ = ["Consolidator", "consolidatable"]

_SPOT_LIST: Final = 15
"""A spot node is replaced by one of the cheapest 15, so that it is among them and does not move again."""


def consolidatable(candidate: Candidate) -> Reason | None:
    """Return what keeps a candidate out of consolidation whatever a simulation says, or None (§10.1)."""
    pool = candidate.pool
    disruption = pool.spec.disruption
    at = f"Node/{candidate.name}"
    if pool.spec.replicas is not None:
        return blocked(BlockCode.STATIC, f"NodePool {pool.name} is static", obj=at)
    if candidate.instance_type is None:
        text = f"instance type {candidate.type_name or '(no label)'} is not found among those on offer"
        return blocked(BlockCode.TYPE_UNKNOWN, text, obj=at)
    for key in (labels.CAPACITY_TYPE, labels.ZONE):
        if not candidate.node.labels.get(key):
            return blocked(BlockCode.LABEL_MISSING, f"the node has no label {key}", obj=at)
    if disruption.consolidate_after is None:
        text = f"NodePool {pool.name} has consolidation disabled (consolidateAfter: Never)"
        return blocked(BlockCode.CONSOLIDATION_OFF, text, obj=at)
    if disruption.consolidation_policy is ConsolidationPolicy.WHEN_EMPTY:
        text = f"NodePool {pool.name} has non-empty consolidation disabled (consolidationPolicy: WhenEmpty)"
        return blocked(BlockCode.ONLY_WHEN_EMPTY, text, obj=at)
    return settled(candidate)


def settled(candidate: Candidate) -> Reason | None:
    """Return that the node has not been quiet for consolidateAfter yet, or None."""
    if conditions.is_true(candidate.claim.status.conditions, ClaimCondition.CONSOLIDATABLE):
        return None
    after = candidate.pool.spec.disruption.consolidate_after
    text = f"pods came or went on the node within the last {after} (consolidateAfter)"
    return blocked(BlockCode.SETTLING, text, obj=f"Node/{candidate.name}")


class Consolidator:
    """Judges sets of candidates on one picture."""

    def __init__(self, world: World, simulator: Simulator) -> None:
        """Keep the picture and its simulator."""
        self._world = world
        self._simulator = simulator
        self._book = PriceBook(world.types_by_name)

    @property
    def book(self) -> PriceBook:
        """Return the launch prices of the picture."""
        return self._book

    def evaluate(
        self, candidates: Sequence[Candidate], kind: ConsolidationType, *, expired: Expired = never
    ) -> Command | Reason:
        """Return the command that removes or replaces the candidates, or why there is none (§10.3)."""
        simulation = self._simulator.without(candidates, expired=expired)
        failure = simulation.reason()
        if failure is not None:
            return failure
        if not simulation.claims:
            return self._command(candidates, kind, simulation, ())
        if len(simulation.claims) > 1:
            text = f"cannot be removed without creating {len(simulation.claims)} nodes"
            return blocked(BlockCode.TOO_MANY_REPLACEMENTS, text)
        planned = self._cheaper(candidates, simulation.claims[0])
        if isinstance(planned, Reason):
            return planned
        return self._command(candidates, kind, simulation, (planned,))

    def price_of(self, planned: PlannedClaim) -> float:
        """Return USD per hour of the cheapest launch of the planned claim, its per-node cost included."""
        return planned.price + self._world.policy(planned.pool).node_cost

    def replaced(self, command: Command, planned: PlannedClaim) -> Command:
        """Return the command with another replacement and its savings anew."""
        savings = total_known_price(command.candidates) - self.price_of(planned)
        return attrs.evolve(command, replacements=(planned,), savings=savings)

    def narrowed(self, planned: PlannedClaim, names: Sequence[str]) -> PlannedClaim | None:
        """Return the claim with only these types, or None when too few are left for its `minValues`."""
        types = self._world.types_by_name.get(planned.pool, {})
        kept = [types[name] for name in names if name in types]
        if not kept or not min_values_met(kept, planned.requirements):
            return None
        return self._with_types(planned, [each.name for each in kept])

    def _with_types(self, planned: PlannedClaim, names: Sequence[str]) -> PlannedClaim:
        """Return the claim with just these types, put cheapest first, in its requirements as well."""
        only = Requirement.new(labels.INSTANCE_TYPE, Operator.IN, names)
        requirements = planned.requirements.add(only)
        view = self._book.view(planned.pool, requirements)
        ordered = tuple(sorted(names, key=lambda name: (view.of(name).cheapest, name)))
        price = view.of(ordered[0]).cheapest
        return attrs.evolve(planned, instance_types=ordered, requirements=requirements, price=price)

    def _pinned_to_spot(self, planned: PlannedClaim) -> PlannedClaim:
        """Return the claim pinned to spot, so that a shortage fails instead of launching at a higher price.

        Where no type is on offer as spot, pinning would only make the launch fail; the claim stays as it is.
        """
        pin = Requirement.new(labels.CAPACITY_TYPE, Operator.IN, (str(CapacityType.SPOT),))
        pinned = attrs.evolve(planned, requirements=planned.requirements.add(pin))
        pinned = self._with_types(pinned, planned.instance_types)
        return pinned if pinned.price < math.inf else planned

    def _cheaper(self, candidates: Sequence[Candidate], planned: PlannedClaim) -> PlannedClaim | Reason:
        """Return the claim narrowed to what is strictly cheaper than the candidates, or why nothing is."""
        ceiling = total_price(candidates) - self._world.policy(planned.pool).node_cost
        both_spot = all(each.capacity_type == CapacityType.SPOT for each in candidates)
        if both_spot and _allows(planned, CapacityType.SPOT):
            return self._cheaper_spot(candidates, planned, ceiling)
        view = self._book.view(planned.pool, planned.requirements)
        kept = self._below(planned, view, ceiling)
        narrowed = self.narrowed(planned, kept)
        if narrowed is None:
            return self._not_cheaper(planned, view, kept, ceiling)
        if _allows(narrowed, CapacityType.SPOT) and _allows(narrowed, CapacityType.ON_DEMAND):
            return self._pinned_to_spot(narrowed)
        return narrowed

    def _cheaper_spot(
        self, candidates: Sequence[Candidate], planned: PlannedClaim, ceiling: float
    ) -> PlannedClaim | Reason:
        policy = self._world.policy(planned.pool)
        if not self._world.gates.spot_to_spot and policy.min_cheaper_types is None:
            text = "replacing spot nodes by spot nodes is off (feature gate SpotToSpotConsolidation)"
            return blocked(BlockCode.SPOT_TO_SPOT_OFF, text)
        pinned = self._pinned_to_spot(planned)
        view = self._book.view(pinned.pool, pinned.requirements)
        kept = self._below(pinned, view, ceiling)
        narrowed = self.narrowed(pinned, kept)
        if narrowed is None:
            return self._not_cheaper(pinned, view, kept, ceiling)
        if len(candidates) > 1:
            return narrowed
        least = policy.min_cheaper_types if policy.min_cheaper_types is not None else _SPOT_LIST
        if len(kept) < least:
            text = (
                f"a spot node is replaced by spot only if at least {least} cheaper instance types fit,"
                f" and {len(kept)} do; lower spot.minCheaperTypes in a SchedulingConfig to accept fewer"
            )
            return blocked(BlockCode.TOO_FEW_SPOT_TYPES, text)
        types = self._book.types(narrowed)
        length = max(_SPOT_LIST, min_needed(types, narrowed.requirements))
        return self._with_types(narrowed, narrowed.instance_types[:length])

    def _below(self, planned: PlannedClaim, view: LaunchPrices, ceiling: float) -> list[str]:
        """Return the types whose worst launch price is under the ceiling."""
        return [name for name in planned.instance_types if view.of(name).worst < ceiling]

    def _not_cheaper(
        self, planned: PlannedClaim, view: LaunchPrices, kept: Sequence[str], ceiling: float
    ) -> Reason:
        if kept:
            text = (
                f"the {len(kept)} cheaper instance types are too few for minValues of NodePool {planned.pool}"
            )
            return blocked(BlockCode.MIN_VALUES, text)
        best = min(((view.of(name).worst, name) for name in planned.instance_types), default=None)
        cost = self._world.policy(planned.pool).node_cost
        nearest = f"{best[1]} at ${best[0] + cost:.4f} an hour" if best and best[0] < math.inf else None
        text = f"no cheaper replacement than ${ceiling + cost:.4f} an hour exists"
        return blocked(BlockCode.NOT_CHEAPER, text, nearest=nearest)

    def _command(
        self,
        candidates: Sequence[Candidate],
        kind: ConsolidationType,
        simulation: Simulation,
        replacements: tuple[PlannedClaim, ...],
    ) -> Command:
        return Command(
            reason=DisruptionReason.UNDERUTILIZED,
            consolidation_type=kind,
            candidates=tuple(candidates),
            replacements=replacements,
            placements=simulation.placements,
            savings=total_known_price(candidates) - sum(map(self.price_of, replacements)),
        )


def total_price(candidates: Sequence[Candidate]) -> float:
    """Return USD per hour of the candidates; 0 when one is unknown, so that nothing is cheaper (§10.3)."""
    if any(each.price is None for each in candidates):
        return 0.0
    return total_known_price(candidates)


def total_known_price(candidates: Sequence[Candidate]) -> float:
    """Return USD per hour of those candidates whose price is known."""
    return sum(each.price for each in candidates if each.price is not None)


def _allows(planned: PlannedClaim, kind: CapacityType) -> bool:
    requirement = planned.requirements.get(labels.CAPACITY_TYPE)
    return requirement is None or requirement.has(str(kind))

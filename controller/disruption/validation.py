"""Whether a command still holds after the wait (spec core/disruption §14).

Called by the loop with a fresh `World`, after the wait and, for consolidation, once more right before
the command starts. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import attrs

from controller.disruption.budgets import Ledger
from controller.disruption.candidates import Survey, allowances, pod_block, survey
from controller.disruption.command import Candidate, Command, ConsolidationType
from controller.disruption.method import Method, eligible
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.simulation import Simulation, Simulator
from controller.disruption.world import World
from controller.scheduling import PlannedClaim, Reason, is_reschedulable
from framework.api import DisruptionReason

__all__ = ["Rejection", "RejectionKind", "late_blocker", "unchanged", "validate"]


class RejectionKind(StrEnum):
    """What a command fell over; the text of `ConsolidationRejected`."""

    BUDGET = "budget"
    SCHEDULING = "scheduling"
    CHURN = "churn"


@attrs.frozen(kw_only=True)
class Rejection:
    """Why a command no longer holds."""

    kind: RejectionKind
    reason: Reason


def validate(command: Command, method: Method, world: World) -> Command | Rejection:
    """Return the command as it may start now, or why it may not.

    Emptiness goes on with the nodes that are still empty; consolidation stands or falls as a whole.
    """
    if command.consolidation_type is ConsolidationType.EMPTY:
        return _remaining(command, _still_candidates(command, method, world), world)
    outcome = unchanged(command, method, world)
    if isinstance(outcome, Rejection):
        return outcome
    simulation = Simulator(world, consolidating=True).without(outcome.candidates)
    failure = _contradiction(command, simulation)
    if failure is not None:
        return Rejection(kind=RejectionKind.SCHEDULING, reason=failure)
    return attrs.evolve(outcome, placements=simulation.placements)


def unchanged(command: Command, method: Method, world: World) -> Command | Rejection:
    """Return the command, its candidates as they are now, if all of them still are and budgets allow them."""
    current = _still_candidates(command, method, world)
    if isinstance(current, Rejection):
        return current
    if len(current) < len(command.candidates):
        return _churn(command, current)
    return _over_budget(command, current, world) or attrs.evolve(command, candidates=current)


def _still_candidates(command: Command, method: Method, world: World) -> tuple[Candidate, ...] | Rejection:
    """Return those of the command's candidates that still are candidates of its method, or that none is."""
    now: Survey = survey(world)
    taken, refused = eligible(method, now)
    by_name = {candidate.name: candidate for candidate in taken}
    current = tuple(by_name[name] for name in command.nodes if name in by_name)
    if current:
        return current
    blocks = [each.reason for each in now.blocked if each.node.name in command.nodes]
    facts = [*blocks, *(refused[name] for name in command.nodes if name in refused)]
    text = "none of its nodes may be disrupted any more"
    return Rejection(kind=RejectionKind.CHURN, reason=blocked(BlockCode.CHURN, text, of=facts))


def late_blocker(command: Command, world: World) -> Reason | None:
    """Return what landed on a candidate before the taint kept pods away, or None.

    Asked once, after the taint has been seen: between the picture that a command was made from and its
    taint, a pod may have been bound that must not be disrupted, or any pod to a node that was empty.
    """
    for candidate in command.candidates:
        node = world.nodes.get(candidate.name)
        if node is None:
            continue
        waived = (
            command.reason is DisruptionReason.DRIFTED
            and candidate.claim.spec.termination_grace_period is not None
        )
        reason = None if waived else pod_block(world, node)
        if reason is not None:
            return reason
        arrived = [pod for pod in node.pods if is_reschedulable(pod)]
        if command.reason is DisruptionReason.EMPTY and arrived:
            text = f"pod {arrived[0].key} was bound to empty node {node.name} meanwhile"
            return blocked(BlockCode.NOT_EMPTY, text, obj=f"Node/{node.name}")
    return None


def _remaining(
    command: Command, current: tuple[Candidate, ...] | Rejection, world: World
) -> Command | Rejection:
    """Return the command with the nodes that are still empty and within budget (emptiness)."""
    if isinstance(current, Rejection):
        return current
    ledger = Ledger(allowances(world, command.reason))
    kept = tuple(each for each in current if ledger.take(each.pool.name))
    if not kept:
        return _budget(command)
    savings = sum(each.price for each in kept if each.price is not None)
    return attrs.evolve(command, candidates=kept, savings=savings)


def _over_budget(command: Command, current: Sequence[Candidate], world: World) -> Rejection | None:
    ledger = Ledger(allowances(world, command.reason))
    within = all(ledger.take(each.pool.name) for each in current)
    return None if within else _budget(command)


def _budget(command: Command) -> Rejection:
    pools = ", ".join(sorted({each.pool.name for each in command.candidates}))
    text = f"the disruption budget of {pools} no longer allows {len(command.candidates)} nodes"
    return Rejection(kind=RejectionKind.BUDGET, reason=blocked(BlockCode.BUDGET, text))


def _churn(command: Command, current: Sequence[Candidate]) -> Rejection:
    names = {each.name for each in current}
    gone = ", ".join(name for name in command.nodes if name not in names)
    return Rejection(
        kind=RejectionKind.CHURN, reason=blocked(BlockCode.CHURN, f"no longer candidates: {gone}")
    )


def _contradiction(command: Command, simulation: Simulation) -> Reason | None:
    """Return what speaks against the command in a new simulation, or None."""
    failure = simulation.reason()
    if failure is not None:
        return failure
    wanted, now = len(command.replacements), len(simulation.claims)
    if wanted == 0 and now == 0:
        return None
    if now > 1 or wanted == 0 or now == 0:
        text = f"it would now take {now} new nodes instead of {wanted}"
        return blocked(BlockCode.SIMULATION, text)
    return _not_subset(command.replacements[0], simulation.claims[0])


def _not_subset(ours: PlannedClaim, theirs: PlannedClaim) -> Reason | None:
    missing = sorted(set(ours.instance_types) - set(theirs.instance_types))
    if ours.pool == theirs.pool and not missing:
        return None
    text = f"the pods no longer fit every instance type of the replacement, such as {(missing or ['-'])[0]}"
    return blocked(BlockCode.SIMULATION, text)

"""Removes nodes that no pod needs (spec core/disruption §7).

The first method of the loop. Pure; validation follows after the wait.
"""

from __future__ import annotations

from typing import Final

from controller.disruption.command import Candidate, Command, ConsolidationType, by_cost
from controller.disruption.consolidation import settled, total_known_price
from controller.disruption.method import Proposal, Turn, eligible, held_by_budget
from controller.disruption.reasons import BlockCode, blocked
from controller.scheduling import Reason
from framework.api import DisruptionReason

__all__ = ["Emptiness"]


class Emptiness:
    """Deletes every empty node that the budgets let go, in one command."""

    reason: Final = DisruptionReason.EMPTY
    consolidation_type: Final = ConsolidationType.EMPTY
    eventual: Final = False
    validated: Final = True

    def refuses(self, candidate: Candidate) -> Reason | None:
        """Return why the candidate is not to be removed as empty, or None."""
        pool, at = candidate.pool, f"Node/{candidate.name}"
        if pool.spec.replicas is not None:
            return blocked(BlockCode.STATIC, f"NodePool {pool.name} is static", obj=at)
        if pool.spec.disruption.consolidate_after is None:
            text = f"NodePool {pool.name} has consolidation disabled (consolidateAfter: Never)"
            return blocked(BlockCode.CONSOLIDATION_OFF, text, obj=at)
        if candidate.headroom:
            text = f"it is kept as headroom for {candidate.headroom} virtual pods"
            return blocked(BlockCode.HEADROOM, text, obj=at)
        if not candidate.empty:
            text = f"{len(candidate.pods)} pods run on it, such as {candidate.pods[0].key}"
            return blocked(BlockCode.NOT_EMPTY, text, obj=at)
        return settled(candidate)

    def propose(self, turn: Turn) -> Proposal:
        """Return one command with all empty nodes that the budgets allow."""
        candidates, refusals = eligible(self, turn.survey)
        allowances, ledger = turn.allowances(self.reason), turn.ledger(self.reason)
        taken = []
        held = False
        for candidate in by_cost(candidates):
            if ledger.take(candidate.pool.name):
                taken.append(candidate)
                continue
            held = True
            refusals[candidate.name] = held_by_budget(candidate, allowances[candidate.pool.name])
        if not taken:
            return Proposal(refusals=refusals, held_by_budget=held)
        command = Command(
            reason=self.reason,
            consolidation_type=self.consolidation_type,
            candidates=tuple(taken),
            savings=total_known_price(taken),
        )
        return Proposal(commands=(command,), refusals=refusals, held_by_budget=held)

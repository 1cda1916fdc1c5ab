"""Removes many nodes at once, or merges them into one cheaper node (spec core/disruption §12).

Called by the loop before single-node consolidation. Pure; the time for the search comes in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from controller.disruption.command import Candidate, Command, ConsolidationType, by_cost
from controller.disruption.consolidation import consolidatable
from controller.disruption.method import Proposal, Turn, eligible, held_by_budget
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.simulation import Expired
from controller.disruption.worth import resting
from controller.scheduling import PlannedClaim, Reason
from framework.api import DisruptionReason

__all__ = ["MULTI_NODE_SECONDS", "MultiNode", "without_same_type"]

MULTI_NODE_SECONDS: Final = 60.0
"""How long one pass may search."""
_LARGEST_STEP: Final = 100
"""Largest index of the search, so a command has at most 101 nodes."""


class MultiNode:
    """Finds, by binary search, the longest row of nodes, cheapest to disrupt first, that can go together."""

    reason: Final = DisruptionReason.UNDERUTILIZED
    consolidation_type: Final = ConsolidationType.MULTI
    eventual: Final = False
    validated: Final = True

    def refuses(self, candidate: Candidate) -> Reason | None:
        """Return why the candidate is not to be consolidated, or None."""
        return consolidatable(candidate)

    def propose(self, turn: Turn) -> Proposal:
        """Return the largest command found."""
        candidates, refusals = eligible(self, turn.survey)
        allowances, ledger = turn.allowances(self.reason), turn.ledger(self.reason)
        row: list[Candidate] = []
        held = False
        for candidate in by_cost(candidates):
            if ledger.left(candidate.pool.name) <= 0:
                held = True
                refusals[candidate.name] = held_by_budget(candidate, allowances[candidate.pool.name])
            elif (rest := resting(candidate, turn.world)) is not None:
                refusals[candidate.name] = rest
            elif candidate.empty:
                text = "no pod needs the node; emptiness removes it when its budget allows"
                refusals[candidate.name] = blocked(BlockCode.EMPTY, text, obj=f"Node/{candidate.name}")
            else:
                ledger.take(candidate.pool.name)
                row.append(candidate)
        command, timed_out = self._search(turn, row)
        found = (command,) if command is not None else ()
        return Proposal(commands=found, refusals=refusals, held_by_budget=held, timed_out=timed_out)

    def _search(self, turn: Turn, row: Sequence[Candidate]) -> tuple[Command | None, bool]:
        """Return the command for the longest row found in time, and whether time ran out."""
        expired = turn.deadline(MULTI_NODE_SECONDS)
        low, high = 1, min(len(row) - 1, _LARGEST_STEP)
        best: Command | None = None
        while low <= high:
            if expired():
                return best, True
            middle = (low + high) // 2
            command = self._judge(turn, row[: middle + 1], expired)
            if command is None:
                high = middle - 1
            else:
                best, low = command, middle + 1
        return best, False

    def _judge(self, turn: Turn, row: Sequence[Candidate], expired: Expired) -> Command | None:
        outcome = turn.consolidator.evaluate(row, self.consolidation_type, expired=expired)
        if isinstance(outcome, Reason):
            return None
        if outcome.replacements:
            planned = without_same_type(turn, outcome.replacements[0], row)
            if planned is None:
                return None
            outcome = turn.consolidator.replaced(outcome, planned)
        return outcome if turn.worth.objection(outcome) is None else None


def without_same_type(turn: Turn, planned: PlannedClaim, row: Sequence[Candidate]) -> PlannedClaim | None:
    """Return the claim without types that would only swap nodes for one of their own kind, or None.

    If a possible type is that of a candidate, only types cheaper than the cheapest such candidate stay:
    removing n nodes of a type to get one of the same type is what removing n - 1 of them would have been.
    """
    prices = [
        candidate.price
        for candidate in row
        if candidate.price is not None and candidate.type_name in planned.instance_types
    ]
    ceiling = min(prices, default=math.inf) - turn.world.policy(planned.pool).node_cost
    view = turn.consolidator.book.view(planned.pool, planned.requirements)
    kept = [name for name in planned.instance_types if view.of(name).worst < ceiling]
    return turn.consolidator.narrowed(planned, kept)

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
from controller.scheduling import Objective, PlannedClaim, Reason
from framework.api import DisruptionReason

__all__ = ["MULTI_NODE_SECONDS", "MultiNode", "without_same_type"]

MULTI_NODE_SECONDS: Final = 60.0
"""How long one pass may search."""
_LARGEST_STEP: Final = 100
"""Largest index of the search, so a command has at most 101 nodes."""
_MOST_ROWS: Final = 24
"""Rows judged in all before single nodes are tried."""
_MOST_PROBES: Final = 64
"""Sets judged in all under the Cost objective: seconds at most on a large cluster."""


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
        """Return the best command found in time, and whether time ran out."""
        expired = turn.deadline(MULTI_NODE_SECONDS)
        probes = _Probes(turn, expired)
        best = self._halve(probes, row)
        if turn.world.options.objective is Objective.COST and not expired():
            best = self._widen(probes, row, best)
        return best, expired()

    def _halve(self, probes: _Probes, row: Sequence[Candidate]) -> Command | None:
        """Return the command for the longest row that binary search finds: the peer's answer."""
        low, high = 1, min(len(row) - 1, _LARGEST_STEP)
        best: Command | None = None
        while low <= high and not probes.expired():
            middle = (low + high) // 2
            command = probes.judge(row[: middle + 1])
            if command is None:
                high = middle - 1
            else:
                best, low = command, middle + 1
        return best

    def _widen(self, probes: _Probes, row: Sequence[Candidate], best: Command | None) -> Command | None:
        """Return a command that saves more than the best so far, if a few more probes find one.

        Tries rows that binary search stepped over, longest first, then puts single nodes to the best set,
        so that one node that cannot go does not keep all after it. Never worse than what it starts from.
        """
        longest = min(len(row), _LARGEST_STEP + 1)
        for length in range(longest, 1, -1):
            if probes.count >= _MOST_ROWS or probes.expired():
                break
            best = _better(best, probes.judge(row[:length]))
        chosen = list(best.candidates) if best is not None else []
        for candidate in row[:longest]:
            if probes.count >= _MOST_PROBES or probes.expired():
                break
            if candidate not in chosen:
                command = probes.judge([*chosen, candidate], alone=True)
                if command is not None and _better(best, command) is command:
                    best, chosen = command, list(command.candidates)
        return best if best is not None and len(best.candidates) > 1 else None


class _Probes:
    """Judges sets of nodes, each once; the method's scratch state."""

    def __init__(self, turn: Turn, expired: Expired) -> None:
        """Start with nothing judged."""
        self._turn = turn
        self.expired = expired
        self.count = 0
        self._known: dict[tuple[str, ...], Command | None] = {}

    def judge(self, row: Sequence[Candidate], *, alone: bool = False) -> Command | None:
        """Return the command for exactly these nodes, or None; a single node only if `alone`."""
        if len(row) < 2 and not alone:
            return None
        key = tuple(sorted(each.name for each in row))
        if key not in self._known:
            self.count += 1
            self._known[key] = _judge(self._turn, row, self.expired)
        return self._known[key]


def _better(best: Command | None, other: Command | None) -> Command | None:
    """Return which saves more; the first when they save the same."""
    if best is None or other is None:
        return best or other
    return other if (other.savings or 0.0) > (best.savings or 0.0) else best


def _judge(turn: Turn, row: Sequence[Candidate], expired: Expired) -> Command | None:
    """Return the command for exactly these nodes if it is valid and worth it (§12.4)."""
    outcome = turn.consolidator.evaluate(row, ConsolidationType.MULTI, expired=expired)
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

"""Removes or replaces nodes one at a time (spec core/disruption §13).

The last method of the loop. Pure. Better than the peer in two ways that change no answer: nodes that
look alike are judged once, and a pass that ran out of time is taken up where it stopped.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from controller.disruption.command import Candidate, Command, ConsolidationType, by_cost
from controller.disruption.consolidation import consolidatable
from controller.disruption.likeness import Likeness
from controller.disruption.method import Proposal, Turn, eligible, held_by_budget
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.worth import resting
from controller.scheduling import Reason
from framework.api import DisruptionReason

__all__ = ["SINGLE_NODE_SECONDS", "SingleNode", "judge"]

SINGLE_NODE_SECONDS: Final = 180.0
"""How long one pass may search."""


class SingleNode:
    """Finds the first node that can go or be had cheaper: least costly first, one of each pool in turn."""

    reason: Final = DisruptionReason.UNDERUTILIZED
    consolidation_type: Final = ConsolidationType.SINGLE
    eventual: Final = False
    validated: Final = True

    def refuses(self, candidate: Candidate) -> Reason | None:
        """Return why the candidate is not to be consolidated, or None."""
        return consolidatable(candidate)

    def propose(self, turn: Turn) -> Proposal:
        """Return the first command found."""
        candidates, refusals = eligible(self, turn.survey)
        allowances = turn.allowances(self.reason)
        expired = turn.deadline(SINGLE_NODE_SECONDS)
        held = False
        likeness, known = Likeness(turn.world), dict[Hashable, Reason]()
        order = list(in_turns(candidates, turn.unreached))
        for index, candidate in enumerate(order):
            if expired():
                left = frozenset(each.name for each in order[index:])
                return Proposal(refusals=refusals, held_by_budget=held, timed_out=True, unreached=left)
            allowance = allowances[candidate.pool.name]
            if allowance.remaining <= 0:
                held = True
                refusals[candidate.name] = held_by_budget(candidate, allowance)
                continue
            kind = likeness.of(candidate)
            outcome = known[kind] if kind in known else judge(turn, candidate)
            if isinstance(outcome, Command):
                return Proposal(commands=(outcome,), refusals=refusals, held_by_budget=held)
            refusals[candidate.name] = known[kind] = outcome
        return Proposal(refusals=refusals, held_by_budget=held)


def judge(turn: Turn, candidate: Candidate) -> Command | Reason:
    """Return the command that removes or replaces the one node, or why there is none."""
    if candidate.empty:
        text = "no pod needs the node; emptiness removes it when its budget allows"
        return blocked(BlockCode.EMPTY, text, obj=f"Node/{candidate.name}")
    rest = resting(candidate, turn.world)
    if rest is not None:
        return rest
    outcome = turn.consolidator.evaluate((candidate,), ConsolidationType.SINGLE)
    if isinstance(outcome, Command):
        return turn.worth.objection(outcome) or outcome
    return outcome


def in_turns(candidates: Sequence[Candidate], first: frozenset[str]) -> Iterator[Candidate]:
    """Yield the candidates by cost, one of each pool in turn; those named in `first` before all others."""
    for wanted in (True, False):
        by_pool: dict[str, list[Candidate]] = {}
        for candidate in by_cost([each for each in candidates if (each.name in first) is wanted]):
            by_pool.setdefault(candidate.pool.name, []).append(candidate)
        for row in zip_longest(*by_pool.values()):
            yield from (candidate for candidate in row if candidate is not None)

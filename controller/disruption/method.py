"""What every way of disrupting nodes has in common (spec core/disruption §2).

The loop gives a `Turn` to one method after the other; each answers with a `Proposal`. Methods are
pure: what they need to remember from one pass to the next goes in and out with these values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import attrs

from controller.disruption.budgets import Allowance, Ledger
from controller.disruption.candidates import Survey, allowances
from controller.disruption.command import Candidate, Command, ConsolidationType
from controller.disruption.consolidation import Consolidator
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.simulation import Expired, Simulator
from controller.disruption.world import World
from controller.disruption.worth import Worth
from controller.scheduling import Reason
from framework.api import DisruptionReason

__all__ = ["Method", "Proposal", "Turn", "eligible", "held_by_budget"]


@attrs.frozen(kw_only=True)
class Turn:
    """One method's turn in one pass of the loop."""

    world: World
    survey: Survey
    deadline: Callable[[float], Expired]
    """Gives, for a number of seconds from now, the question whether they are over."""
    unreached: frozenset[str] = frozenset()
    """Nodes that the method's last pass had no time for."""

    @cached_property
    def simulator(self) -> Simulator:
        """Return the simulator of the picture for drift, made at first use."""
        return Simulator(self.world)

    @cached_property
    def consolidator(self) -> Consolidator:
        """Return the consolidator of the picture, made at first use."""
        return Consolidator(self.world, Simulator(self.world, consolidating=True))

    @cached_property
    def worth(self) -> Worth:
        """Return the judge of what is worth the trouble, made at first use."""
        return Worth(self.world)

    def allowances(self, reason: DisruptionReason) -> Mapping[str, Allowance]:
        """Return what the budgets allow, by pool."""
        return allowances(self.world, reason)

    def ledger(self, reason: DisruptionReason) -> Ledger:
        """Return a fresh count of what the budgets leave."""
        return Ledger(self.allowances(reason))


@attrs.frozen(kw_only=True)
class Proposal:
    """What a method wants done, and why it left the other nodes alone."""

    commands: tuple[Command, ...] = ()
    refusals: Mapping[str, Reason] = attrs.field(factory=dict)
    """By node name, for the candidates that were looked at."""
    held_by_budget: bool = False
    timed_out: bool = False
    unreached: frozenset[str] = frozenset()
    """Nodes that there was no time for."""

    @property
    def settled(self) -> bool:
        """Whether another pass over the same cluster would find nothing either."""
        return not (self.commands or self.held_by_budget or self.timed_out)


class Method(Protocol):
    """One way of disrupting nodes."""

    @property
    def reason(self) -> DisruptionReason:
        """Return the reason its budgets go by."""
        ...

    @property
    def consolidation_type(self) -> ConsolidationType:
        """Return the label of its metrics."""
        ...

    @property
    def eventual(self) -> bool:
        """Return whether a grace period waives what pods forbid."""
        ...

    @property
    def validated(self) -> bool:
        """Return whether commands are validated after a wait, and unchanged clusters not looked at again."""
        ...

    def refuses(self, candidate: Candidate) -> Reason | None:
        """Return why the method has no use for the candidate, or None."""
        ...

    def propose(self, turn: Turn) -> Proposal:
        """Return the commands to start and why other candidates were left alone."""
        ...


def eligible(method: Method, survey: Survey) -> tuple[list[Candidate], dict[str, Reason]]:
    """Return the candidates the method can use, and its refusals of the others by node name."""
    taken: list[Candidate] = []
    refused: dict[str, Reason] = {}
    for candidate in survey.eventual if method.eventual else survey.candidates:
        reason = method.refuses(candidate)
        if reason is None:
            taken.append(candidate)
        else:
            refused[candidate.name] = reason
    return taken, refused


def held_by_budget(candidate: Candidate, allowance: Allowance) -> Reason:
    """Return that the pool's budget leaves no room for the candidate."""
    text = f"the disruption budget of NodePool {candidate.pool.name} is used up"
    return blocked(
        BlockCode.BUDGET, text, obj=f"NodePool/{candidate.pool.name}", nearest=allowance.sentence()
    )


def by_name(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the candidates' node names."""
    return tuple(candidate.name for candidate in candidates)

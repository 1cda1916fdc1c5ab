"""Why a node is there and what would have to change for it to go (issue 8: reasons).

Called by `charpente explain node` and the case runner. Pure: judges the one node on a picture with the
methods themselves, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from controller.disruption.candidates import survey
from controller.disruption.command import Candidate, Command, ConsolidationType
from controller.disruption.dryrun import unlimited
from controller.disruption.method import Method, Turn, held_by_budget
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.rollout import held_by_rollout
from controller.disruption.single_node import judge
from controller.disruption.world import World
from controller.scheduling import Reason
from framework.api import DisruptionReason

__all__ = ["NodeReport", "explain_node"]

_NEEDS_REPLACEMENT: Final = frozenset(
    {
        BlockCode.NOT_CHEAPER,
        BlockCode.TOO_MANY_REPLACEMENTS,
        BlockCode.TOO_FEW_SPOT_TYPES,
        BlockCode.SPOT_TO_SPOT_OFF,
        BlockCode.MIN_VALUES,
    }
)
"""Refusals of pods that fit no other node."""


@attrs.frozen(kw_only=True)
class NodeReport:
    """What disruption thinks of one node."""

    node: str
    pool: str | None
    price: float | None
    """USD per hour now."""
    alternative: float | None
    """USD per hour of the best that could take its place: 0 when its pods fit elsewhere, None unknown."""
    reason: Reason
    """Why it stays, method by method; or that it may go."""

    def to_json(self) -> Mapping[str, Any]:
        """Return the report as plain values."""
        return {
            "node": self.node,
            "nodePool": self.pool,
            "price": self.price,
            "alternative": self.alternative,
            "reason": self.reason.to_json(),
        }

    def render(self) -> str:
        """Return the report as text: one line of facts, then the tree."""
        price = f"${self.price:.4f} an hour" if self.price is not None else "price unknown"
        best = f", best alternative ${self.alternative:.4f}" if self.alternative is not None else ""
        return f"{self.node} ({self.pool or 'no pool'}): {price}{best}\n{self.reason.render()}"


def explain_node(world: World, name: str, methods: Iterable[Method]) -> NodeReport:
    """Return why the node stays, or how it may go. Raises KeyError for a node that is not there.

    Multi-node consolidation is about sets of nodes and has no verdict on a single one.
    """
    node = world.nodes[name]
    found = survey(world)
    block = next((each.reason for each in found.blocked if each.node.name == name), None)
    candidate = found.by_name.get(name)
    if candidate is None:
        reason = block or blocked(BlockCode.UNMANAGED, "the node is not known", obj=f"Node/{name}")
        return NodeReport(node=name, pool=node.pool, price=None, alternative=None, reason=reason)
    turn = Turn(world=world, survey=found, deadline=unlimited)
    verdicts = [
        _verdict(turn, method, candidate, block)
        for method in methods
        if method.consolidation_type is not ConsolidationType.MULTI
    ]
    command = next((each for each, _ in verdicts if each is not None), None)
    facts = tuple(reason for _, reason in verdicts)
    if command is None:
        reason = blocked(BlockCode.STAYS, "no method may disrupt the node now", obj=f"Node/{name}", of=facts)
    else:
        reason = blocked(BlockCode.DISRUPTABLE, command.text(), obj=f"Node/{name}", of=facts)
    return NodeReport(
        node=name,
        pool=node.pool,
        price=candidate.price,
        alternative=_alternative(command, candidate),
        reason=reason,
    )


def _verdict(
    turn: Turn, method: Method, candidate: Candidate, block: Reason | None
) -> tuple[Command | None, Reason]:
    """Return what the method would do with the node, and its reason under the method's name."""
    outcome = _outcome(turn, method, candidate, block)
    if isinstance(outcome, Command):
        return outcome, _titled(method, blocked(BlockCode.DISRUPTABLE, outcome.text()))
    return None, _titled(method, outcome)


def _outcome(turn: Turn, method: Method, candidate: Candidate, block: Reason | None) -> Command | Reason:
    reason = (None if method.eventual and candidate in turn.survey.eventual else block) or method.refuses(
        candidate
    )
    if reason is not None:
        return reason
    allowance = turn.allowances(method.reason)[candidate.pool.name]
    if allowance.remaining <= 0:
        return held_by_budget(candidate, allowance)
    if method.reason is DisruptionReason.UNDERUTILIZED:
        return _with_homeless(turn, candidate, judge(turn, candidate))
    if method.reason is DisruptionReason.DRIFTED:
        hold = held_by_rollout(candidate, turn.world) or turn.simulator.without((candidate,)).reason()
        if hold is not None:
            return hold
    return Command(
        reason=method.reason, consolidation_type=method.consolidation_type, candidates=(candidate,)
    )


def _with_homeless(turn: Turn, candidate: Candidate, outcome: Command | Reason) -> Command | Reason:
    """Add, to a refusal about the price of a replacement, why one is needed at all."""
    if isinstance(outcome, Command) or outcome.code not in _NEEDS_REPLACEMENT:
        return outcome
    facts = turn.simulator.homeless((candidate,))
    return attrs.evolve(outcome, children=(*outcome.children, *facts))


def _titled(method: Method, reason: Reason) -> Reason:
    return attrs.evolve(reason, obj=type(method).__name__)


def _alternative(command: Command | None, candidate: Candidate) -> float | None:
    if command is None or candidate.price is None or command.savings is None:
        return None
    return max(candidate.price - command.savings, 0.0)

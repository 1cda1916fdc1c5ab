"""One pass of the methods on a picture, without acting: what disruption would do now.

Called by `simulate`, the case runner and tests; the loop does the same step by step, waits included.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from controller.disruption.candidates import survey
from controller.disruption.command import Command
from controller.disruption.method import Method, Turn
from controller.disruption.simulation import Expired, never
from controller.disruption.world import World
from controller.scheduling import Reason

__all__ = ["Decided", "decide"]


@attrs.frozen(kw_only=True)
class Decided:
    """What the first method with something to do would do."""

    method: Method | None = None
    """None when no method finds anything."""
    commands: tuple[Command, ...] = ()
    refusals: Mapping[str, tuple[Reason, ...]] = attrs.field(factory=dict)
    """By node name, what each method that was asked had against it."""


def unlimited(seconds: float) -> Expired:  # noqa: ARG001 - has the shape of a deadline
    """Return that no deadline ever passes."""
    return never


def decide(
    world: World, methods: Iterable[Method], *, deadline: Callable[[float], Expired] = unlimited
) -> Decided:
    """Return the commands of the first method that has any, as the loop would find them."""
    found = survey(world)
    refusals: dict[str, list[Reason]] = {each.node.name: [each.reason] for each in found.blocked}
    for method in methods:
        proposal = method.propose(Turn(world=world, survey=found, deadline=deadline))
        for name, reason in proposal.refusals.items():
            refusals.setdefault(name, []).append(reason)
        if proposal.commands:
            return Decided(method=method, commands=proposal.commands, refusals=_frozen(refusals))
    return Decided(refusals=_frozen(refusals))


def _frozen(refusals: Mapping[str, list[Reason]]) -> Mapping[str, tuple[Reason, ...]]:
    return {name: tuple(each) for name, each in sorted(refusals.items())}

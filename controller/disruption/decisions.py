"""The last decisions and what became of them: who, why, what replaced it, estimated and real saving.

Written by the loop and the queue, read by the decisions endpoint, `explain` and tests. Bounded, in memory,
lost with the process: the objects in the cluster are what counts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import attrs

from controller.disruption.command import Command
from controller.scheduling import Reason

__all__ = ["Decision", "DecisionLog", "Outcome"]

_KEPT: Final = 1000
"""Decisions remembered: a day's worth at one a minute or so."""


class Outcome(StrEnum):
    """How far a command has come."""

    REJECTED = "Rejected"
    STARTED = "Started"
    COMPLETED = "Completed"
    ABANDONED = "Abandoned"


@attrs.frozen(kw_only=True)
class Decision:
    """One command, when it was decided and how it went."""

    id: str
    at: datetime
    command: Command
    outcome: Outcome
    reason: Reason | None = None
    """Why it was rejected or abandoned."""
    replaced_by: tuple[str, ...] = ()
    """Names of the claims that were created."""
    finished: datetime | None = None
    real_savings: float | None = None
    """USD per hour, by what was really launched; None until known."""

    def to_json(self) -> Mapping[str, Any]:
        """Return the decision as plain values."""
        return {
            "id": self.id,
            "at": self.at.isoformat(),
            **self.command.to_json(),
            "outcome": str(self.outcome),
            "why": self.reason.to_json() if self.reason is not None else None,
            "replacedBy": list(self.replaced_by),
            "finished": self.finished.isoformat() if self.finished is not None else None,
            "realSavings": self.real_savings,
        }


class DecisionLog:
    """Remembers the last decisions, the oldest are forgotten first."""

    def __init__(self, kept: int = _KEPT) -> None:
        """Keep that many."""
        self._kept = kept
        self._decisions: OrderedDict[str, Decision] = OrderedDict()

    def record(self, decision: Decision) -> None:
        """Remember the decision, or what became of one with the same id."""
        self._decisions[decision.id] = decision
        while len(self._decisions) > self._kept:
            self._decisions.popitem(last=False)

    def get(self, id: str) -> Decision | None:
        """Return the decision with the id, or None."""
        return self._decisions.get(id)

    def all(self) -> tuple[Decision, ...]:
        """Return what is remembered, oldest first."""
        return tuple(self._decisions.values())

    def to_json(self) -> list[Mapping[str, Any]]:
        """Return what is remembered as plain values, newest first."""
        return [decision.to_json() for decision in reversed(self._decisions.values())]

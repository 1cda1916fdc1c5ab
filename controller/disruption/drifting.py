"""What a claim says about its own drift; shared by both drift methods and the rollout."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from controller.disruption.command import Candidate
from controller.disruption.reasons import BlockCode, blocked
from controller.scheduling import Reason
from framework.api import ClaimCondition, conditions

__all__ = ["drifted_since", "not_drifted"]

_BEGINNING: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def not_drifted(candidate: Candidate) -> Reason | None:
    """Return that the claim is not drifted, or None."""
    if conditions.is_true(candidate.claim.status.conditions, ClaimCondition.DRIFTED):
        return None
    return blocked(BlockCode.NOT_DRIFTED, "the node is not drifted", obj=f"Node/{candidate.name}")


def drifted_since(candidate: Candidate) -> datetime:
    """Return since when the claim is drifted; the beginning of time when it does not say."""
    found = conditions.get(candidate.claim.status.conditions, ClaimCondition.DRIFTED)
    return (found.last_transition_time if found is not None else None) or _BEGINNING

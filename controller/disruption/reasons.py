"""The codes of the reasons that disruption adds to the engine's (spec core/disruption §3, §10, §14).

Used by the survey, the methods, validation and `explain`; holds the vocabulary and one constructor.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from controller.scheduling import Reason

__all__ = ["BlockCode", "blocked"]


class BlockCode(StrEnum):
    """Why a node is left alone."""

    IN_COMMAND = "InCommand"
    UNMANAGED = "Unmanaged"
    NO_NODE = "NoNode"
    NOT_INITIALIZED = "NotInitialized"
    MARKED_FOR_DELETION = "MarkedForDeletion"
    NOMINATED = "Nominated"
    NODE_DO_NOT_DISRUPT = "NodeDoNotDisrupt"
    NO_POOL_LABEL = "NoNodePoolLabel"
    POOL_NOT_FOUND = "NodePoolNotFound"
    POOL_WITHOUT_TYPES = "NodePoolWithoutInstanceTypes"
    POD_DO_NOT_DISRUPT = "PodDoNotDisrupt"
    POD_DISRUPTION_BUDGET = "PodDisruptionBudget"
    SEVERAL_BUDGETS = "SeveralPodDisruptionBudgets"
    BUDGET = "Budget"
    NOT_EMPTY = "NotEmpty"
    HEADROOM = "Headroom"
    EMPTY = "Empty"
    STATIC = "StaticNodePool"
    NOT_STATIC = "NotStaticNodePool"
    NOT_DRIFTED = "NotDrifted"
    CONSOLIDATION_OFF = "ConsolidationDisabled"
    ONLY_WHEN_EMPTY = "ConsolidatedOnlyWhenEmpty"
    SETTLING = "NotYetConsolidatable"
    TYPE_UNKNOWN = "InstanceTypeUnknown"
    LABEL_MISSING = "LabelMissing"
    PODS_DO_NOT_FIT = "PodsDoNotFit"
    CANDIDATE_DELETING = "CandidateDeleting"
    TOO_MANY_REPLACEMENTS = "TooManyReplacements"
    NOT_CHEAPER = "NothingCheaper"
    SPOT_TO_SPOT_OFF = "SpotToSpotDisabled"
    TOO_FEW_SPOT_TYPES = "TooFewCheaperSpotTypes"
    MIN_VALUES = "MinValues"
    SAVINGS_TOO_SMALL = "SavingsTooSmall"
    BALANCED = "NotWorthTheDisruption"
    COOLDOWN = "Cooldown"
    OSCILLATION = "Oscillation"
    ROLLOUT = "Rollout"
    NODE_LIMIT = "NodeLimit"
    SCALING_DOWN = "ScalingDown"
    CHURN = "Churn"
    SIMULATION = "Simulation"
    TIMED_OUT = "CommandTimedOut"
    REPLACEMENT_GONE = "ReplacementGone"
    NOT_REACHED = "NotReached"
    DISRUPTABLE = "Disruptable"
    STAYS = "Stays"


def blocked(
    code: BlockCode,
    text: str,
    *,
    obj: str | None = None,
    nearest: str | None = None,
    of: Iterable[Reason] = (),
) -> Reason:
    """Return a reason with that code; `of` are the facts under it."""
    return Reason(code=code, text=text, obj=obj, nearest=nearest, children=tuple(of))

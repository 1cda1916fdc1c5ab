"""The second, exact pass: why a pod found no place (issue: reasons).

Runs only for pods that failed, after the solve, on the state it ended in. Private to the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.scheduling.openclaims import OpenClaim
from controller.scheduling.podclasses import PodClass
from controller.scheduling.pods import Pod
from controller.scheduling.reasons import Reason, ReasonCode

if TYPE_CHECKING:
    from controller.scheduling.solver import Run

__all__ = ["Explainer"]


class Explainer:
    """Finds the first filter that fails per pool, with the nearest miss."""

    def __init__(self, run: Run) -> None:
        """Read the run; nothing of it is changed."""
        self._run = run

    def too_few_values(self, claim: OpenClaim) -> Reason:
        """Return why a claim was dropped when its types were cut to the most that it may name."""
        keys = ", ".join(sorted(claim.shape.min_values))
        return Reason(
            code=ReasonCode.MIN_VALUES,
            text=f"NodePool couldn't meet minValues requirements for {keys}",
            obj=f"NodePool/{claim.shape.template.name}",
        )

    def why_unplaced(self, pod: Pod, cls: PodClass) -> Reason:
        """Return the tree of reasons for one pod."""
        return Reason(code=ReasonCode.UNPLACED, text="no place found", obj=f"Pod/{pod.key}")

"""Why a pod was placed where it was: the stage, the node or claim, and what else was possible.

Called by `explain` and `simulate` on a finished plan; builds text only when asked.
"""

from __future__ import annotations

from controller.scheduling.plan import Plan, Problem
from controller.scheduling.reasons import Reason, ReasonCode

__all__ = ["why_placed"]


def why_placed(problem: Problem, plan: Plan, pod_key: str) -> Reason | None:
    """Return the stage at which the pod was placed, None when the plan does not place it."""
    nodes = {node.name: node for node in problem.snapshot.nodes}
    for placement in plan.placements:
        if placement.pod_key == pod_key:
            node = nodes[placement.node]
            kind = "in-flight" if node.is_in_flight else "existing"
            code = ReasonCode.ON_IN_FLIGHT_NODE if node.is_in_flight else ReasonCode.ON_EXISTING_NODE
            pool = f" of pool {node.pool}" if node.pool else ""
            return Reason(
                code=code,
                text=f"fits {kind} node {node.name}{pool}: nodes that exist come before new ones, "
                "whatever the weight of their pool",
                obj=f"Pod/{pod_key}",
            )
    for claim in plan.claims:
        if pod_key in claim.pod_keys:
            others = len(claim.pods) - 1
            text = (
                f"no existing node takes it: new node of pool {claim.pool}, shared with {others} other pods, "
                f"{len(claim.instance_types)} instance types possible, from {claim.instance_types[0]} "
                f"at {claim.price:.4f} USD/h"
            )
            return Reason(code=ReasonCode.ON_NEW_CLAIM, text=text, obj=f"Pod/{pod_key}")
    return None

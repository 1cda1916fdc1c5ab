"""`solve`: the engine's one entry point.

Called by provisioning, disruption, `simulate`, `explain` and stack previews.
"""

from __future__ import annotations

from collections.abc import Callable

from controller.scheduling.cost import cheaper_plan
from controller.scheduling.plan import Plan, Problem
from controller.scheduling.pools import objective_of
from controller.scheduling.run import Run
from framework.api.schedulingconfig import Objective

__all__ = ["never", "solve"]


def never() -> bool:
    """Return False: no time limit."""
    return False


def solve(
    problem: Problem, *, expired: Callable[[], bool] = never, searched: Callable[[], bool] = never
) -> Plan:
    """Return where every pod of the problem goes.

    `expired` ends the solve with what has been placed so far; `searched` ends the search for cheaper
    plans (see `search_limit`), asked between steps that take a second at most on 5,000 pods.
    """
    run = Run(problem, nodes_alone=True)
    run.drain(expired)
    if not run.stands:
        run = Run(problem)
        run.drain(expired)
    plan = run.plan()
    if objective_of(problem) is Objective.COST and not plan.stats.timed_out:
        return cheaper_plan(problem, run, plan, lambda: expired() or searched())
    return plan

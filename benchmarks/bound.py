"""The linear-programming lower bound on a plan's hourly cost.

Fractional nodes, total requests of cpu, memory and pods only; blind to every rule but resources.
"""

from __future__ import annotations

import highspy
import numpy as np

from controller.scheduling import Problem

__all__ = ["lower_bound"]

RESOURCES = ("cpu", "memory", "pods")


def lower_bound(problem: Problem) -> float:
    """Return the least USD per hour that new nodes with so much room could cost."""
    totals = [sum(pod.requests.get(name, 0) for pod in problem.pods) for name in RESOURCES]
    columns = [
        (min(o.sort_price for o in t.offerings if o.available), [t.allocatable.get(r, 0) for r in RESOURCES])
        for types in problem.instance_types.values()
        for t in types
        if any(o.available for o in t.offerings)
    ]
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    infinity = highspy.kHighsInf
    for total in totals:
        solver.addRow(1.0 if total else 0.0, infinity, 0, np.array([], dtype=np.int32), np.array([]))
    for price, room in columns:
        share = np.array([have / total if total else 0.0 for have, total in zip(room, totals, strict=True)])
        solver.addCol(price, 0.0, infinity, share.size, np.arange(share.size, dtype=np.int32), share)
    solver.run()
    return float(solver.getInfo().objective_function_value)

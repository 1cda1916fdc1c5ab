"""Solves one workload file in a process of its own and prints what it took, as JSON.

Run by `benchmarks.scheduling`, so that peak memory is the engine's alone. A round is timed from the
parsed input to the finished plan, as the peer's is.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.bound import lower_bound
from benchmarks.workloads import problem_of
from controller.scheduling import Objective, search_limit, solve
from controller.scheduling.verify import verify


def _after(end: float) -> Callable[[], bool]:
    """Return what tells that the search's time is up, as the provisioner does."""
    return lambda: time.perf_counter() > end


def main() -> None:
    """Solve, verify, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--objective", type=Objective, default=Objective.FIRST_FIT)
    parser.add_argument("--no-verify", action="store_true")
    arguments = parser.parse_args()
    problem = problem_of(json.loads(arguments.workload.read_text()), arguments.objective)
    limit = search_limit(problem).total_seconds()
    seconds = []
    for _ in range(arguments.rounds):
        gc.collect()
        start = time.perf_counter()
        plan = solve(problem, searched=_after(start + limit))
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    violations = () if arguments.no_verify else verify(problem, plan)
    print(
        json.dumps(
            {
                "seconds": seconds,
                "hourlyCost": plan.hourly_price,
                "nodes": len(plan.claims),
                "unplaced": len(plan.unplaced),
                "bound": lower_bound(problem),
                "peakMiB": peak,
                "violations": violations[:20],
            }
        )
    )


if __name__ == "__main__":
    main()

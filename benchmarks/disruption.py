"""How long a pass of disruption takes: `python -m benchmarks.disruption`.

Goals of issue 8: 1,000 nodes with 10,000 pods, half of them removable, one full pass under 5 s; 300 nodes in
20 pools with zone spread and anti-affinity, every candidate examined in one pass, under 10 s. Exits 1 when
one is missed. Only the methods are timed: picture, waits and writes are not there.
"""

from __future__ import annotations

import gc
import sys
import time

from benchmarks.worlds import crowd, spread_out
from controller.disruption import World, methods
from controller.disruption.candidates import survey
from controller.disruption.method import Proposal, Turn
from controller.disruption.simulation import Expired

__all__ = ["full_pass"]


def full_pass(world: World) -> tuple[float, dict[str, tuple[float, Proposal]]]:
    """Ask every method, also after one has found something; return the seconds, and each one's answer."""
    start = time.perf_counter()
    found = survey(world)
    answers: dict[str, tuple[float, Proposal]] = {}
    for method in methods():
        began = time.perf_counter()
        proposal = method.propose(Turn(world=world, survey=found, deadline=_deadline))
        answers[type(method).__name__] = (time.perf_counter() - began, proposal)
    return time.perf_counter() - start, answers


def _deadline(seconds: float) -> Expired:
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= end


def main() -> int:
    """Measure, print, and return the exit code."""
    cases = (
        ("1,000 nodes, 10,000 pods, half removable", crowd(1000, filled=(0.999, 0.4)), 5.0),
        ("the same, all half full", crowd(1000, filled=(0.5,)), 5.0),
        ("the same, nothing removable", crowd(1000, filled=(0.999,)), 5.0),
        ("300 nodes, 20 pools, spread, anti-affinity, half empty", spread_out(300, 20, filled=0.5), 10.0),
        ("the same, nothing removable", spread_out(300, 20, filled=0.999), 10.0),
    )
    missed = 0
    for name, world, goal in cases:
        gc.collect()
        seconds, answers = full_pass(world)
        missed += seconds > goal
        print(f"{name}: {seconds:.2f} s (goal {goal:.0f} s)")
        for method, (spent, proposal) in answers.items():
            nodes = sum(len(command.candidates) for command in proposal.commands)
            late = ", out of time" if proposal.timed_out else ""
            print(f"  {method:12} {spent:7.2f} s, takes {nodes}, leaves {len(proposal.refusals)}{late}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.cases DIR`: runs every case of the folder that is in reach and prints a table.

Ends with `N passed, N failed, N skipped`; the exit code is 1 when a case failed. `--only PREFIX`
picks cases by id. Runners by `when`: `RUNNERS`; a further one is a module with `unreachable` and `run`.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from types import ModuleType

import structlog

from tests.cases import (
    claimlife,
    disruption,
    drift,
    iac,
    iac_check,
    interruption,
    launching,
    lifecycle,
    nodeclass,
    provision,
)
from tests.cases.files import Variant, variants_in

RUNNERS: tuple[ModuleType, ...] = (
    provision,
    disruption,
    drift,
    lifecycle,
    claimlife,
    nodeclass,
    launching,
    interruption,
    iac_check,
    iac,
)


def outcome(variant: Variant) -> tuple[str, list[str]]:
    """Return passed, failed or skipped, with what differs or why it was not run."""
    reasons = []
    for runner in RUNNERS:
        why = runner.unreachable(variant)
        if why is None:
            try:
                faults = runner.run(variant)
            except Exception as exc:  # noqa: BLE001 - one case must not keep the others from being run
                return "failed", [f"{type(exc).__name__}: {exc}"]
            return ("failed" if faults else "passed"), faults
        reasons.append(why)
    # A runner that knows the case's `when` says what else it lacks; the others only that it is not theirs.
    return "skipped", [next((why for why in reasons if not why.startswith("when:")), reasons[0])]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="run only cases whose id starts with this")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for variant in variants_in(arguments.folder):
        if not variant.case.startswith(arguments.only):
            continue
        result, details = outcome(variant)
        counts[result] += 1
        print(f"{result:8} {variant.label:28} {variant.parity:7} {variant.title}")
        for detail in details:
            print(f"{'':9}{detail}")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    raise SystemExit(main())

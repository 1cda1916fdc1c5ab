"""What lint reports, as values.

Made by the checks, rendered by the command line. Holds no logic but order and text.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

__all__ = ["RULES", "Finding", "Severity"]


class Severity(StrEnum):
    """Whether it cannot work, or works but hardly as meant."""

    ERROR = "error"
    WARNING = "warning"


RULES = {
    "yaml": "The file is not YAML that kubectl would read.",
    "kind": "The object is of no kind or version that is served.",
    "schema": "The API server would refuse the object.",
    "validation": "The controller would refuse the object (ValidationSucceeded=False).",
    "label-spelling": "A label key or value looks like a well-known one but is not.",
    "pool-without-types": "No instance type meets the pool's requirements.",
    "pool-class-missing": "A pool points at a class that is not there.",
    "class-unused": "No pool points at the class.",
    "config-conflict": "Two SchedulingConfigs govern one pool.",
    "config-unused": "The SchedulingConfig governs no pool.",
    "budget-blocks": "The budgets never allow a disruption.",
    "budget-schedule": "The schedule cannot be read, so the budget blocks everything.",
    "limit-zero": "The limit keeps the pool from ever launching a node.",
    "pdb-blocks": "The PodDisruptionBudget never allows an eviction, so nodes cannot be drained.",
}
"""Every rule and what it means."""


@attrs.frozen(kw_only=True)
class Finding:
    """One thing wrong: where, what, and how to mend it."""

    file: str
    line: int
    """Line in the file, from 1."""
    obj: str
    """Kind and name, or empty for a file that cannot be read."""
    field: str
    problem: str
    remedy: str
    rule: str
    severity: Severity

    @property
    def message(self) -> str:
        """Return object, field, problem and remedy in one line, without what a terminal would obey."""
        place = f"{self.obj}: " if self.obj else ""
        field = f"{self.field} " if self.field else ""
        text = f"{place}{field}{self.problem}; {self.remedy}"
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)

    @property
    def order(self) -> tuple[str, int, str, str, str]:
        """Return the total key by which findings are sorted."""
        return (self.file, self.line, self.field, self.rule, self.problem)

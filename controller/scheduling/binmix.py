"""Which machines would hold so much at the least price: a small integer program (design: Cost objective).

Called by the Cost search. Totals only: packing whole pods into the machines is the search's part.
Deterministic: one thread, a fixed seed, and a limit in nodes of the search tree, not in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import highspy
import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "Demand", "cheapest_mix", "undominated"]

_MOST_NODES: Final = 10
_GAP: Final = 0.005
_EFFORT: Final = 0.01
"""Share of the work that goes into the solver's own heuristics."""
_SEED: Final = 1


@attrs.frozen(kw_only=True)
class Column:
    """A machine that may be bought."""

    row: int
    """Instance type, as a row of its table."""
    zone: str | None
    """None where zones do not matter."""
    price: float
    """USD per hour."""
    room: tuple[int, ...]
    kind: int
    """Machines of one kind suit the same demands."""


@attrs.frozen(kw_only=True)
class Demand:
    """The sum of requests of pods that the same kinds of machines suit."""

    total: tuple[int, ...]
    kinds: frozenset[int]


def undominated(columns: Sequence[Column]) -> list[Column]:
    """Return the columns that no other of their kind beats in price and every resource."""
    kept: list[Column] = []
    ordered = sorted(
        columns, key=lambda c: (c.price, tuple(-amount for amount in c.room), c.row, c.zone or "")
    )
    best: dict[int, NDArray[np.int64]] = {}
    for column in ordered:
        room = np.array(column.room, dtype=np.int64)
        seen = best.get(column.kind)
        if seen is not None and bool((seen >= room).all(axis=1).any()):
            continue
        best[column.kind] = room[None, :] if seen is None else np.vstack([seen, room])
        kept.append(column)
    return kept


def cheapest_mix(columns: Sequence[Column], demands: Sequence[Demand], slack: float) -> list[int] | None:
    """Return how many of each column hold all demands with a margin of `slack`, None when nothing does."""
    width = len(columns[0].room)
    scale = [max(1, sum(demand.total[r] for demand in demands)) for r in range(width)]
    kinds = sorted({column.kind for column in columns})
    place = {kind: number for number, kind in enumerate(kinds)}
    solver = _solver()
    for _ in range(len(kinds) * width):
        solver.addRow(0.0, highspy.kHighsInf, 0, _NO_INDICES, _NO_VALUES)
    for _ in demands:
        solver.addRow(1.0, highspy.kHighsInf, 0, _NO_INDICES, _NO_VALUES)
    for column in columns:
        rows = np.arange(width, dtype=np.int32) + place[column.kind] * width
        solver.addCol(column.price, 0.0, highspy.kHighsInf, width, rows, _shares(column.room, scale, 1.0))
    for number, demand in enumerate(demands):
        usable = sorted(demand.kinds & set(kinds))
        if not usable:
            return None
        for kind in usable:
            rows = np.append(np.arange(width) + place[kind] * width, len(kinds) * width + number)
            values = np.append(_shares(demand.total, scale, -(1.0 + slack)), 1.0)
            solver.addCol(0.0, 0.0, 1.0, width + 1, rows.astype(np.int32), values)
    for number in range(len(columns)):
        solver.changeColIntegrality(number, highspy.HighsVarType.kInteger)
    solver.run()
    solution = list(solver.getSolution().col_value)[: len(columns)]
    if (
        not solution
        or solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible
    ):
        return None
    return [round(value) for value in solution]


_NO_INDICES: Final = np.empty(0, dtype=np.int32)
_NO_VALUES: Final = np.empty(0, dtype=np.float64)


def _shares(amounts: Sequence[int], scale: Sequence[int], factor: float) -> NDArray[np.float64]:
    return np.array([factor * a / s for a, s in zip(amounts, scale, strict=True)], dtype=np.float64)


def _solver() -> highspy.Highs:
    solver = highspy.Highs()
    for name, value in (
        ("log_to_console", False),
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", _SEED),
        ("mip_max_nodes", _MOST_NODES),
        ("mip_rel_gap", _GAP),
        ("mip_heuristic_effort", _EFFORT),
    ):
        solver.setOptionValue(name, value)
    return solver

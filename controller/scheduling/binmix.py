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

_MOST_COLUMNS: Final = 120
"""Machines among which whole numbers are sought, shared out over the kinds."""
_MOST_NODES: Final = 1
_GAP: Final = 0.01
_EFFORT: Final = 0.0
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
    """Return how many of each column hold all demands with a margin of `slack`, None when nothing does.

    Whole machines are only sought among those that come nearest to paying off when fractions of machines
    may be bought.
    """
    kinds = {column.kind for column in columns}
    if not all(demand.kinds & kinds for demand in demands):
        return None
    fractions = _model(columns, demands, slack)
    fractions.run()
    if not _is_solved(fractions):
        return None
    excess = fractions.getSolution().col_dual[: len(columns)]
    chosen = _nearest(columns, excess, max(1, _MOST_COLUMNS // max(len(kinds), len(demands))))
    whole = _model([columns[place] for place in chosen], demands, slack)
    for place in range(len(chosen)):
        whole.changeColIntegrality(place, highspy.HighsVarType.kInteger)
    whole.run()
    if not _is_solved(whole):
        return None
    counts = [0] * len(columns)
    for place, value in zip(chosen, whole.getSolution().col_value, strict=False):
        counts[place] = round(value)
    return counts


def _is_solved(model: highspy.Highs) -> bool:
    feasible = highspy.SolutionStatus.kSolutionStatusFeasible
    return bool(model.getInfo().primal_solution_status == feasible)


def _nearest(columns: Sequence[Column], excess: Sequence[float], most: int) -> list[int]:
    """Return the places of at most so many columns of each kind: those whose price is least too high."""
    left = dict.fromkeys((column.kind for column in columns), most)
    chosen = []
    for place in sorted(range(len(columns)), key=lambda place: (excess[place], place)):
        if left[columns[place].kind]:
            left[columns[place].kind] -= 1
            chosen.append(place)
    return sorted(chosen)


def _model(columns: Sequence[Column], demands: Sequence[Demand], slack: float) -> highspy.Highs:
    """Return the linear program: a row per kind and resource, one per demand; demands may be split.

    Room beyond all that a kind may be asked for counts for nothing, so that fractions of machines far too
    large are no bargain.
    """
    width = len(columns[0].room)
    scale = [max(1, sum(demand.total[r] for demand in demands)) for r in range(width)]
    kinds = sorted({column.kind for column in columns})
    first_row = {kind: number * width for number, kind in enumerate(kinds)}
    solver = _solver()
    for _ in range(len(kinds) * width):
        solver.addRow(0.0, highspy.kHighsInf, 0, _NO_INDICES, _NO_VALUES)
    for _ in demands:
        solver.addRow(1.0, highspy.kHighsInf, 0, _NO_INDICES, _NO_VALUES)
    most = {
        kind: [(1.0 + slack) * sum(d.total[r] for d in demands if kind in d.kinds) for r in range(width)]
        for kind in kinds
    }
    for column in columns:
        rows = np.arange(width, dtype=np.int32) + first_row[column.kind]
        room = [min(amount, limit) for amount, limit in zip(column.room, most[column.kind], strict=True)]
        solver.addCol(column.price, 0.0, highspy.kHighsInf, width, rows, _shares(room, scale, 1.0))
    for number, demand in enumerate(demands):
        for kind in sorted(demand.kinds.intersection(kinds)):
            rows = np.append(np.arange(width) + first_row[kind], len(kinds) * width + number)
            values = np.append(_shares(demand.total, scale, -(1.0 + slack)), 1.0)
            solver.addCol(0.0, 0.0, 1.0, width + 1, rows.astype(np.int32), values)
    return solver


_NO_INDICES: Final = np.empty(0, dtype=np.int32)
_NO_VALUES: Final = np.empty(0, dtype=np.float64)


def _shares(amounts: Sequence[float], scale: Sequence[int], factor: float) -> NDArray[np.float64]:
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
        ("mip_allow_restart", False),
    ):
        solver.setOptionValue(name, value)
    return solver

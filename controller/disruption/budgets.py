"""How many nodes of a pool may be disrupted at once, now and over the next day (spec core/disruption §4).

Called by the methods, by validation and by `explain`. Pure: the instant comes in. Counts nodes that
`survey` hands over; never looks at a cluster itself, never changes anything.

A budget caps how many nodes are disrupted *at the same time*; it is no rate, so nothing limits how
many nodes an hour go through a budget of one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from framework.api import Budget, DisruptionReason, NodePool
from framework.api.cron import Cron, InvalidCron

__all__ = [
    "UNLIMITED",
    "Allowance",
    "CalendarEntry",
    "Ledger",
    "PoolCount",
    "allowance",
    "budget_problems",
    "calendar",
    "is_active",
    "uncovered_reasons",
]

UNLIMITED: Final = 2**31 - 1
"""No budget applies; also what the gauge of allowed disruptions shows then."""


@attrs.frozen(kw_only=True)
class PoolCount:
    """The nodes of one pool that budgets count: initialized, with a claim, instance not terminating."""

    nodes: int
    disrupting: int
    """Of these, NotReady or marked for deletion: they use up budget."""


@attrs.frozen(kw_only=True)
class Allowance:
    """What a pool's budgets allow for one reason at one instant, in nodes at a time."""

    pool: str
    reason: DisruptionReason
    limit: int
    """The smallest applicable budget; `UNLIMITED` when none applies."""
    decided_by: str
    """The budget that set the limit, as text; empty when none applies."""
    counted: int
    disrupting: int

    @property
    def unlimited(self) -> bool:
        """Whether no budget applies."""
        return self.limit >= UNLIMITED

    @property
    def remaining(self) -> int:
        """How many further nodes may start; `UNLIMITED` when no budget applies."""
        return UNLIMITED if self.unlimited else max(self.limit - self.disrupting, 0)

    def sentence(self) -> str:
        """Return the allowance for people: what, why, and that it is no rate."""
        if self.unlimited:
            return f"{self.reason}: no budget applies now, any number of nodes at a time"
        plural = "node" if self.limit == 1 else "nodes"
        return (
            f"{self.reason}: at most {self.limit} {plural} at a time of {self.counted} counted"
            f" (by {self.decided_by}), {self.disrupting} disrupting or not ready now,"
            f" {self.remaining} more may start; this is no limit per hour"
        )


@attrs.frozen(kw_only=True)
class CalendarEntry:
    """A span in which the limits of a pool stay the same: [start, end)."""

    start: datetime
    end: datetime
    limits: Mapping[DisruptionReason, int]
    """Nodes at a time by reason; `UNLIMITED` where no budget applies."""


class Ledger:
    """What is left of each pool's budget during one run of one method; each taken node is subtracted."""

    def __init__(self, allowances: Mapping[str, Allowance]) -> None:
        """Start from the allowances by pool name; a pool that is missing allows nothing."""
        self._left = {pool: each.remaining for pool, each in allowances.items()}

    def left(self, pool: str) -> int:
        """Return how many nodes of the pool may still be taken."""
        return self._left.get(pool, 0)

    def take(self, pool: str) -> bool:
        """Take one node of the pool; return whether there was one to take."""
        if self.left(pool) <= 0:
            return False
        self._left[pool] -= 1
        return True


def is_active(budget: Budget, now: datetime) -> bool:
    """Return whether the budget's window [hit, hit + duration) holds the instant; always, without a schedule.

    Raises InvalidCron for a schedule that cannot be read.
    """
    if budget.schedule is None or budget.duration is None:
        return True
    return Cron.parse(budget.schedule).next_after(now - budget.duration) <= now


def limit_of(budget: Budget, nodes: int) -> int:
    """Return the budget's cap for a pool of that many counted nodes; percentages round up."""
    text = budget.nodes.strip()
    if text.endswith("%"):
        return math.ceil(nodes * int(text[:-1]) / 100)
    return int(text)


def allowance(pool: NodePool, reason: DisruptionReason, count: PoolCount, now: datetime) -> Allowance:
    """Return what the pool's budgets allow for the reason now.

    A budget whose schedule cannot be read makes the pool allow nothing, whatever its reasons: fail closed.
    """
    limit, decided_by = UNLIMITED, ""
    for budget in pool.spec.disruption.budgets:
        try:
            active = is_active(budget, now)
        except InvalidCron as error:
            limit, decided_by = 0, f"unreadable schedule {budget.schedule!r}: {error}"
            break
        if active and _covers(budget, reason) and limit_of(budget, count.nodes) < limit:
            limit, decided_by = limit_of(budget, count.nodes), describe(budget)
    return Allowance(
        pool=pool.name,
        reason=reason,
        limit=limit,
        decided_by=decided_by,
        counted=count.nodes,
        disrupting=count.disrupting,
    )


def describe(budget: Budget) -> str:
    """Return the budget as one phrase, such as `nodes 10% for Empty from "0 9 * * *" for 8h`."""
    reasons = f" for {', '.join(budget.reasons)}" if budget.reasons else ""
    window = f' from "{budget.schedule}" for {budget.duration}' if budget.schedule is not None else ""
    return f"nodes {budget.nodes}{reasons}{window}"


def budget_problems(pool: NodePool) -> tuple[str, ...]:
    """Return one line for each budget of the pool whose schedule cannot be read."""
    problems = []
    for index, budget in enumerate(pool.spec.disruption.budgets):
        try:
            is_active(budget, datetime.fromisoformat("2000-01-01T00:00:00+00:00"))
        except InvalidCron as error:
            problems.append(
                f"NodePool/{pool.name}: spec.disruption.budgets[{index}].schedule {budget.schedule!r} cannot"
                f" be read ({error}); until it is mended nothing of this pool is disrupted"
            )
    return tuple(problems)


def calendar(
    pool: NodePool, count: PoolCount, now: datetime, *, span: timedelta = timedelta(hours=24)
) -> tuple[CalendarEntry, ...]:
    """Return the limits of the pool over the span, one entry for each stretch in which they do not change."""
    end = now + span
    entries: list[CalendarEntry] = []
    for start, stop in _stretches(pool.spec.disruption.budgets, now, end):
        limits = {reason: allowance(pool, reason, count, start).limit for reason in DisruptionReason}
        if entries and entries[-1].limits == limits:
            entries[-1] = attrs.evolve(entries[-1], end=stop)
        else:
            entries.append(CalendarEntry(start=start, end=stop, limits=limits))
    return tuple(entries)


def uncovered_reasons(pool: NodePool, now: datetime) -> tuple[DisruptionReason, ...]:
    """Return the reasons that no budget limits at this instant although the pool has budgets."""
    budgets = pool.spec.disruption.budgets
    if not budgets or budget_problems(pool):
        return ()
    active = [budget for budget in budgets if is_active(budget, now)]
    return tuple(
        reason for reason in DisruptionReason if not any(_covers(budget, reason) for budget in active)
    )


def _covers(budget: Budget, reason: DisruptionReason) -> bool:
    return not budget.reasons or reason in budget.reasons


def _stretches(
    budgets: Sequence[Budget], now: datetime, end: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the spans between all instants at which some budget's window opens or closes."""
    edges = {now, end}
    for budget in budgets:
        edges.update(edge for edge in _edges(budget, now, end) if now < edge < end)
    ordered = sorted(edges)
    yield from itertools.pairwise(ordered)


def _edges(budget: Budget, now: datetime, end: datetime) -> Iterable[datetime]:
    if budget.schedule is None or budget.duration is None:
        return
    try:
        cron = Cron.parse(budget.schedule)
    except InvalidCron:
        return
    hit = cron.next_after(now - budget.duration)
    while hit < end:
        yield hit
        yield hit + budget.duration
        hit = cron.next_after(hit)

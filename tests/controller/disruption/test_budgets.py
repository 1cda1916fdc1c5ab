"""Golden tables of spec core/disruption §21.1 and §21.2, and the calendar."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from controller.disruption.budgets import (
    UNLIMITED,
    PoolCount,
    allowance,
    budget_problems,
    calendar,
    is_active,
    uncovered_reasons,
)
from framework.api import Budget, DisruptionReason
from tests.controller.disruption.builders import NOW, a_pool

EMPTY, DRIFTED, UNDERUTILIZED = (
    DisruptionReason.EMPTY,
    DisruptionReason.DRIFTED,
    DisruptionReason.UNDERUTILIZED,
)
TEN = {"nodes": "10%"}
NO_DRIFT = {"nodes": "0", "reasons": ["Drifted"]}
BAD = {"nodes": "1", "schedule": "61 * * * *", "duration": "1h"}


@pytest.mark.parametrize(
    ("budgets", "nodes", "disrupting", "reason", "remaining"),
    [
        pytest.param([TEN], 1, 0, EMPTY, 1, id="10% of one node is one"),
        pytest.param([TEN], 19, 0, EMPTY, 2, id="percentages round up"),
        pytest.param([TEN], 20, 2, EMPTY, 0, id="disrupting nodes use it up"),
        pytest.param([TEN, NO_DRIFT], 50, 0, DRIFTED, 0, id="the smallest that covers the reason"),
        pytest.param([TEN, NO_DRIFT], 50, 0, EMPTY, 5, id="one for another reason does not count"),
        pytest.param(
            [{"nodes": "5", "reasons": ["Empty"]}], 50, 0, UNDERUTILIZED, UNLIMITED, id="none covers"
        ),
        pytest.param([], 50, 3, EMPTY, UNLIMITED, id="no budgets"),
        pytest.param([{"nodes": "100%"}], 7, 7, EMPTY, 0, id="all disrupting"),
        pytest.param([{"nodes": "40"}, BAD], 50, 0, EMPTY, 0, id="an unreadable schedule fails closed"),
        pytest.param([{"nodes": "0%"}], 50, 0, EMPTY, 0, id="zero percent"),
        pytest.param([{"nodes": "20%"}], 19, 0, EMPTY, 4, id="20% of 19"),
        pytest.param([{"nodes": "5%"}], 10, 0, EMPTY, 1, id="5% of 10"),
    ],
)
def test_budgets_allow_what_the_golden_table_says(
    budgets: list[Any], nodes: int, disrupting: int, reason: DisruptionReason, remaining: int
) -> None:
    pool = a_pool(disruption={"budgets": budgets})

    found = allowance(pool, reason, PoolCount(nodes=nodes, disrupting=disrupting), NOW)

    assert found.remaining == remaining


@pytest.mark.parametrize(
    ("schedule", "duration", "at", "active"),
    [
        ("0 9 * * mon-fri", "8h", "2026-03-02T08:59:00Z", False),
        ("0 9 * * mon-fri", "8h", "2026-03-02T09:00:00Z", True),
        ("0 9 * * mon-fri", "8h", "2026-03-02T16:59:00Z", True),
        ("0 9 * * mon-fri", "8h", "2026-03-02T17:00:00Z", False),
        ("0 9 * * mon-fri", "8h", "2026-03-01T12:00:00Z", False),
        ("@daily", "10m", "2026-03-02T00:00:00Z", True),
        ("@daily", "10m", "2026-03-02T00:09:59Z", True),
        ("@daily", "10m", "2026-03-02T00:10:00Z", False),
        ("@hourly", "2h", "2026-03-02T03:30:00Z", True),
    ],
)
def test_windows_hold_from_the_hit_until_the_duration_is_over(
    schedule: str, duration: str, at: str, active: bool
) -> None:
    budget = Budget.from_wire({"nodes": "0", "schedule": schedule, "duration": duration})

    assert is_active(budget, datetime.fromisoformat(at)) is active


def test_an_unreadable_schedule_is_named_with_its_field() -> None:
    problems = budget_problems(a_pool("web", disruption={"budgets": [TEN, BAD]}))

    assert problems == (
        "NodePool/web: spec.disruption.budgets[1].schedule '61 * * * *' cannot be read (minute '61' cannot be"
        " read); until it is mended nothing of this pool is disrupted",
    )


def test_the_sentence_names_the_budget_and_that_it_is_no_rate() -> None:
    pool = a_pool(disruption={"budgets": [TEN, {"nodes": "1", "reasons": ["Drifted"]}]})

    text = allowance(pool, DRIFTED, PoolCount(nodes=20, disrupting=0), NOW).sentence()

    assert text == (
        "Drifted: at most 1 node at a time of 20 counted (by nodes 1 for Drifted), 0 disrupting or not ready"
        " now, 1 more may start; this is no limit per hour"
    )


def test_the_calendar_shows_each_change_of_the_next_day_once() -> None:
    night = {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 22 * * *", "duration": "8h"}
    pool = a_pool(disruption={"budgets": [{"nodes": "3"}, night]})

    entries = calendar(pool, PoolCount(nodes=10, disrupting=0), NOW)

    assert [(each.start.hour, each.end.hour, each.limits[DRIFTED]) for each in entries] == [
        (10, 22, 3),
        (22, 6, 0),
        (6, 10, 3),
    ]
    assert entries[-1].end - entries[0].start == timedelta(hours=24)


def test_reasons_that_no_active_budget_covers_are_named() -> None:
    morning = {"nodes": "20%", "reasons": ["Empty"], "schedule": "0 6 * * *", "duration": "20h"}
    night = {"nodes": "20%", "reasons": ["Underutilized", "Empty"], "schedule": "0 2 * * *", "duration": "4h"}

    found = uncovered_reasons(a_pool(disruption={"budgets": [morning, night]}), NOW)

    assert set(found) == {UNDERUTILIZED, DRIFTED}

"""Batches: when a window opens and closes (spec core/scheduling §1)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from controller.clock import FakeClock
from controller.provisioning import Batcher


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def batcher(clock: FakeClock) -> Batcher:
    return Batcher(clock, idle=timedelta(seconds=1), longest=timedelta(seconds=10))


async def closes_after(batcher: Batcher, clock: FakeClock, triggers: list[tuple[float, str]]) -> float:
    """Return the seconds from the first trigger to the end of the window."""
    waiting = asyncio.ensure_future(batcher.wait())
    now = 0.0
    for at, uid in triggers:
        await clock.advance(at - now)
        now = at
        batcher.trigger(uid)
    while not waiting.done():
        await clock.advance(0.1)
        now = round(now + 0.1, 1)
        assert now < 60
    assert await waiting is True
    return round(now, 1)


async def test_quiet_closes_a_window(batcher: Batcher, clock: FakeClock) -> None:
    assert await closes_after(batcher, clock, [(0, "a")]) == pytest.approx(1.0, abs=0.11)


async def test_each_new_pod_lengthens_it(batcher: Batcher, clock: FakeClock) -> None:
    triggers = [(0.0, "a"), (0.8, "b"), (1.6, "c")]

    assert await closes_after(batcher, clock, triggers) == pytest.approx(2.6, abs=0.11)


async def test_a_pod_seen_again_does_not(batcher: Batcher, clock: FakeClock) -> None:
    assert await closes_after(batcher, clock, [(0.0, "a"), (0.8, "a")]) == pytest.approx(1.0, abs=0.11)


async def test_no_window_is_longer_than_the_longest(batcher: Batcher, clock: FakeClock) -> None:
    triggers = [(number * 0.5, f"p{number}") for number in range(20)]

    assert await closes_after(batcher, clock, triggers) == pytest.approx(10.0, abs=0.2)


async def test_without_triggers_the_caller_gets_turns(batcher: Batcher, clock: FakeClock) -> None:
    waiting = asyncio.ensure_future(batcher.wait())

    await clock.advance(1.1)

    assert await waiting is False

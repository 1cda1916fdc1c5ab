"""The queue of keys behind a controller."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from controller.clock import FakeClock
from controller.kube import Key, WorkQueue

A, B = Key(name="a"), Key(name="b")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 1, 1, tzinfo=UTC))


async def test_a_key_stands_in_line_once(clock: FakeClock) -> None:
    queue = WorkQueue(clock)

    for key in (A, B, A):
        queue.add(key)

    assert [await queue.take(), await queue.take()] == [A, B]
    assert len(queue) == 0


async def test_a_key_in_work_gets_one_more_turn_after_it(clock: FakeClock) -> None:
    queue = WorkQueue(clock)
    queue.add(A)
    await queue.take()
    queue.add(A)
    queue.add(A)
    before = len(queue)

    queue.finish(A)

    assert (before, len(queue)) == (0, 1)


async def test_the_last_delay_counts(clock: FakeClock) -> None:
    queue = WorkQueue(clock)
    timer = asyncio.ensure_future(queue.run_timer())
    queue.add_later(A, timedelta(seconds=5))
    queue.add_later(A, timedelta(seconds=60))
    queue.add_later(B, timedelta(seconds=10))

    await clock.advance(30)
    early = len(queue)
    await clock.advance(31)

    assert (early, len(queue)) == (1, 2)
    timer.cancel()


async def test_an_earlier_delay_shortens_the_sleep(clock: FakeClock) -> None:
    queue = WorkQueue(clock)
    timer = asyncio.ensure_future(queue.run_timer())
    queue.add_later(A, timedelta(seconds=60))
    await clock.advance(1)
    queue.add_later(B, timedelta(seconds=2))

    await clock.advance(3)

    assert await queue.take() == B
    timer.cancel()


async def test_no_further_wish_takes_a_delay_back(clock: FakeClock) -> None:
    queue = WorkQueue(clock)
    timer = asyncio.ensure_future(queue.run_timer())
    queue.add_later(A, timedelta(seconds=5))

    queue.add_later(A, None)
    await clock.advance(10)

    assert len(queue) == 0
    timer.cancel()


async def test_a_closed_queue_hands_out_nothing(clock: FakeClock) -> None:
    queue = WorkQueue(clock)
    queue.add(A)

    queue.close()

    assert await queue.take() is None

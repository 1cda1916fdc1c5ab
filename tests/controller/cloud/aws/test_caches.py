"""Marks, counts, batches and predictions: the small state that launches leave behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from controller.clock import FakeClock
from controller.cloud.aws.addresses import SubnetAddresses
from controller.cloud.aws.batcher import Batcher
from controller.cloud.aws.gateway.records import SubnetRecord
from controller.cloud.aws.unavailable import UnavailableOfferings
from controller.scheduling import CapacityType
from framework.api.ec2nodeclass import Subnet
from framework.iam.calls import Batch

SPOT, ON_DEMAND = CapacityType.SPOT, CapacityType.ON_DEMAND
POOL = (SPOT, "m5.large", "z-a")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 6, 1, tzinfo=UTC))


async def test_a_mark_covers_one_pool_for_three_minutes(clock: FakeClock) -> None:
    marks = UnavailableOfferings(clock)

    marks.mark(*POOL)

    assert marks.contains(*POOL)
    assert not marks.contains(ON_DEMAND, "m5.large", "z-a")
    assert not marks.contains(SPOT, "m5.large", "z-b")
    await clock.advance(179)
    assert marks.contains(*POOL)
    await clock.advance(1)
    assert not marks.contains(*POOL)


async def test_a_pool_that_stays_empty_is_asked_for_ever_less_often(clock: FakeClock) -> None:
    marks = UnavailableOfferings(clock)
    spans = []
    for _ in range(5):
        marks.mark(*POOL)
        started = clock.monotonic()
        while marks.contains(*POOL):
            await clock.advance(60)
        spans.append((clock.monotonic() - started) / 60)

    assert spans == [3, 6, 12, 24, 24]


async def test_a_pool_that_recovered_starts_again_at_three_minutes(clock: FakeClock) -> None:
    marks = UnavailableOfferings(clock)
    marks.mark(*POOL)
    await clock.advance(180 + 600)
    marks.mark(*POOL)

    await clock.advance(180)

    assert not marks.contains(*POOL)


async def test_a_pool_whose_mark_ran_out_is_tried_by_one_then_by_ever_more(clock: FakeClock) -> None:
    marks = UnavailableOfferings(clock)
    before = marks.launches_left(*POOL)
    marks.mark(*POOL)
    await clock.advance(180)

    tries = [marks.launches_left(*POOL)]
    for _ in range(2):
        for _ in range(tries[-1] or 0):
            marks.launched(*POOL)
        tries.append(marks.launches_left(*POOL))
    marks.mark(*POOL)
    await clock.advance(360)
    after_a_failure = marks.launches_left(*POOL)
    await clock.advance(600)
    marks.expire()

    assert (before, tries, after_a_failure, marks.launches_left(*POOL)) == (None, [1, 2, 4], 1, None)


async def test_marks_that_run_out_change_the_version(clock: FakeClock) -> None:
    marks = UnavailableOfferings(clock)
    marks.mark(*POOL)
    before = marks.version, marks.sequence("m5.large"), marks.sequence("c5.large")
    await clock.advance(180)

    marks.expire()
    after = marks.version, marks.sequence("m5.large"), marks.sequence("c5.large")
    marks.expire()

    assert after[0] != before[0]
    assert after[1] != before[1]
    assert after[2] == before[2]
    assert marks.version == after[0]


async def test_zones_and_capacity_types_are_marked_as_a_whole(clock: FakeClock) -> None:
    marks = UnavailableOfferings(clock)

    marks.mark_zone("z-a")
    marks.mark_capacity_type(SPOT)

    assert marks.contains(ON_DEMAND, "c5.large", "z-a")
    assert marks.contains(SPOT, "c5.large", "z-b")
    assert not marks.contains(ON_DEMAND, "c5.large", "z-b")


def a_batch(max_items: int = 10) -> Batch:
    return Batch(name="test", idle=timedelta(seconds=1), longest=timedelta(seconds=3), max_items=max_items)


class Calls:
    """Answers each request with ten times itself, and remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    async def execute(self, requests: Sequence[int]) -> Sequence[int | BaseException]:
        self.batches.append(list(requests))
        return [ValueError("odd") if number % 2 else number * 10 for number in requests]


async def test_requests_of_one_window_become_one_call(clock: FakeClock) -> None:
    calls = Calls()
    batcher: Batcher[int, int] = Batcher(a_batch(), lambda _: "all", calls.execute, clock)
    tasks = [asyncio.create_task(batcher.submit(number)) for number in (2, 4, 6)]

    await clock.advance(1)

    assert [await task for task in tasks] == [20, 40, 60]
    assert calls.batches == [[2, 4, 6]]


async def test_a_full_window_closes_at_once_and_buckets_do_not_mix(clock: FakeClock) -> None:
    calls = Calls()
    batcher: Batcher[int, int] = Batcher(a_batch(2), lambda n: n >= 100, calls.execute, clock)

    tasks = [asyncio.create_task(batcher.submit(number)) for number in (2, 100, 4, 6)]
    await clock.advance(1)

    assert sorted(calls.batches) == [[2, 4], [6], [100]]
    assert [await task for task in tasks] == [20, 1000, 40, 60]


async def test_a_window_that_never_rests_closes_at_its_longest(clock: FakeClock) -> None:
    calls = Calls()
    batcher: Batcher[int, int] = Batcher(a_batch(), lambda _: "all", calls.execute, clock)
    tasks = []
    for number in range(0, 16, 2):
        tasks.append(asyncio.create_task(batcher.submit(number)))
        await clock.advance(0.5)
    await clock.advance(3)

    await asyncio.gather(*tasks)

    assert len(calls.batches[0]) in (6, 7)
    assert sum(len(batch) for batch in calls.batches) == 8


async def test_each_caller_gets_its_own_error(clock: FakeClock) -> None:
    batcher: Batcher[int, int] = Batcher(a_batch(), lambda _: "all", Calls().execute, clock)
    good, bad = (asyncio.create_task(batcher.submit(number)) for number in (2, 3))
    await clock.advance(1)

    assert await good == 20
    with pytest.raises(ValueError, match="odd"):
        await bad


async def test_a_failed_call_fails_every_caller_and_the_next_window_works(clock: FakeClock) -> None:
    calls = Calls()
    answers = iter([ConnectionError("away"), None])

    async def execute(requests: Sequence[int]) -> Sequence[int | BaseException]:
        error = next(answers)
        if error is not None:
            raise error
        return await calls.execute(requests)

    batcher: Batcher[int, int] = Batcher(a_batch(), lambda _: "all", execute, clock)
    first = [asyncio.create_task(batcher.submit(number)) for number in (2, 4)]
    await clock.advance(1)
    results = await asyncio.gather(*first, return_exceptions=True)
    second = asyncio.create_task(batcher.submit(8))
    await clock.advance(1)

    assert [type(result) for result in results] == [ConnectionError, ConnectionError]
    assert await second == 80


SUBNETS = (
    Subnet(id="subnet-1", zone="z-a"),
    Subnet(id="subnet-2", zone="z-a"),
    Subnet(id="subnet-3", zone="z-b"),
)


def records(*free: int) -> list[SubnetRecord]:
    return [
        SubnetRecord(id=subnet.id, zone=subnet.zone, zone_id="", vpc="vpc-1", free_addresses=count)
        for subnet, count in zip(SUBNETS, free, strict=True)
    ]


def test_the_subnet_with_most_addresses_is_chosen_until_launches_used_them_up(clock: FakeClock) -> None:
    addresses = SubnetAddresses(clock)
    addresses.observe(records(100, 90, 50))

    chosen = [addresses.choose(SUBNETS, {"z-a": 29}).by_zone["z-a"] for _ in range(3)]

    assert chosen == ["subnet-1", "subnet-2", "subnet-1"]


def test_what_was_not_used_is_given_back_unless_counted_anew(clock: FakeClock) -> None:
    addresses = SubnetAddresses(clock)
    addresses.observe(records(100, 90, 50))
    choice = addresses.choose(SUBNETS, {"z-a": 29, "z-b": 29})

    addresses.give_back(choice, used=("subnet-1",))
    counts = addresses.free("subnet-1"), addresses.free("subnet-3")
    addresses.observe(records(80, 90, 40))
    addresses.give_back(choice, used=())

    assert counts == (71, 50)
    assert (addresses.free("subnet-1"), addresses.free("subnet-3")) == (80, 40)

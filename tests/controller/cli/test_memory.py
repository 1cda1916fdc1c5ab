"""Memory is given back before the limit is reached (spec core/observability §5)."""

from __future__ import annotations

from datetime import UTC, datetime

from controller.cli.memory import resident_bytes, stay_under
from controller.clock import FakeClock
from tests.controller.fakes.tasks import beside


async def test_memory_is_freed_from_ninety_percent_of_the_limit_on() -> None:
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    size, freed = [900], []

    async with beside(
        stay_under(1000, clock, resident=lambda: size[0], free=lambda: freed.append(clock.monotonic()))
    ):
        await clock.advance(25)
        size[0] = 901
        await clock.advance(10)

    assert freed == [30.0]


def test_the_size_of_this_process_is_read() -> None:
    assert resident_bytes() > 2**20

"""Leader election: take, hold, lose, release."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from controller.clock import FakeClock
from controller.kube import LeaderElector, LeaseSettings, Unavailable, kinds
from tests.controller.fakes.api import FakeApi


class Election:
    def __init__(self) -> None:
        self.clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.api = FakeApi(self.clock)

    def replica(self, identity: str) -> LeaderElector:
        client: Any = self.api
        settings = LeaseSettings(name="lease", namespace="kube-system", identity=identity)
        return LeaderElector(client, settings, clock=self.clock)

    def holder(self) -> str:
        return str(self.api.read(kinds.LEASE, "lease", "kube-system")["spec"]["holderIdentity"])


async def test_the_first_replica_leads_and_the_second_waits() -> None:
    election = Election()
    first, second = election.replica("a"), election.replica("b")
    await first.acquire()

    waiting = asyncio.ensure_future(second.acquire())
    hold = asyncio.ensure_future(first.hold())
    await election.clock.advance(60)

    assert (election.holder(), waiting.done(), first.leading) == ("a", False, True)
    waiting.cancel()
    hold.cancel()


async def test_a_silent_leader_is_followed_within_twenty_seconds() -> None:
    election = Election()
    await election.replica("a").acquire()
    second = asyncio.ensure_future(election.replica("b").acquire())

    await election.clock.advance(20)

    assert (second.done(), election.holder()) == (True, "b")


async def test_a_released_lease_is_taken_at_the_next_look() -> None:
    election = Election()
    first = election.replica("a")
    await first.acquire()
    second = asyncio.ensure_future(election.replica("b").acquire())
    await election.clock.advance(1)

    await first.release()
    await election.clock.advance(2)

    assert (second.done(), election.holder()) == (True, "b")


async def test_a_leader_that_cannot_renew_gives_up() -> None:
    election = Election()
    leader = election.replica("a")
    await leader.acquire()
    hold = asyncio.ensure_future(leader.hold())
    await election.clock.advance(3)

    election.api.failures = [Unavailable("patch leases", "down")] * 20
    await election.clock.advance(13)

    assert (hold.done(), leader.leading) == (True, False)


async def test_releasing_what_is_not_ours_does_nothing() -> None:
    election = Election()
    await election.replica("a").acquire()

    await election.replica("b").release()

    assert election.holder() == "a"

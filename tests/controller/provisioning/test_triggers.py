"""A claim that was given up has its pods planned again at once (issue 6, deliver item 4)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from controller.cloud import InsufficientCapacity
from controller.kube import Change, Key, kinds
from controller.provisioning import Batcher
from controller.provisioning.triggers import ClaimTrigger, given_up
from framework.api import NodeClaim
from tests.controller.fakes.objects import a_claim
from tests.controller.fakes.world import World


def claim(provider_id: str = "", **metadata: str) -> NodeClaim:
    wire = a_claim(status={"providerID": provider_id} if provider_id else {})
    wire["metadata"].update(metadata, uid="u")
    return NodeClaim.from_wire(wire)


GOING = {"deletionTimestamp": "2026-01-01T12:00:00Z"}
LAUNCHED = "aws:///eu-west-2a/i-1"


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        (None, claim(), False),
        (claim(), claim(LAUNCHED), False),
        (claim(), claim(**GOING), True),
        (claim(**GOING), None, True),
        (claim(LAUNCHED), claim(LAUNCHED, **GOING), False),
        (claim(LAUNCHED), None, False),
    ],
    ids=["new", "launched", "given up", "gone", "ended later", "gone later"],
)
def test_only_a_claim_that_never_got_an_instance_wakes(
    old: NodeClaim | None, new: NodeClaim | None, wakes: bool
) -> None:
    keys = tuple(given_up(Change(kind=kinds.NODECLAIM, old=old, new=new)))

    assert keys == ((Key(name="default-abcde"),) if wakes else ())


async def test_a_round_begins_a_second_after_a_claim_was_given_up() -> None:
    world = World()
    batcher = Batcher(world.clock, idle=timedelta(seconds=1), longest=timedelta(seconds=10))
    trigger = ClaimTrigger(batcher)
    world.api.put(kinds.NODECLAIM, a_claim())
    world.cloud.failures = [InsufficientCapacity("sold out")]
    await world.lifecycle("default-abcde")

    await trigger.reconcile(Key(name="default-abcde"))
    waiting = asyncio.create_task(batcher.wait())
    await world.clock.advance(1.1)

    assert waiting.done()
    assert waiting.result() is True

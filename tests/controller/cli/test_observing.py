"""Observe mode: decisions are kept with their money, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from controller.cli.observing import Observed, WouldDisrupt
from controller.kube import SINGLETON, kinds
from controller.scheduling import Options
from framework.api import labels
from tests.controller.fakes.objects import READY, a_claim, a_node
from tests.controller.fakes.world import World

T = TypeVar("T")
MACHINE = {
    labels.INSTANCE_TYPE: "m5.large",
    labels.ZONE: "eu-west-2a",
    labels.CAPACITY_TYPE: "on-demand",
    labels.NODEPOOL: "default",
    labels.EC2NODECLASS: "default",
}


async def at_once(work: Callable[[], T]) -> T:
    return work()


async def test_an_empty_node_would_be_deleted_and_is_not() -> None:
    world = World()
    provider_id = "aws:///eu-west-2a/i-1"
    states = ("Launched", "Registered", "Initialized", "Consolidatable")
    conditions = [{**READY, "type": each} for each in states]
    world.api.put(
        kinds.NODECLAIM,
        a_claim(
            "idle",
            metadata={"labels": MACHINE},
            status={"providerID": provider_id, "nodeName": "node-1", "conditions": conditions},
        ),
    )
    own = {labels.REGISTERED: "true", labels.INITIALIZED: "true", labels.HOSTNAME: "node-1"}
    world.api.put(
        kinds.NODE, a_node("node-1", provider_id, metadata={"labels": MACHINE | own}, spec={"taints": []})
    )
    observed, before = Observed(world.shell), len(world.api.calls)
    look = WouldDisrupt(
        shell=world.shell, provider=world.cloud, options=Options(), offload=at_once, observed=observed
    )

    await look.reconcile(SINGLETON)

    (entry,) = observed.to_json()
    assert (entry["action"], entry["reason"], entry["usdPerHour"]) == ("delete", "empty", -0.1)
    assert str(entry["command"]).startswith("empty: delete node-1 (m5.large/on-demand)")
    assert world.api.calls[before:] == []

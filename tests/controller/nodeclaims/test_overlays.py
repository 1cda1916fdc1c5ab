"""NodeOverlays: judged by their controller, seen by plans only behind the gate (spec core/scheduling §15)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cluster import Mirror, Writer
from controller.kube import Key, kinds
from controller.nodeclaims.overlays import OverlayValidation
from tests.controller.fakes.world import START, World

GOOD: dict[str, Any] = {"metadata": {"name": "good"}, "spec": {"requirements": [], "price": "0.5"}}
BAD: dict[str, Any] = {"metadata": {"name": "bad"}, "spec": {"requirements": [], "capacity": {"cpu": "1"}}}


@pytest.mark.parametrize(("overlay", "status"), [(GOOD, "True"), (BAD, "False")], ids=["valid", "not valid"])
async def test_an_overlay_is_judged(overlay: dict[str, Any], status: str) -> None:
    world = World()
    name = overlay["metadata"]["name"]
    world.api.put(kinds.NODEOVERLAY, overlay)
    judge = OverlayValidation(world.mirror, Writer(world.shell.client, world.mirror), world.clock)

    await judge.reconcile(Key(name=name))

    conditions = world.api.read(kinds.NODEOVERLAY, name)["status"]["conditions"]
    assert {each["type"]: each["status"] for each in conditions} == {
        "ValidationSucceeded": status,
        "Ready": status,
    }


@pytest.mark.parametrize(("gate", "seen"), [(False, []), (True, ["good"])], ids=["gate off", "gate on"])
def test_plans_see_valid_overlays_behind_the_gate_only(gate: bool, seen: list[str]) -> None:
    world = World()
    mirror = Mirror(overlays=gate)
    world.api.mirror = mirror
    for overlay in (GOOD, BAD):
        world.api.put(kinds.NODEOVERLAY, overlay)

    assert [each.name for each in mirror.snapshot(START).node_overlays] == seen

"""What a user gets wrong is said on the object itself, with the name and the mend; nothing is launched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sandbox.kubernetes import Object
from sandbox.platform import Platform
from sandbox.pulumi_aws.engine import PulumiFailed
from sandbox.workloads import Workload
from tests.e2e.world import CLASSES, POOLS, World

pytestmark = pytest.mark.e2e


def _condition(item: Object | None, kind: str) -> Mapping[str, Any]:
    conditions = (item or {}).get("status", {}).get("conditions", ())
    return next((c for c in conditions if c["type"] == kind), {})


def _pool_of(world: World, name: str, node_class: str) -> Object:
    template = world.api.get(f"{POOLS}/default")["spec"]["template"]["spec"]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "metadata": {"labels": {"team": name}},
                "spec": {
                    "requirements": template["requirements"],
                    "nodeClassRef": {**template["nodeClassRef"], "name": node_class},
                },
            }
        },
    }


def test_a_pool_whose_class_does_not_exist_says_so(world: World) -> None:
    world.api.create(POOLS, _pool_of(world, "lost", "nowhere"))
    world.deploy(Workload(name="lost", node_selector={"team": "lost"}))

    def found() -> Mapping[str, Any]:
        return _condition(world.api.find(f"{POOLS}/lost"), "NodeClassReady")

    world.wait("the pool's condition", lambda: found().get("status") == "False", 30)

    assert found()["reason"] == "NodeClassNotFound"
    assert "nowhere" in found()["message"]
    assert world.claims() == []


def test_a_class_whose_role_does_not_exist_says_so(world: World) -> None:
    good = world.api.get(f"{CLASSES}/default")
    bad = {
        "apiVersion": good["apiVersion"],
        "kind": "EC2NodeClass",
        "metadata": {"name": "roleless"},
        "spec": {**good["spec"], "role": "NoSuchRole"},
    }
    world.api.create(CLASSES, bad)
    try:

        def found() -> Mapping[str, Any]:
            return _condition(world.api.find(f"{CLASSES}/roleless"), "InstanceProfileReady")

        world.wait("the class's condition", lambda: found().get("status") == "False", 30)

        assert "spec.role" in found()["message"]
        assert "NoSuchRole" in found()["message"]
        assert _condition(world.api.find(f"{CLASSES}/roleless"), "Ready")["status"] != "True"
    finally:
        world.api.delete(f"{CLASSES}/roleless")


def test_a_wrong_configuration_stops_before_any_resource(world: World) -> None:
    inventory = world.control.inventory()

    with pytest.raises(PulumiFailed) as refused:
        Platform(world.sandbox, config={"charpente:firstCapacitySize": "many"}).up()

    assert "charpente:firstCapacitySize is 'many'; allowed: 2 to 20" in str(refused.value)
    assert world.control.inventory() == inventory

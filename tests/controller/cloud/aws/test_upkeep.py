"""What keeps the provider's knowledge fresh and shows it: prices, images, hashes, metrics."""

from __future__ import annotations

import attrs
import pytest

from controller.cloud.aws.errors import AwsError
from controller.kube import kinds
from framework.api import EC2NODECLASS_HASH_VERSION, labels
from tests.controller.cloud.aws.builders import a_pool
from tests.controller.cloud.aws.scene import ZONES, Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_an_answer_without_prices_is_an_error_and_keeps_the_known_ones(scene: Scene) -> None:
    await scene.resolve()
    prices = scene.operator.parts.prices
    before = prices.on_demand("m5.large"), prices.spot("m5.large", ZONES[0])
    scene.account.spot = {}

    with pytest.raises(AwsError, match="the known ones are kept"):
        await scene.reconcile("providers.pricing")

    assert (prices.on_demand("m5.large"), prices.spot("m5.large", ZONES[0])) == before


async def test_types_that_leave_the_price_list_keep_their_price_and_new_prices_win(scene: Scene) -> None:
    await scene.resolve()
    prices = scene.operator.parts.prices
    kept = prices.on_demand("m5.xlarge")
    scene.account.on_demand = {"m5.large": 9.0}

    await scene.reconcile("providers.pricing")

    assert (prices.on_demand("m5.large"), prices.on_demand("m5.xlarge")) == (9.0, kept)


async def test_before_the_first_spot_price_the_on_demand_price_stands_in(scene: Scene) -> None:
    prices = scene.operator.parts.prices
    before = prices.spot("m5.large", ZONES[0])
    scene.account.spot = {("m5.large", ZONES[0]): 0.01}

    await prices.refresh_spot()

    assert before == prices.on_demand("m5.large")
    assert prices.spot("m5.large", ZONES[0]) == 0.01
    assert prices.spot("m5.large", ZONES[1]) is None


async def test_a_latest_image_that_is_deprecated_is_looked_up_again(scene: Scene) -> None:
    found = await scene.resolve()
    (old, name) = next(
        (each.id, each.name or "") for each in found.status.amis if "x86_64-standard" in (each.name or "")
    )
    record = scene.account.images[old]
    scene.account.images[old] = attrs.evolve(record, deprecated_at=scene.clock.now())
    parameter = next(each for each in scene.account.asked("GetParameter") if "x86_64/standard" in each)
    scene.account.images["ami-next"] = attrs.evolve(record, id="ami-next", name=name)
    scene.account.parameters[parameter] = "ami-next"

    seen = []
    for step in ("before", "after"):
        if step == "after":
            await scene.reconcile("providers.ssm.invalidation")
        await scene.clock.advance(301)
        await scene.reconcile("nodeclass", "default")
        now = scene.world.mirror.ec2nodeclass("default")
        assert now is not None
        seen.append("ami-next" in {each.id for each in now.status.amis})

    assert seen == [False, True]


async def test_another_way_of_hashing_drifts_nobody(scene: Scene) -> None:
    await scene.resolve()
    digest = scene.world.mirror.ec2nodeclass("default")
    assert digest is not None
    reference = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
    for name, conditions in (("web-1", []), ("web-2", [_drifted()])):
        old = {labels.NODECLASS_HASH: "old", labels.NODECLASS_HASH_VERSION: "v0"}
        scene.world.api.put(
            kinds.NODECLAIM,
            {
                "metadata": {"name": name, "annotations": old},
                "spec": {"requirements": [], "nodeClassRef": reference},
                "status": {"conditions": conditions},
            },
        )
    stored = {
        "metadata": {"annotations": {labels.NODECLASS_HASH: "old", labels.NODECLASS_HASH_VERSION: "v0"}}
    }
    scene.world.api.change(kinds.EC2NODECLASS, "default", stored)

    await scene.reconcile("nodeclass.hash", "default")

    notes = {name: scene.world.claim(name)["metadata"]["annotations"] for name in ("web-1", "web-2")}
    wanted = digest.metadata.annotations[labels.NODECLASS_HASH]
    assert notes["web-1"][labels.NODECLASS_HASH] == wanted
    assert notes["web-2"][labels.NODECLASS_HASH] == "old", "a claim that has drifted stays so"
    assert {each[labels.NODECLASS_HASH_VERSION] for each in notes.values()} == {EC2NODECLASS_HASH_VERSION}


def _drifted() -> dict[str, str]:
    return {
        "type": "Drifted",
        "status": "True",
        "reason": "NodeClassDrift",
        "message": "",
        "lastTransitionTime": "2026-06-01T00:00:00Z",
    }


async def test_offerings_are_shown_with_price_and_availability(scene: Scene) -> None:
    await scene.resolve()
    scene.world.api.put(kinds.NODEPOOL, a_pool().to_wire())

    await scene.reconcile("cloudprovider.metrics")

    registry = scene.world.metrics.registry
    where = {"instance_type": "m5.large", "capacity_type": "spot", "zone": ZONES[0]}
    name = "karpenter_cloudprovider_instance_type_"
    price = scene.operator.parts.prices.spot("m5.large", ZONES[0])
    assert registry.get_sample_value(f"{name}offering_available", where) == 1
    assert registry.get_sample_value(f"{name}offering_price_estimate", where) == price
    assert registry.get_sample_value(f"{name}offering_available", {**where, "capacity_type": "reserved"}) == 0
    assert registry.get_sample_value(f"{name}cpu_cores", {"instance_type": "m5.large"}) == 2
    assert registry.get_sample_value(f"{name}memory_bytes", {"instance_type": "m5.large"}) == 8 * 2**30


def test_nodes_are_repaired_for_the_conditions_of_the_spec(scene: Scene) -> None:
    found = {
        (each.condition_type, each.status): each.toleration.total_seconds() / 60
        for each in scene.operator.provider.repair_policies()
    }

    assert found == {
        ("Ready", "False"): 30,
        ("Ready", "Unknown"): 30,
        ("AcceleratedHardwareReady", "False"): 10,
        ("StorageReady", "False"): 30,
        ("NetworkingReady", "False"): 30,
        ("KernelReady", "False"): 30,
        ("ContainerRuntimeReady", "False"): 30,
    }

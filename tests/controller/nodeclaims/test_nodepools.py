"""The pool's own controllers (spec core/lifecycle §9.2, §11; core/api §3.2)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.kube import kinds
from controller.nodeclaims.health import Health, judge
from framework.api import NODEPOOL_HASH_VERSION, labels
from tests.controller.fakes.objects import a_claim, a_node_class, a_pool
from tests.controller.fakes.world import World


def pool_condition(world: World, type: str) -> tuple[str, str]:
    for each in world.api.read(kinds.NODEPOOL, "default")["status"]["conditions"]:
        if each["type"] == type:
            return each["status"], each["reason"]
    return "", ""


def pool_status(world: World) -> dict[str, Any]:
    return dict(world.api.read(kinds.NODEPOOL, "default")["status"])


@pytest.fixture
def world() -> World:
    return World()


async def test_the_hash_is_written_on_the_pool(world: World) -> None:
    await world.run("nodepool.hash", "default")

    annotations = world.api.read(kinds.NODEPOOL, "default")["metadata"]["annotations"]
    assert annotations[labels.NODEPOOL_HASH_VERSION] == NODEPOOL_HASH_VERSION
    assert annotations[labels.NODEPOOL_HASH].isdigit()


async def test_another_version_rewrites_claims_but_drifted_ones_keep_their_hash(world: World) -> None:
    old = {labels.NODEPOOL_HASH: "1", labels.NODEPOOL_HASH_VERSION: "v2"}
    drifted = {"conditions": [{"type": "Drifted", "status": "True", "reason": "NodePoolDrifted"}]}
    world.api.put(kinds.NODECLAIM, a_claim("default-a", metadata={"annotations": old}))
    world.api.put(kinds.NODECLAIM, a_claim("default-b", metadata={"annotations": old}, status=drifted))

    await world.run("nodepool.hash", "default")

    pool = world.api.read(kinds.NODEPOOL, "default")["metadata"]["annotations"][labels.NODEPOOL_HASH]
    found = [world.claim(name)["metadata"]["annotations"] for name in ("default-a", "default-b")]
    assert [each[labels.NODEPOOL_HASH] for each in found] == [pool, "1"]
    assert {each[labels.NODEPOOL_HASH_VERSION] for each in found} == {NODEPOOL_HASH_VERSION}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda api: api.remove(kinds.EC2NODECLASS, "default"), ("False", "NodeClassNotFound")),
        (
            lambda api: api.change(
                kinds.EC2NODECLASS,
                "default",
                {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}},
            ),
            ("False", "NodeClassTerminating"),
        ),
        (
            lambda api: api.change(kinds.EC2NODECLASS, "default", {"status": {"conditions": []}}),
            ("False", "NodeClassReadinessUnknown"),
        ),
        (lambda api: None, ("True", "NodeClassReady")),
    ],
    ids=["missing", "deleting", "not judged", "ready"],
)
async def test_readiness_follows_the_node_class(world: World, change: Any, expected: tuple[str, str]) -> None:
    change(world.api)

    await world.run("nodepool.readiness", "default")

    assert pool_condition(world, "NodeClassReady") == expected
    assert pool_condition(world, "Ready")[0] == expected[0]


async def test_a_pool_that_cannot_work_says_why(world: World) -> None:
    world.api.remove(kinds.NODEPOOL, "default")
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]
    world.api.put(kinds.NODEPOOL, a_pool(ready=False, template={"taints": taints}))

    await world.run("nodepool.validation", "default")

    assert pool_condition(world, "ValidationSucceeded") == ("False", "NodePoolValidationFailed")


async def test_the_counter_shows_capacity_and_zeros(world: World) -> None:
    await world.run("nodepool.counter", "default")
    empty = world.api.read(kinds.NODEPOOL, "default")["status"]["resources"]
    world.api.put(kinds.NODECLAIM, a_claim())
    waiting = await world.run("nodepool.counter", "default")
    await world.launched()
    await world.run("nodepool.counter", "default")

    status = world.api.read(kinds.NODEPOOL, "default")["status"]
    assert empty == {"cpu": "0", "ephemeral-storage": "0", "memory": "0", "nodes": "0", "pods": "0"}
    assert waiting.after is not None
    assert waiting.after.total_seconds() == 1
    assert (status["nodes"], status["resources"]["cpu"]) == (1, "2")


@pytest.mark.parametrize(
    ("results", "health"),
    [
        ((), Health.UNKNOWN),
        ((True,), Health.HEALTHY),
        ((False,), Health.HEALTHY),
        ((False, False), Health.UNHEALTHY),
        ((True, False, False, True), Health.UNHEALTHY),
        ((False, False, True, True, True), Health.HEALTHY),
    ],
)
def test_two_failures_of_the_last_four_are_unhealthy(results: tuple[bool, ...], health: Health) -> None:
    assert judge(results) is health


async def test_two_claims_that_never_registered_make_the_pool_unhealthy(world: World) -> None:
    uid = world.api.read(kinds.NODEPOOL, "default")["metadata"]["uid"]
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default", "uid": uid}
    await world.run("nodepool.registrationhealth", "default")
    before = pool_condition(world, "NodeRegistrationHealthy")
    for name in ("default-a", "default-b"):
        world.api.put(kinds.NODECLAIM, a_claim(name, metadata={"ownerReferences": [owner]}))
        await world.lifecycle(name)
    await world.clock.advance(901)
    for name in ("default-a", "default-b"):
        await world.lifecycle(name)

    assert before == ("Unknown", "AwaitingReconciliation")
    assert pool_condition(world, "NodeRegistrationHealthy") == ("False", "RegistrationFailed")


async def test_a_new_class_generation_resets_registration_health(world: World) -> None:
    await world.run("nodepool.registrationhealth", "default")
    world.api.remove(kinds.EC2NODECLASS, "default")
    world.api.put(kinds.EC2NODECLASS, a_node_class() | {"metadata": {"name": "default", "generation": 2}})

    await world.run("nodepool.registrationhealth", "default")

    assert world.api.read(kinds.NODEPOOL, "default")["status"]["nodeClassObservedGeneration"] == 2


async def test_a_rollout_is_complete_once_no_node_differs_from_the_pool(world: World) -> None:
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.launched()
    world.api.change(
        kinds.NODECLAIM,
        "default-abcde",
        {
            "metadata": {
                "annotations": {
                    labels.NODEPOOL_HASH: "old",
                    labels.NODEPOOL_HASH_VERSION: NODEPOOL_HASH_VERSION,
                }
            }
        },
    )
    await world.run("nodepool.counter", "default")
    rolling = (pool_condition(world, "RolloutComplete"), pool_status(world)["drifted"])

    world.api.remove(kinds.NODECLAIM, "default-abcde")
    await world.run("nodepool.counter", "default")

    assert rolling == (("False", "NodesDrifted"), 1)
    assert pool_condition(world, "RolloutComplete") == ("True", "RolloutComplete")
    assert pool_status(world)["observedGeneration"] == 1
    assert pool_condition(world, "Ready")[0] == "True"

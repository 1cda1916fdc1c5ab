"""From claim to node: launch, registration, initialization, liveness (spec core/lifecycle §3 to §6)."""

from __future__ import annotations

import pytest

from controller.cloud.provider import CreateFailed, InsufficientCapacity, NodeClassNotReady
from controller.kube import Conflict, kinds
from controller.nodeclaims.launch import LaunchFailed
from framework.api import labels
from tests.controller.fakes.objects import a_claim, a_node
from tests.controller.fakes.world import World

CLAIM = "default-abcde"


@pytest.fixture
def world() -> World:
    world = World()
    world.api.put(kinds.NODECLAIM, a_claim())
    return world


async def test_a_launch_writes_instance_and_condition(world: World) -> None:
    await world.lifecycle(CLAIM)

    claim = world.claim()
    assert claim["status"]["providerID"] == "aws:///eu-west-2a/i-00000001"
    assert claim["metadata"]["labels"][labels.INSTANCE_TYPE] == "m5.large"
    assert claim["status"]["allocatable"]["cpu"] == "1900m"
    assert world.condition("Launched") == ("True", "Launched")
    assert world.condition("Registered") == ("Unknown", "NodeNotFound")


async def test_reconciling_twice_changes_nothing(world: World) -> None:
    await world.initialized()
    await world.lifecycle(CLAIM)
    before = world.claim()["metadata"]["resourceVersion"]

    await world.lifecycle(CLAIM)

    assert world.claim()["metadata"]["resourceVersion"] == before
    assert world.cloud.creates == 1


async def test_the_finalizer_is_stored_before_anything_is_launched() -> None:
    world = World()
    world.api.put(kinds.NODECLAIM, a_claim(metadata={"finalizers": []}))
    world.api.failures = [Conflict("patch", "modified")]

    with pytest.raises(Conflict):
        await world.lifecycle(CLAIM)

    assert world.cloud.creates == 0


async def test_a_status_that_was_not_written_does_not_launch_twice(world: World) -> None:
    world.api.failures = [Conflict("patch", "modified")]
    with pytest.raises(Conflict):
        await world.lifecycle(CLAIM)

    await world.lifecycle(CLAIM)

    assert world.cloud.creates == 1
    assert world.condition("Launched")[0] == "True"


async def test_a_restart_between_launch_and_write_gives_one_instance(world: World) -> None:
    world.api.failures = [Conflict("patch", "modified")]
    with pytest.raises(Conflict):
        await world.lifecycle(CLAIM)
    world.start()

    await world.lifecycle(CLAIM)

    assert list(world.cloud.instances) == [world.claim()["status"]["providerID"]]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InsufficientCapacity("no m5.large"), "insufficient_capacity"),
        (NodeClassNotReady("default"), "nodeclass_not_ready"),
    ],
    ids=["no capacity", "class not ready"],
)
async def test_a_launch_that_cannot_succeed_deletes_the_claim(
    world: World, error: Exception, reason: str
) -> None:
    world.cloud.failures = [error]  # type: ignore[list-item]

    await world.lifecycle(CLAIM)
    await world.lifecycle(CLAIM)

    assert not world.api.exists(kinds.NODECLAIM, CLAIM)
    labelled = {"reason": reason, "nodepool": "default", "capacity_type": ""}
    assert world.metrics.registry.get_sample_value("karpenter_nodeclaims_disrupted_total", labelled) == 1


async def test_a_launch_error_is_shown_and_tried_again(world: World) -> None:
    world.cloud.failures = [CreateFailed("RoleNotFound", "x" * 400)]

    with pytest.raises(LaunchFailed):
        await world.lifecycle(CLAIM)
    shown = world.condition("Launched")
    await world.lifecycle(CLAIM)

    assert shown == ("Unknown", "RoleNotFound")
    assert world.condition("Launched") == ("True", "Launched")


async def test_registration_makes_the_node_the_claims(world: World) -> None:
    world.api.remove(kinds.NODECLAIM, CLAIM)
    startup = {"key": "cni/agent", "effect": "NoExecute", "value": "wait"}
    world.api.put(
        kinds.NODECLAIM,
        a_claim(spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}], "startupTaints": [startup]}),
    )
    provider_id = await world.launched()
    added = {"key": "other", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    node = a_node("node-1", provider_id)
    node["spec"]["taints"].append(added)
    world.api.put(kinds.NODE, node)

    await world.lifecycle(CLAIM)

    stored = world.api.read(kinds.NODE, "node-1")
    assert stored["spec"]["taints"] == [added, {"key": "gpu", "effect": "NoSchedule"}, startup]
    assert stored["metadata"]["labels"][labels.REGISTERED] == "true"
    assert stored["metadata"]["labels"][labels.CAPACITY_TYPE] == "on-demand"
    assert stored["metadata"]["finalizers"] == [labels.TERMINATION_FINALIZER]
    assert stored["metadata"]["ownerReferences"][0]["name"] == CLAIM
    assert world.claim()["status"]["nodeName"] == "node-1"
    assert world.condition("Initialized") == ("Unknown", "StartupTaintsExist")


async def test_taints_are_not_synced_when_the_node_says_so(world: World) -> None:
    provider_id = await world.launched()
    node = a_node("node-1", provider_id)
    node["metadata"]["labels"][labels.DO_NOT_SYNC_TAINTS] = "true"
    world.api.put(kinds.NODE, node)

    await world.lifecycle(CLAIM)

    assert world.api.read(kinds.NODE, "node-1")["spec"]["taints"] == []


async def test_a_node_without_the_unregistered_taint_is_reported(world: World) -> None:
    provider_id = await world.launched()
    world.api.put(kinds.NODE, a_node("node-1", provider_id, spec={"taints": []}))

    await world.lifecycle(CLAIM)

    assert "UnregisteredTaintMissing" in world.events.reasons()
    assert world.condition("Registered")[0] == "True"


async def test_two_nodes_with_one_provider_id_end_registration(world: World) -> None:
    provider_id = await world.launched()
    world.api.put(kinds.NODE, a_node("node-1", provider_id))
    world.api.put(kinds.NODE, a_node("node-2", provider_id))

    await world.lifecycle(CLAIM)

    assert world.condition("Registered") == ("False", "MultipleNodesFound")


async def test_initialization_waits_for_ready_and_requested_resources(world: World) -> None:
    world.api.remove(kinds.NODECLAIM, CLAIM)
    world.api.put(kinds.NODECLAIM, a_claim(spec={"resources": {"requests": {"nvidia.com/gpu": "1"}}}))
    provider_id = await world.launched()
    not_ready = {"conditions": [{"type": "Ready", "status": "False"}]}
    world.api.put(kinds.NODE, a_node("node-1", provider_id, status=not_ready))

    await world.lifecycle(CLAIM)
    first = world.condition("Initialized")
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    world.api.change(kinds.NODE, "node-1", ready)
    await world.lifecycle(CLAIM)
    second = world.condition("Initialized")
    world.api.change(kinds.NODE, "node-1", {"status": {"allocatable": {"nvidia.com/gpu": "1"}}})
    await world.lifecycle(CLAIM)

    assert (first[1], second[1]) == ("NodeNotReady", "ResourceNotRegistered")
    assert world.condition("Initialized") == ("True", "Initialized")
    assert world.condition("Ready") == ("True", "Ready")
    assert world.api.read(kinds.NODE, "node-1")["metadata"]["labels"][labels.INITIALIZED] == "true"


async def test_a_claim_that_does_not_launch_in_five_minutes_is_deleted(world: World) -> None:
    world.cloud.failures = [CreateFailed("Throttled", "slow") for _ in range(9)]
    with pytest.raises(LaunchFailed):
        await world.lifecycle(CLAIM)
    await world.clock.advance(301)

    await world.lifecycle(CLAIM)

    assert "deletionTimestamp" in world.claim()["metadata"]


async def test_a_claim_that_does_not_register_in_fifteen_minutes_is_deleted(world: World) -> None:
    wait = await world.lifecycle(CLAIM)
    await world.clock.advance(901)
    await world.lifecycle(CLAIM)

    assert wait.after is not None
    assert wait.after.total_seconds() == 900
    assert "deletionTimestamp" in world.claim()["metadata"]


async def test_claims_of_other_providers_are_left_alone() -> None:
    world = World()
    other = {"group": "example.com", "kind": "Other", "name": "x"}
    world.api.put(kinds.NODECLAIM, a_claim(spec={"nodeClassRef": other}))

    await world.lifecycle(CLAIM)

    assert world.cloud.creates == 0

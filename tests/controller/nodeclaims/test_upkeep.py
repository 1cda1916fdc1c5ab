"""Expiration, garbage, pod events, conditions, repair, consistency, hydration (lifecycle §9 to §13)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller.cloud.provider import CloudError, Drifted, RepairPolicy
from controller.cluster import Node
from controller.kube import Change, Key, kinds
from controller.nodeclaims.garbage import InstancesUnknown
from controller.nodeclaims.repair import breaker_is_open
from controller.scheduling import Pod
from framework.api import NODEPOOL_HASH_VERSION, labels
from framework.api.hashes import nodepool_document
from tests.controller.fakes.objects import CLASS, a_claim, a_node, a_pod
from tests.controller.fakes.world import World, ago

CLAIM, NODE = "default-abcde", "node-1"
DAEMONSET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent"}


@pytest.fixture
async def world() -> World:
    world = World()
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.initialized()
    return world


def going(world: World, name: str = CLAIM) -> bool:
    return "deletionTimestamp" in world.claim(name)["metadata"]


# expiration


async def test_a_claim_expires_at_its_age_and_not_before() -> None:
    world = World()
    world.api.put(kinds.NODECLAIM, a_claim(spec={"expireAfter": "1h"}))

    wait = await world.run("nodeclaim.expiration", CLAIM)
    before = going(world)
    await world.clock.advance(3600)
    await world.run("nodeclaim.expiration", CLAIM)

    assert (wait.after, before, going(world)) == (timedelta(hours=1), False, True)


async def test_never_means_never() -> None:
    world = World()
    old = {"creationTimestamp": "2020-01-01T00:00:00Z"}
    world.api.put(kinds.NODECLAIM, a_claim(metadata=old, spec={"expireAfter": "Never"}))

    wait = await world.run("nodeclaim.expiration", CLAIM)

    assert (wait.after, going(world)) == (None, False)


# garbage collection


async def test_a_claim_whose_instance_vanished_is_collected(world: World) -> None:
    world.cloud.instances.clear()
    world.api.change(kinds.NODE, NODE, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})

    await world.run("nodeclaim.garbagecollection")

    assert going(world)


async def test_a_ready_node_is_believed_more_than_a_list(world: World) -> None:
    world.cloud.instances.clear()

    await world.run("nodeclaim.garbagecollection")

    assert not going(world)


async def test_a_claim_that_has_not_registered_is_not_collected() -> None:
    world = World()
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.launched()
    world.cloud.instances.clear()

    await world.run("nodeclaim.garbagecollection")

    assert not going(world)


async def test_without_a_list_nothing_is_collected(world: World) -> None:
    async def unreachable() -> Any:
        raise CloudError("down")

    world.cloud.list = unreachable  # type: ignore[method-assign]

    with pytest.raises(InstancesUnknown):
        await world.run("nodeclaim.garbagecollection")

    assert not going(world)


# pod events and consolidatable


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        (None, a_pod(node=NODE), True),
        (a_pod(), a_pod(node=NODE), True),
        (a_pod(node=NODE), a_pod(node=NODE, status={"phase": "Succeeded"}), True),
        (a_pod(node=NODE), a_pod(node=NODE, metadata={"deletionTimestamp": ago(0)}), True),
        (a_pod(node=NODE), a_pod(node=NODE), False),
        (a_pod(node=NODE), None, False),
        (None, a_pod(), False),
        (
            None,
            a_pod(node=NODE, metadata={"ownerReferences": [DAEMONSET]}),
            False,
        ),
    ],
    ids=["seen bound", "bound", "ended", "terminating", "unchanged", "gone", "pending", "daemonset"],
)
def test_which_changes_of_pods_count(world: World, old: Any, new: Any, counts: bool) -> None:
    pods = [Pod.from_wire(each) if each is not None else None for each in (old, new)]

    woken = world.wakes("nodeclaim.podevents", Change(kinds.POD, *pods))

    assert woken == ([Key(name=CLAIM)] if counts else [])


async def test_a_pod_event_is_written_at_most_once_in_ten_seconds(world: World) -> None:
    await world.run("nodeclaim.podevents", CLAIM)
    first = world.claim()["status"]["lastPodEventTime"]
    await world.clock.advance(9)
    await world.run("nodeclaim.podevents", CLAIM)
    second = world.claim()["status"]["lastPodEventTime"]
    await world.clock.advance(2)
    await world.run("nodeclaim.podevents", CLAIM)

    assert first == second == "2026-01-01T12:00:00Z"
    assert world.claim()["status"]["lastPodEventTime"] == "2026-01-01T12:00:11Z"


def a_patient_pool(after: str) -> dict[str, Any]:
    return {"spec": {"disruption": {"consolidateAfter": after}}, "metadata": {"generation": 1}}


async def test_consolidatable_comes_after_quiet_and_goes_with_a_pod_event(world: World) -> None:
    world.api.change(kinds.NODEPOOL, "default", a_patient_pool("30s"))

    wait = await world.run("nodeclaim.disruption", CLAIM)
    before = world.condition("Consolidatable")
    await world.clock.advance(30)
    await world.run("nodeclaim.disruption", CLAIM)
    after = world.condition("Consolidatable")
    await world.run("nodeclaim.podevents", CLAIM)
    await world.run("nodeclaim.disruption", CLAIM)

    assert wait.after == timedelta(seconds=30)
    assert (before, after) == (("", ""), ("True", "Consolidatable"))
    assert world.condition("Consolidatable") == ("", "")


async def test_consolidatable_is_not_said_when_consolidation_is_off(world: World) -> None:
    world.api.change(kinds.NODEPOOL, "default", a_patient_pool("Never"))

    await world.run("nodeclaim.disruption", CLAIM)

    assert world.condition("Consolidatable") == ("", "")


# drift


@pytest.mark.parametrize(
    ("claim_hash", "version", "drifts"),
    [("1", "v3-py1", True), ("2", "v3-py1", False), ("1", "v2", False), (None, None, False)],
    ids=["other hash", "same hash", "other version", "no hash"],
)
async def test_a_template_that_changed_drifts_its_claims(
    claim_hash: str | None, version: str | None, drifts: bool
) -> None:
    world = World()
    own = {labels.NODEPOOL_HASH: claim_hash, labels.NODEPOOL_HASH_VERSION: version}
    annotations = {key: value for key, value in own.items() if value is not None}
    world.api.put(kinds.NODECLAIM, a_claim(metadata={"annotations": annotations}))
    pool = {labels.NODEPOOL_HASH: "2", labels.NODEPOOL_HASH_VERSION: "v3-py1"}
    world.api.change(kinds.NODEPOOL, "default", {"metadata": {"annotations": pool}})
    await world.launched()

    await world.run("nodeclaim.disruption", CLAIM)

    assert world.condition("Drifted") == (("True", "NodePoolDrifted") if drifts else ("", ""))


async def test_drift_says_which_field_changed_from_what_to_what(world: World) -> None:
    pool = world.mirror.pools["default"]
    made_from = {labels.NODEPOOL_HASH: "1", labels.NODEPOOL_HASH_DOCUMENT: nodepool_document(pool).text}
    version = {labels.NODEPOOL_HASH_VERSION: NODEPOOL_HASH_VERSION}
    world.api.change(kinds.NODECLAIM, CLAIM, {"metadata": {"annotations": made_from | version}})
    world.api.change(kinds.NODEPOOL, "default", {"spec": {"template": {"spec": {"expireAfter": "24h"}}}})
    await world.run("nodepool.hash", "default")

    await world.run("nodeclaim.disruption", CLAIM)

    assert world.message("Drifted") == "NodePool default, template: spec.expireAfter: 2592000s → 86400s"


@pytest.mark.parametrize(
    ("ignored", "drifts"), [(["Requirements"], False), (["AMI"], True)], ids=["ignored", "another ignored"]
)
async def test_what_a_scheduling_config_ignores_is_no_drift(
    world: World, ignored: list[str], drifts: bool
) -> None:
    config = {"metadata": {"name": "c"}, "spec": {"nodeClassRef": CLASS, "driftIgnore": ignored}}
    world.api.put(kinds.SCHEDULINGCONFIG, config)
    zone = {"key": labels.ZONE, "operator": "In", "values": ["eu-west-2b"]}
    template = {"spec": {"template": {"spec": {"requirements": [zone]}}}}
    world.api.change(kinds.NODEPOOL, "default", template)

    await world.run("nodeclaim.disruption", CLAIM)

    assert world.condition("Drifted") == (("True", "RequirementsDrifted") if drifts else ("", ""))


@pytest.mark.parametrize(
    ("requirement", "reason"),
    [
        ({"key": "team", "operator": "In", "values": ["x"]}, "RequirementsDrifted"),
        ({"key": "team", "operator": "NotIn", "values": ["x"]}, ""),
        ({"key": labels.ZONE, "operator": "In", "values": ["eu-west-2b"]}, "RequirementsDrifted"),
        ({"key": labels.ZONE, "operator": "In", "values": ["eu-west-2a"]}, ""),
    ],
    ids=["new label", "negative label", "zone left", "zone kept"],
)
async def test_requirements_that_the_claim_does_not_meet_drift_it(
    world: World, requirement: dict[str, Any], reason: str
) -> None:
    template = {"spec": {"template": {"spec": {"requirements": [requirement]}}}}
    world.api.change(kinds.NODEPOOL, "default", template)

    await world.run("nodeclaim.disruption", CLAIM)

    assert world.condition("Drifted")[1] == reason


async def test_the_providers_reason_comes_last_and_drift_ends_with_its_cause(world: World) -> None:
    world.cloud.drifted = Drifted(reason="AMIDrift", message="image: ami-1 → ami-2")
    await world.run("nodeclaim.disruption", CLAIM)
    drifted = world.condition("Drifted")
    world.cloud.drifted = None

    wait = await world.run("nodeclaim.disruption", CLAIM)

    assert drifted == ("True", "AMIDrift")
    assert world.condition("Drifted") == ("", "")
    assert wait.after == timedelta(minutes=5)


async def test_an_instance_type_that_is_no_longer_sold_drifts_after_an_hour(world: World) -> None:
    world.cloud.types = world.cloud.types[1:]
    await world.run("nodeclaim.disruption", CLAIM)
    early = world.condition("Drifted")
    await world.clock.advance(3601)

    await world.run("nodeclaim.disruption", CLAIM)

    assert early == ("", "")
    assert world.condition("Drifted") == ("True", "InstanceTypeNotFound")


# repair


def a_sick(node: str = NODE, seconds: float = 0) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": ago(seconds)}
    return {"status": {"conditions": [condition]}}


@pytest.fixture
async def clinic() -> World:
    world = World(repair=False)
    world.cloud.policies = (
        RepairPolicy(condition_type="Ready", status="False", toleration=timedelta(minutes=30)),
    )
    world.repair = True
    world.start()
    world.api.put(kinds.NODECLAIM, a_claim())
    await world.initialized()
    return world


async def test_a_node_sick_for_too_long_is_ended_at_once(clinic: World) -> None:
    clinic.api.change(kinds.NODE, NODE, a_sick(seconds=1000))
    wait = await clinic.run("node.health", NODE)
    early = going(clinic)
    await clinic.clock.advance(801)

    await clinic.run("node.health", NODE)

    assert (wait.after, early, going(clinic)) == (timedelta(seconds=800), False, True)
    stamp = clinic.claim()["metadata"]["annotations"][labels.TERMINATION_TIMESTAMP]
    assert datetime.fromisoformat(stamp) == datetime(2026, 1, 1, 12, 13, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("total", "sick", "is_open"),
    [(3, 1, False), (3, 2, True), (10, 2, False), (10, 3, True), (11, 3, False), (1, 1, False)],
)
def test_the_breaker_opens_over_a_fifth_rounded_up(total: int, sick: int, is_open: bool) -> None:
    policies = (RepairPolicy(condition_type="Ready", status="False", toleration=timedelta()),)
    nodes = [Node.from_wire(a_node(f"n{i}") | (a_sick() if i < sick else {})) for i in range(total)]

    assert breaker_is_open(nodes, policies) is is_open


# consistency and hydration


async def test_a_node_that_lacks_much_of_what_was_promised_is_reported() -> None:
    world = World()
    world.api.put(kinds.NODECLAIM, a_claim(spec={"resources": {"requests": {"memory": "1Gi"}}}))
    await world.initialized()
    world.api.change(kinds.NODE, NODE, {"status": {"capacity": {"memory": "7Gi"}}})

    await world.run("nodeclaim.consistency", CLAIM)

    assert world.condition("ConsistentStateFound") == ("False", "ConsistencyCheckFailed")
    assert "FailedConsistencyCheck" in world.events.reasons()


async def test_objects_of_older_versions_get_their_class_label() -> None:
    world = World()
    world.api.put(kinds.NODECLAIM, a_claim(metadata={"labels": {labels.NODEPOOL: "default"}}))
    provider_id = await world.launched()
    world.api.put(kinds.NODE, a_node(NODE, provider_id, metadata={"labels": {}}))

    await world.run("nodeclaim.hydration", CLAIM)
    await world.run("node.hydration", NODE)

    assert world.claim()["metadata"]["labels"][labels.EC2NODECLASS] == "default"
    assert world.api.read(kinds.NODE, NODE)["metadata"]["labels"][labels.EC2NODECLASS] == "default"


async def test_a_pool_that_changes_wakes_its_claims_and_a_count_does_not(world: World) -> None:
    old = world.mirror.pools["default"]
    world.api.change(kinds.NODEPOOL, "default", {"status": {"nodes": 7}})
    counted = world.mirror.pools["default"]
    world.api.change(kinds.NODEPOOL, "default", {"metadata": {"generation": 2}})

    quiet = world.wakes("nodeclaim.disruption", Change(kinds.NODEPOOL, old, counted))
    loud = world.wakes("nodeclaim.disruption", Change(kinds.NODEPOOL, counted, world.mirror.pools["default"]))

    assert (quiet, loud) == ([], [Key(name=CLAIM)])

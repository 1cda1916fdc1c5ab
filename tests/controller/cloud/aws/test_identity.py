"""Profiles, tags and permissions of a node class (spec aws/docs-catalogue, G)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cloud.aws.errors import AwsError
from controller.kube import kinds
from framework.api import labels
from tests.controller.cloud.aws.builders import a_claim
from tests.controller.cloud.aws.scene import Scene
from tests.controller.fakes.aws import request_tags

ON_DEMAND = (labels.CAPACITY_TYPE, ["on-demand"])
HOUR = 3600


def verdict(scene: Scene) -> tuple[str, str, str]:
    """Return status, reason and message of ValidationSucceeded."""
    found = scene.world.mirror.ec2nodeclass("default")
    assert found is not None
    (each,) = [each for each in found.status.conditions if each.type == "ValidationSucceeded"]
    return each.status.value, each.reason, each.message


async def test_a_made_profile_carries_role_path_and_tags_and_goes_with_its_class() -> None:
    scene = Scene()
    found = await scene.resolve(role="team/node", tags={"team": "blue"})
    name = found.status.instance_profile

    ((_, path, tags),) = scene.account.asked("CreateInstanceProfile")
    assert name is not None
    assert scene.account.profiles[name].roles == ("node",)
    assert path == f"/karpenter/eu-west-2/demo/{found.metadata.uid}/"
    assert tags == {
        "team": "blue",
        "kubernetes.io/cluster/demo": "owned",
        "eks:eks-cluster-name": "demo",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "topology.kubernetes.io/region": "eu-west-2",
    }
    await scene.world.api.delete(kinds.EC2NODECLASS, "default")
    await scene.reconcile("nodeclass", "default")
    assert scene.account.profiles == {}


async def test_a_replaced_profile_goes_an_hour_after_its_last_node() -> None:
    scene = Scene()
    old = (await scene.resolve()).status.instance_profile
    annotations = {labels.INSTANCE_PROFILE_NAME: old}
    scene.world.api.put(
        kinds.NODECLAIM,
        {"metadata": {"name": "web-1", "annotations": annotations}, "spec": {"requirements": []}},
    )
    scene.world.api.change(kinds.EC2NODECLASS, "default", {"spec": {"role": "other"}})
    new = (await scene.resolve()).status.instance_profile

    there = []
    for step in ("at once", "with a node", "without a node"):
        if step != "at once":
            await scene.clock.advance(HOUR + 1)
        if step == "without a node":
            scene.world.api.remove(kinds.NODECLAIM, "web-1")
        await scene.reconcile("instanceprofile.garbagecollection")
        there.append(old in scene.account.profiles)

    assert old != new
    assert there == [True, True, False]
    assert new in scene.account.profiles


async def test_a_given_profile_is_used_and_left_alone() -> None:
    scene = Scene()
    found = await scene.resolve(role=None, instanceProfile="given")

    launch = await scene.launch(a_claim("web-1", ON_DEMAND))
    await scene.world.api.delete(kinds.EC2NODECLASS, "default")
    await scene.reconcile("nodeclass", "default")

    names = {name for name, _ in scene.account.calls}
    assert found.status.instance_profile == "given"
    assert launch.templates[0]["IamInstanceProfile"] == {"Name": "given"}
    assert not names & {"CreateInstanceProfile", "DeleteInstanceProfile"}


async def test_own_tags_are_on_everything_and_a_name_of_the_users_stays() -> None:
    scene = Scene()
    await scene.resolve(tags={"team": "blue", "Name": "mine"})

    launch = await scene.launch(a_claim("web-1", (labels.CAPACITY_TYPE, ["spot"])))
    for template in scene.account.template_data.values():
        assert request_tags(template, "launch-template")["team"] == "blue"
    for kind in ("fleet", "instance", "volume"):
        assert request_tags(launch.fleet, kind).items() >= {"team": "blue", "Name": "mine"}.items()
    for data in launch.templates:
        for kind in ("network-interface", "spot-instances-request"):
            assert request_tags(data, kind)["team"] == "blue"

    status = {"providerID": launch.instance.provider_id, "nodeName": "ip-10-0-0-1"}
    scene.world.api.put(
        kinds.NODECLAIM,
        {
            "metadata": {"name": "web-1", "labels": dict(launch.instance.labels)},
            "spec": {
                "requirements": [],
                "nodeClassRef": {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"},
            },
            "status": status,
        },
    )
    await scene.reconcile("nodeclaim.tagging", "web-1")
    ((_, late),) = scene.account.asked("CreateTags")
    assert late == {labels.NODECLAIM_TAG: "web-1"}


DENIED = {"ec2:CreateFleet": ["aws:RequestTag/no-such-tag"]}


async def test_a_missing_right_is_found_again_within_half_an_hour_of_being_granted() -> None:
    scene = Scene()
    scene.account.tags_demanded = DENIED
    await scene.resolve()
    before = verdict(scene)
    scene.account.tags_demanded = {}

    await scene.clock.advance(29 * 60)
    await scene.reconcile("nodeclass", "default")
    meanwhile = verdict(scene)[0]
    await scene.clock.advance(61)
    await scene.reconcile("nodeclass", "default")

    assert before[:2] == ("False", "CreateFleetAuthCheckFailed")
    assert "AllowScopedEC2InstanceActionsWithTags" in before[2]
    assert (meanwhile, verdict(scene)[0]) == ("False", "True")


@pytest.mark.parametrize(
    "change", [{"metadata": {"annotations": {"ask": "again"}}}, {"spec": {"detailedMonitoring": True}}]
)
async def test_any_change_of_the_class_asks_for_its_rights_at_once(change: dict[str, Any]) -> None:
    scene = Scene()
    scene.account.tags_demanded = DENIED
    await scene.resolve()
    scene.account.tags_demanded = {}

    scene.world.api.change(kinds.EC2NODECLASS, "default", change)
    await scene.reconcile("nodeclass", "default")

    assert verdict(scene)[0] == "True"


async def test_without_dry_runs_nothing_is_asked() -> None:
    scene = Scene(disable_dry_run=True)
    scene.account.tags_demanded = DENIED
    await scene.resolve()

    assert verdict(scene)[0] == "True"
    assert scene.account.asked("CreateFleet/dry") == []
    assert scene.account.asked("CreateLaunchTemplate") == []


async def test_a_role_that_is_missing_launches_nothing_until_it_is_there() -> None:
    scene = Scene()
    scene.account.roles = frozenset()
    with pytest.raises(AwsError):
        await scene.resolve(role="nobody")
    found = scene.world.mirror.ec2nodeclass("default")
    assert found is not None
    (each,) = [each for each in found.status.conditions if each.type == "InstanceProfileReady"]
    scene.account.roles = frozenset({"nobody"})
    await scene.clock.advance(61)
    await scene.reconcile("nodeclass", "default")

    assert (each.status.value, each.reason) == ("False", "RoleNotFound")
    assert "spec.role" in each.message
    assert verdict(scene)[0] == "True"

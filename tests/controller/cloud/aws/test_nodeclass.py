"""What an EC2NodeClass resolves to on the local AWS, and what it says when it cannot."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from controller.cloud import NodeClassNotReady
from controller.cloud.aws.errors import AwsError
from controller.kube import kinds
from framework.api import EC2NODECLASS_HASH_VERSION, labels
from sandbox.aws.faults import Fault
from tests.controller.cloud.aws.builders import CLUSTER, REGION, claim_wire
from tests.controller.cloud.aws.conftest import TRUST, World

pytestmark = pytest.mark.sandbox

ON_DEMAND = (labels.CAPACITY_TYPE, ["on-demand"])


def condition(node_class: Any, type: str) -> tuple[str, str, str]:
    (found,) = [each for each in node_class.status.conditions if each.type == type]
    return found.status.value, found.reason, found.message


async def test_a_resolved_class_has_everything_a_launch_needs(world: World) -> None:
    found = await world.resolve()

    status = found.status
    assert labels.NODECLASS_FINALIZER in found.metadata.finalizers
    assert found.metadata.annotations[labels.NODECLASS_HASH_VERSION] == EC2NODECLASS_HASH_VERSION
    assert sorted(subnet.zone for subnet in status.subnets) == [f"{REGION}{zone}" for zone in "abc"]
    assert all(subnet.zone_id for subnet in status.subnets)
    assert [group.name for group in status.security_groups] == ["nodes"]
    profile = boto3.client("iam").get_instance_profile(InstanceProfileName=status.instance_profile)
    assert profile["InstanceProfile"]["Path"] == f"/karpenter/{REGION}/{CLUSTER}/{found.metadata.uid}/"
    assert [role["RoleName"] for role in profile["InstanceProfile"]["Roles"]] == ["node"]
    assert condition(found, "Ready") == ("True", "Ready", "")


async def test_resolving_twice_changes_nothing(world: World) -> None:
    first = await world.resolve()

    await world.reconcile("nodeclass", "default")
    await world.reconcile("nodeclass.hash", "default")

    assert world.api.node_class() == first
    profiles = boto3.client("iam").list_instance_profiles(PathPrefix="/karpenter/")
    assert len(profiles["InstanceProfiles"]) == 1


@pytest.mark.parametrize(
    ("spec", "type", "reason", "words"),
    [
        (
            {"subnetSelectorTerms": [{"tags": {"no": "such"}}]},
            "SubnetsReady",
            "SubnetsNotFound",
            "spec.subnetSelectorTerms",
        ),
        (
            {"securityGroupSelectorTerms": [{"name": "nobody"}]},
            "SecurityGroupsReady",
            "SecurityGroupsNotFound",
            "spec.securityGroupSelectorTerms",
        ),
        (
            {"amiFamily": "AL2023", "amiSelectorTerms": [{"name": "no-such-image"}]},
            "AMIsReady",
            "AMINotFound",
            "spec.amiSelectorTerms",
        ),
        (
            {"amiSelectorTerms": [{"alias": "al2@latest"}]},
            "AMIsReady",
            "UnsupportedAlias",
            "use al2023 or bottlerocket",
        ),
        (
            {"tags": {"kubernetes.io/cluster/x": "y"}},
            "ValidationSucceeded",
            "TagValidationFailed",
            "remove it",
        ),
        (
            {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}], "userData": "no toml"},
            "ValidationSucceeded",
            "UserDataInvalid",
            "spec.userData",
        ),
    ],
    ids=["subnets", "groups", "images", "alias", "tags", "user data"],
)
async def test_wrong_input_is_named_with_its_remedy_and_launches_nothing(
    world: World, spec: dict[str, Any], type: str, reason: str, words: str
) -> None:
    found = await world.resolve(**spec)

    status, why, message = condition(found, type)
    assert (status, why) == ("False", reason)
    assert words in message
    with pytest.raises(NodeClassNotReady):
        await world.operator.provider.create(world.claim(claim_wire("web-1", ON_DEMAND)))
    assert boto3.client("ec2").describe_instances()["Reservations"] == []


async def test_a_role_that_does_not_exist_is_named(world: World) -> None:
    with pytest.raises(AwsError):
        await world.resolve(role="nobody")

    status, reason, message = condition(world.api.node_class(), "InstanceProfileReady")
    assert (status, reason) == ("False", "RoleNotFound")
    assert "spec.role: the role 'nobody' does not exist" in message
    assert boto3.client("iam").list_instance_profiles()["InstanceProfiles"] == []


async def test_a_pinned_version_that_does_not_exist_stays_unknown_and_says_why(world: World) -> None:
    with pytest.raises(AwsError):
        await world.resolve(amiSelectorTerms=[{"alias": "al2023@v19990101"}])

    status, reason, message = condition(world.api.node_class(), "AMIsReady")
    assert (status, reason) == ("Unknown", "AliasNotFound")
    assert "al2023@v19990101" in message
    assert condition(world.api.node_class(), "Ready")[0] == "Unknown"


async def test_subnets_of_another_network_are_left_out_with_a_warning(world: World) -> None:
    ec2 = boto3.client("ec2")
    other = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    tags = [{"Key": "karpenter.sh/discovery", "Value": CLUSTER}]
    stranger = ec2.create_subnet(
        VpcId=other,
        CidrBlock="10.9.0.0/24",
        TagSpecifications=[{"ResourceType": "subnet", "Tags": tags}],
    )["Subnet"]["SubnetId"]

    found = await world.resolve()

    assert stranger not in {subnet.id for subnet in found.status.subnets}
    assert condition(found, "Ready")[0] == "True"
    (warning,) = [event for event in world.recorder.events if event.reason == "SubnetsInOtherVPC"]
    assert stranger in warning.message
    assert other in warning.message


@pytest.mark.parametrize("action", ["CreateLaunchTemplate", "CreateFleet", "RunInstances"])
async def test_a_missing_permission_is_found_before_any_launch(world: World, action: str) -> None:
    world.control.add_fault(Fault(service="ec2", action=action, code="UnauthorizedOperation", status=403))

    found = await world.resolve()

    status, reason, message = condition(found, "ValidationSucceeded")
    assert (status, reason) == ("False", f"{action}AuthCheckFailed")
    assert f"may not call ec2:{action}" in message


async def test_a_deleted_class_waits_for_its_claims_and_leaves_nothing_behind(world: World) -> None:
    await world.resolve()
    world.claim(claim_wire("web-1", ON_DEMAND))
    await world.api.delete(kinds.EC2NODECLASS, "default")

    await world.reconcile("nodeclass", "default")
    waiting = world.api.node_class()
    await world.api.delete(kinds.NODECLAIM, "web-1")
    await world.reconcile("nodeclass", "default")

    assert labels.NODECLASS_FINALIZER in waiting.metadata.finalizers
    assert [e.reason for e in world.recorder.events] == ["WaitingOnNodeClaimTermination"]
    assert world.api.node_class() is None
    assert boto3.client("iam").list_instance_profiles(PathPrefix="/karpenter/")["InstanceProfiles"] == []
    assert boto3.client("ec2").describe_launch_templates()["LaunchTemplates"] == []


async def test_a_changed_role_gets_a_new_profile_and_the_old_one_is_kept_for_its_nodes(world: World) -> None:
    before = await world.resolve()
    boto3.client("iam").create_role(RoleName="other", AssumeRolePolicyDocument=TRUST)

    await world.api.patch(kinds.EC2NODECLASS, "default", {"spec": {"role": "team/other"}})
    await world.reconcile("nodeclass", "default")
    await world.reconcile("instanceprofile.garbagecollection")

    after = world.api.node_class()
    assert after.status.instance_profile != before.status.instance_profile
    names = [
        item["InstanceProfileName"]
        for item in boto3.client("iam").list_instance_profiles(PathPrefix="/karpenter/")["InstanceProfiles"]
    ]
    assert sorted(names) == sorted([before.status.instance_profile, after.status.instance_profile])

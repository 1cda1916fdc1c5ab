"""A class that cannot work says which field is wrong and what to do, and nothing is launched from it."""

from __future__ import annotations

import contextlib
from typing import Any

import attrs
import pytest

from controller.cloud import CreateFailed, NodeClassNotReady
from controller.cloud.aws.errors import AwsError
from framework.api import labels
from tests.controller.cloud.aws.builders import a_claim
from tests.controller.cloud.aws.scene import Scene

ON_DEMAND = (labels.CAPACITY_TYPE, ["on-demand"])


def no_home(scene: Scene) -> None:
    """Let EKS not tell the cluster's network, and put one of the subnets into another."""
    scene.account.vpc = None
    record, tags = scene.account.subnets[0]
    scene.account.subnets[0] = (attrs.evolve(record, vpc="vpc-2"), tags)


def all_abroad(scene: Scene) -> None:
    """Put every subnet into another network than the cluster's."""
    scene.account.subnets = [(attrs.evolve(each, vpc="vpc-2"), tags) for each, tags in scene.account.subnets]


def groups_abroad(scene: Scene) -> None:
    """Put the security group into another network than the cluster's."""
    scene.account.groups = [(attrs.evolve(each, vpc="vpc-2"), tags) for each, tags in scene.account.groups]


def no_roles(scene: Scene) -> None:
    scene.account.roles = frozenset()


def no_images(scene: Scene) -> None:
    scene.account.has_aliases = False


def nothing(scene: Scene) -> None:
    """Leave the account as it is."""


@pytest.mark.parametrize(
    ("spec", "arrange", "type", "reason", "words"),
    [
        (
            {"role": "nobody"},
            no_roles,
            "InstanceProfileReady",
            "RoleNotFound",
            ("spec.role", "'nobody'", "create it"),
        ),
        (
            {"amiSelectorTerms": [{"alias": "al2023@v1"}]},
            no_images,
            "AMIsReady",
            "AliasNotFound",
            ("spec.amiSelectorTerms", "al2023@v1", "1.34", "use @latest"),
        ),
        (
            {"amiSelectorTerms": [{"alias": "windows2025@latest"}]},
            nothing,
            "AMIsReady",
            "UnsupportedAlias",
            ("spec.amiSelectorTerms", "1.35", "use windows2022"),
        ),
        (
            {"subnetSelectorTerms": [{"id": "subnet-0"}]},
            nothing,
            "SubnetsReady",
            "SubnetsNotFound",
            ("spec.subnetSelectorTerms", "check ids and tags"),
        ),
        (
            {"securityGroupSelectorTerms": [{"id": "sg-0"}]},
            nothing,
            "SecurityGroupsReady",
            "SecurityGroupsNotFound",
            ("spec.securityGroupSelectorTerms", "check ids, names and tags"),
        ),
        (
            {},
            no_home,
            "SubnetsReady",
            "SubnetsInSeveralVPCs",
            ("spec.subnetSelectorTerms", "vpc-1, vpc-2", "select those of the cluster"),
        ),
        ({}, all_abroad, "SubnetsReady", "SubnetsNotFound", ("spec.subnetSelectorTerms", "cluster's VPC")),
        (
            {},
            groups_abroad,
            "SecurityGroupsReady",
            "SecurityGroupsNotFound",
            ("spec.securityGroupSelectorTerms", "check"),
        ),
    ],
    ids=["role", "alias", "version", "no subnet", "no group", "two VPCs", "subnets abroad", "groups abroad"],
)
async def test_the_condition_names_the_field_and_the_remedy_and_nothing_is_launched(
    spec: dict[str, Any], arrange: Any, type: str, reason: str, words: tuple[str, ...]
) -> None:
    scene = Scene()
    arrange(scene)

    with contextlib.suppress(AwsError):
        await scene.resolve(**spec)
    with pytest.raises((NodeClassNotReady, CreateFailed)):
        await scene.launch(a_claim("web-1", ON_DEMAND))

    node_class = scene.world.mirror.ec2nodeclass("default")
    assert node_class is not None
    (found,) = [each for each in node_class.status.conditions if each.type == type]
    (ready,) = [each for each in node_class.status.conditions if each.type == "Ready"]
    assert found.status.value != "True"
    assert found.reason == reason
    assert [word for word in words if word not in found.message] == [], found.message
    assert ready.status.value != "True"
    assert scene.account.asked("CreateFleet") == []
    assert scene.account.instances == {}

"""What a teardown takes for the cluster's own in an account that holds more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from framework.teardown import Leftover
from framework.teardown.account import AwsAccount

pytestmark = pytest.mark.sandbox  # the simulator takes seconds to load

REGION = "eu-west-2"
OURS = {
    "kubernetes.io/cluster/demo": "owned",
    "karpenter.sh/nodepool": "web",
    "karpenter.sh/nodeclaim": "web-1",
}
OTHERS = {**OURS, "kubernetes.io/cluster/demo": "shared"}


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsAccount]:
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(key, "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield AwsAccount.connect(region=REGION, cluster="demo", profile=None)


def _tags(kind: str, tags: dict[str, str]) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]


def test_instances_and_templates_are_told_by_the_clusters_tag(account: AwsAccount) -> None:
    ec2 = boto3.client("ec2", region_name=REGION)
    template = {"InstanceType": "t3.medium"}
    ids, templates = [], []
    for name, tags in (("ours", OURS), ("others", OTHERS)):
        run = ec2.run_instances(
            ImageId="ami-12c6146b", MinCount=1, MaxCount=1, TagSpecifications=_tags("instance", tags)
        )
        made = ec2.create_launch_template(
            LaunchTemplateName=name,
            LaunchTemplateData=template,
            TagSpecifications=_tags("launch-template", tags),
        )
        ids.append(run["Instances"][0]["InstanceId"])
        templates.append(made["LaunchTemplate"]["LaunchTemplateId"])

    assert [(i.id, i.claim) for i in account.instances()] == [(ids[0], "web-1")]
    assert account.leftovers() == (Leftover(kind="launch template", id=templates[0]),)


def test_only_profiles_under_the_clusters_path_go(account: AwsAccount) -> None:
    iam = boto3.client("iam", region_name=REGION)
    iam.create_role(RoleName="nodes", AssumeRolePolicyDocument="{}")
    for name, path in (("ours", f"/karpenter/{REGION}/demo/uid/"), ("eks-1", "/")):
        iam.create_instance_profile(InstanceProfileName=name, Path=path)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName="nodes")

    for leftover in account.leftovers():
        account.remove(leftover)

    left = iam.list_instance_profiles()["InstanceProfiles"]
    assert [profile["InstanceProfileName"] for profile in left] == ["eks-1"]
    account.remove(Leftover(kind="instance profile", id="ours"))


def test_a_cluster_that_eks_does_not_know_is_gone(account: AwsAccount) -> None:
    assert not account.cluster_exists()
    assert account.node_groups() == frozenset()
    assert account.interfaces(frozenset()) == ()

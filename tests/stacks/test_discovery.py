"""Which security groups nodes get, judged at preview."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest

from framework.components.pools import Manifest
from sandbox.aws import AwsProcess
from sandbox.pulumi_aws.engine import Action, Engine, PulumiFailed
from stacks.programs.discovery import TaggedGroup, WrongGroups, check_discovery, node_groups

DISCOVERED = {"karpenter.sh/discovery": "demo"}


def test_the_one_tagged_group_is_the_nodes() -> None:
    groups = [TaggedGroup(id="sg-2", tags={}), TaggedGroup(id="sg-1", tags=DISCOVERED)]

    assert node_groups(groups, "demo") == ("sg-1",)


def test_several_tagged_groups_are_all_named() -> None:
    groups = [TaggedGroup(id=f"sg-{number}", tags=DISCOVERED) for number in (2, 1)]

    with pytest.raises(WrongGroups, match="discovery=demo is on sg-1, sg-2; tag exactly one"):
        node_groups(groups, "demo")


def test_a_tag_on_no_group_or_of_another_cluster_is_said() -> None:
    with pytest.raises(WrongGroups, match="is on no security group"):
        node_groups([TaggedGroup(id="sg-1", tags=DISCOVERED)], "other")


@pytest.mark.sandbox
def test_a_preview_names_the_groups_that_are_tagged_in_the_account(tmp_path: Path) -> None:
    tags = [{"Key": key, "Value": value} for key, value in DISCOVERED.items()]
    terms = [{"tags": DISCOVERED}]
    manifest = Manifest(
        source="class.yaml",
        raw={
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": {"name": "default"},
            "spec": {"securityGroupSelectorTerms": terms},
        },
    )
    with AwsProcess(directory=tmp_path / "aws") as process:
        key = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
        ec2 = boto3.client("ec2", region_name="eu-west-2", endpoint_url=process.endpoint, **key)
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        made = [
            ec2.create_security_group(
                GroupName=name,
                Description=name,
                VpcId=vpc,
                TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
            )["GroupId"]
            for name in ("first", "second")
        ]
        engine = Engine(root=tmp_path / "pulumi", aws_endpoint=process.endpoint, region="eu-west-2")

        with pytest.raises(PulumiFailed, match=", ".join(sorted(made))):
            engine.run(
                Action.PREVIEW,
                lambda: check_discovery([manifest], "demo"),
                project="discovery",
                stack="test",
                config={"aws:region": "eu-west-2"},
            )

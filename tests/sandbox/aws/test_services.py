"""EKS, capacity, templates, IAM, faults and control: the answers where stock moto has none or a wrong one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import moto
import pytest
from botocore.exceptions import ClientError

from sandbox.aws.control import ControlError
from sandbox.aws.faults import Fault

pytestmark = pytest.mark.sandbox


@pytest.fixture
def cluster(aws: Any, platform: Any) -> dict[str, Any]:
    answer = aws.client("eks").create_cluster(
        name="demo",
        roleArn=platform.role_arn,
        resourcesVpcConfig={"subnetIds": list(platform.subnets.values())},
        accessConfig={"authenticationMode": "API"},
    )
    return answer["cluster"]


def test_the_overrides_were_written_against_this_moto() -> None:
    assert moto.__version__ == "5.2.5"


def test_a_cluster_has_a_group_in_its_vpc_and_shows_the_api_server(
    aws: Any, platform: Any, cluster: dict[str, Any]
) -> None:
    group_id = cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
    [group] = aws.client("ec2").describe_security_groups(GroupIds=[group_id])["SecurityGroups"]
    aws.control.set_cluster("https://127.0.0.1:6443", "Zm9v")

    shown = aws.client("eks").describe_cluster(name="demo")["cluster"]

    assert group["VpcId"] == cluster["resourcesVpcConfig"]["vpcId"] == platform.vpc
    assert (shown["endpoint"], shown["certificateAuthority"]) == ("https://127.0.0.1:6443", {"data": "Zm9v"})


def test_a_node_group_makes_instances_and_ends_them(aws: Any, platform: Any, cluster: dict[str, Any]) -> None:
    eks = aws.client("eks")
    eks.create_nodegroup(
        clusterName="demo",
        nodegroupName="boot",
        subnets=list(platform.subnets.values()),
        nodeRole=platform.role_arn,
        scalingConfig={"minSize": 1, "maxSize": 2, "desiredSize": 2},
    )
    alive = aws.control.inventory()
    with pytest.raises(ClientError, match="ResourceInUseException"):
        eks.delete_cluster(name="demo")
    eks.delete_nodegroup(clusterName="demo", nodegroupName="boot")
    deleting = eks.describe_nodegroup(clusterName="demo", nodegroupName="boot")["nodegroup"]["status"]
    aws.clock.advance(2)
    eks.delete_cluster(name="demo")
    left = aws.control.inventory()

    assert len(alive["instances"]) == 2
    assert f"demo {platform.role_arn}" in alive["eks-access-entries"]
    assert deleting == "DELETING"
    kinds = (
        "instances",
        "network-interfaces",
        "volumes",
        "eks-clusters",
        "eks-nodegroups",
        "eks-access-entries",
    )
    assert {kind: left[kind] for kind in kinds} == {kind: [] for kind in kinds}


def test_access_entries_need_a_principal_that_exists(aws: Any, cluster: dict[str, Any]) -> None:
    with pytest.raises(ClientError, match="invalid principal"):
        aws.client("eks").create_access_entry(
            clusterName="demo", principalArn="arn:aws:iam::123456789012:role/gone", type="EC2_LINUX"
        )


def test_one_pod_identity_per_service_account(aws: Any, platform: Any, cluster: dict[str, Any]) -> None:
    request = {
        "clusterName": "demo",
        "namespace": "kube-system",
        "serviceAccount": "karpenter",
        "roleArn": platform.role_arn,
    }
    aws.client("eks").create_pod_identity_association(**request)

    with pytest.raises(ClientError, match="ResourceInUseException"):
        aws.client("eks").create_pod_identity_association(**request)


def test_an_operation_that_is_not_modelled_is_named(aws: Any, cluster: dict[str, Any]) -> None:
    with pytest.raises(ClientError, match=r"NotModelled.*eks ListInsights"):
        aws.client("eks").list_insights(clusterName="demo")
    with pytest.raises(ClientError, match=r"NotModelled.*DescribeInstanceTopology"):
        aws.client("ec2").describe_instance_topology()


def test_a_targeted_reservation_gives_what_it_holds(
    aws: Any, platform: Any, template: Callable[..., str], fleet: Callable[..., dict[str, Any]]
) -> None:
    reserved = aws.client("ec2").create_capacity_reservation(
        InstanceType="m5.large",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone="eu-west-2a",
        InstanceCount=1,
        InstanceMatchCriteria="targeted",
    )["CapacityReservation"]["CapacityReservationId"]
    name = template(
        CapacityReservationSpecification={
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationId": reserved},
        }
    )

    answer = fleet(platform.overrides(("m5.large", "a")), count=2, name=name)

    [found] = aws.client("ec2").describe_capacity_reservations()["CapacityReservations"]
    assert [len(group["InstanceIds"]) for group in answer["Instances"]] == [1]
    assert [error["ErrorCode"] for error in answer["Errors"]] == ["ReservationCapacityExceeded"]
    assert found["AvailableInstanceCount"] == 0


def test_launch_templates_come_in_pages_and_an_unknown_one_is_not_found(
    aws: Any, template: Callable[..., str]
) -> None:
    ec2 = aws.client("ec2")
    for place in range(3):
        template(f"template-{place}")
    pages = ec2.get_paginator("describe_launch_templates").paginate(PaginationConfig={"PageSize": 2})

    assert [len(page["LaunchTemplates"]) for page in pages] == [2, 1]
    with pytest.raises(ClientError, match=r"InvalidLaunchTemplateName\.NotFoundException"):
        ec2.delete_launch_template(LaunchTemplateName="missing")


def test_a_subnet_and_a_group_in_use_stay(aws: Any, platform: Any, cluster: dict[str, Any]) -> None:
    with pytest.raises(ClientError, match="DependencyViolation"):
        aws.client("ec2").delete_subnet(SubnetId=platform.subnets["a"])
    with pytest.raises(ClientError, match="DependencyViolation"):
        aws.client("ec2").delete_security_group(
            GroupId=cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
        )


def test_a_group_that_another_groups_rule_names_stays_until_the_rule_is_gone(aws: Any) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    named, naming = (
        ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc)["GroupId"] for name in "ab"
    )
    rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": named}]}]
    ec2.authorize_security_group_ingress(GroupId=naming, IpPermissions=rule)

    with pytest.raises(ClientError, match="DependencyViolation"):
        ec2.delete_security_group(GroupId=named)
    ec2.revoke_security_group_ingress(GroupId=naming, IpPermissions=rule)
    ec2.delete_security_group(GroupId=named)

    left = {group["GroupId"] for group in ec2.describe_security_groups()["SecurityGroups"]}
    assert named not in left
    assert naming in left


def test_the_spot_role_has_its_name_and_is_made_once(aws: Any) -> None:
    iam = aws.client("iam")
    role = iam.create_service_linked_role(AWSServiceName="spot.amazonaws.com")["Role"]

    assert role["Arn"].endswith("/spot.amazonaws.com/AWSServiceRoleForEC2Spot")
    with pytest.raises(ClientError, match="InvalidInput"):
        iam.create_service_linked_role(AWSServiceName="spot.amazonaws.com")


def test_a_trust_document_must_be_a_policy(aws: Any) -> None:
    with pytest.raises(ClientError, match="MalformedPolicyDocument"):
        aws.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="not json")


def test_a_fault_hits_as_often_as_it_says_and_is_recorded(aws: Any) -> None:
    aws.control.add_fault(Fault(service="ec2", action="DescribeVpcs", code="RequestLimitExceeded", count=1))

    with pytest.raises(ClientError, match="RequestLimitExceeded"):
        aws.client("ec2").describe_vpcs()
    aws.client("ec2").describe_vpcs()

    log = aws.control.requests(action="DescribeVpcs")
    assert [(r.status, r.error) for r in log] == [(503, "RequestLimitExceeded"), (200, None)]


def test_an_interruption_warns_through_the_accounts_rule_and_ends_the_instance(
    aws: Any, platform: Any, fleet: Callable[..., dict[str, Any]]
) -> None:
    sqs, events = aws.client("sqs"), aws.client("events")
    url = sqs.create_queue(QueueName="q")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    warning = "EC2 Spot Instance Interruption Warning"
    events.put_rule(Name="r", EventPattern=json.dumps({"source": ["aws.ec2"], "detail-type": [warning]}))
    events.put_targets(Rule="r", Targets=[{"Id": "queue", "Arn": arn}])
    answer = fleet(platform.overrides(("m5.large", "a")), capacity_type="spot")
    [instance_id] = answer["Instances"][0]["InstanceIds"]

    aws.control.interrupt([instance_id], notice_seconds=120)
    [message] = sqs.receive_message(QueueUrl=url)["Messages"]
    aws.clock.advance(123)

    found = aws.client("ec2").describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    assert json.loads(message["Body"])["detail"]["instance-id"] == instance_id
    assert found["State"]["Name"] in ("shutting-down", "terminated")


def test_a_wrong_control_request_names_the_field(aws: Any) -> None:
    with pytest.raises(ControlError, match="unknown field 'colour'"):
        aws.control._call("POST", "faults", {"colour": "red"})

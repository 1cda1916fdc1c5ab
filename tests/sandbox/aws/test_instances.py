"""Instances over time: states, filters, pages, speed (moto.md A and B, aws/launch §10)."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox.aws.faults import Shortage

pytestmark = pytest.mark.sandbox

Fleet = Callable[..., dict[str, Any]]


def ids_of(answer: dict[str, Any]) -> list[str]:
    return [i for group in answer["Instances"] for i in group["InstanceIds"]]


def states(aws: Any, **query: Any) -> list[str]:
    pages = aws.client("ec2").describe_instances(**query)["Reservations"]
    return [instance["State"]["Name"] for page in pages for instance in page["Instances"]]


def test_an_instance_is_pending_until_it_has_booted(fleet: Fleet, platform: Any, aws: Any) -> None:
    ids = ids_of(fleet(platform.overrides(("m5.large", "a"))))

    before = states(aws, InstanceIds=ids)
    aws.clock.advance(1.0)

    assert (before, states(aws, InstanceIds=ids)) == (["pending"], ["running"])


def test_the_boot_time_can_be_set(fleet: Fleet, platform: Any, aws: Any) -> None:
    aws.control.set_timings(boot_seconds=30)
    ids = ids_of(fleet(platform.overrides(("m5.large", "a"))))
    aws.clock.advance(29)
    before = states(aws, InstanceIds=ids)
    aws.clock.advance(1)
    aws.control.set_timings(boot_seconds=1)

    assert (before, states(aws, InstanceIds=ids)) == (["pending"], ["running"])


def test_a_terminated_instance_ends_gives_its_address_back_and_is_forgotten(
    fleet: Fleet, platform: Any, aws: Any
) -> None:
    ec2 = aws.client("ec2")

    def free() -> int:
        return ec2.describe_subnets(SubnetIds=[platform.subnets["a"]])["Subnets"][0][
            "AvailableIpAddressCount"
        ]

    at_first = free()
    ids = ids_of(fleet(platform.overrides(("m5.large", "a"))))
    while_alive = free()

    change = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"][0]
    shutting_down = states(aws, InstanceIds=ids)
    aws.clock.advance(2)
    terminated = states(aws, InstanceIds=ids)
    aws.clock.advance(3600)

    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("pending", "shutting-down")
    assert (shutting_down, terminated) == (["shutting-down"], ["terminated"])
    assert (while_alive, free()) == (at_first - 1, at_first)
    assert states(aws) == []
    assert aws.control.inventory()["volumes"] == []


def test_terminating_twice_keeps_the_state(fleet: Fleet, platform: Any, aws: Any) -> None:
    ec2 = aws.client("ec2")
    ids = ids_of(fleet(platform.overrides(("m5.large", "a"))))
    ec2.terminate_instances(InstanceIds=ids)
    aws.clock.advance(2)

    change = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"][0]

    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == ("terminated", "terminated")


def test_terminating_an_unknown_instance_ends_none(fleet: Fleet, platform: Any, aws: Any) -> None:
    ids = ids_of(fleet(platform.overrides(("m5.large", "a"))))

    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound.*i-0123456789abcdef0"):
        aws.client("ec2").terminate_instances(InstanceIds=[*ids, "i-0123456789abcdef0"])

    assert states(aws) == ["pending"]


def test_a_stopped_instance_stops_after_the_shutdown_time(fleet: Fleet, platform: Any, aws: Any) -> None:
    ids = ids_of(fleet(platform.overrides(("m5.large", "a"))))
    aws.clock.advance(1)
    aws.client("ec2").stop_instances(InstanceIds=ids)
    stopping = states(aws)
    aws.clock.advance(2)

    assert (stopping, states(aws)) == (["stopping"], ["stopped"])


@pytest.mark.parametrize(
    ("name", "values", "count"),
    [
        ("instance-type", ["t3.*"], 2),
        ("instance-type", ["m5.large"], 1),
        ("instance-lifecycle", ["spot"], 1),
        ("tag:karpenter.sh/nodepool", ["default"], 2),
        ("tag-key", ["karpenter.sh/*"], 2),
        ("tag:karpenter.sh/nodepool", ["other"], 0),
        ("instance-state-name", ["pending", "running"], 3),
        ("availability-zone", ["eu-west-2a"], 3),
        ("availability-zone-id", ["euw2-az2"], 3),
    ],
)
def test_filters(fleet: Fleet, platform: Any, aws: Any, name: str, values: list[str], count: int) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "karpenter.sh/nodepool", "Value": "default"}]}]
    fleet(platform.overrides(("t3.medium", "a")), count=2, TagSpecifications=tags)
    fleet(platform.overrides(("m5.large", "a")), capacity_type="spot", name="karpenter.k8s.aws/1")

    assert len(states(aws, Filters=[{"Name": name, "Values": values}])) == count


def test_an_unknown_filter_is_refused(aws: Any) -> None:
    with pytest.raises(ClientError, match=r"InvalidParameterValue.*The filter 'colour' is invalid"):
        aws.client("ec2").describe_instances(Filters=[{"Name": "colour", "Values": ["red"]}])


def test_pages_hold_every_instance_once(fleet: Fleet, platform: Any, aws: Any) -> None:
    made = ids_of(fleet(platform.overrides(("t3.medium", "a")), count=12))
    pages = aws.client("ec2").get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 5})

    found = [[r["Instances"][0]["InstanceId"] for r in page["Reservations"]] for page in pages]

    assert [len(page) for page in found] == [5, 5, 2]
    assert [i for page in found for i in page] == made


def test_ids_and_page_size_do_not_go_together(aws: Any) -> None:
    with pytest.raises(ClientError, match="InvalidParameterCombination"):
        aws.client("ec2").describe_instances(InstanceIds=["i-0123456789abcdef0"], MaxResults=5)


def test_a_tag_added_later_is_shown(fleet: Fleet, platform: Any, aws: Any) -> None:
    ec2 = aws.client("ec2")
    ids = ids_of(fleet(platform.overrides(("m5.large", "a"))))
    ec2.describe_instances(InstanceIds=ids)
    ec2.create_tags(Resources=ids, Tags=[{"Key": "Name", "Value": "node-1"}])

    shown = ec2.describe_instances(InstanceIds=ids)["Reservations"][0]["Instances"][0]

    assert {"Key": "Name", "Value": "node-1"} in shown["Tags"]


def test_run_instances_applies_the_template_and_is_idempotent(
    aws: Any, platform: Any, template: Callable[..., str]
) -> None:
    ec2 = aws.client("ec2")
    request: dict[str, Any] = {
        "LaunchTemplate": {"LaunchTemplateName": template()},
        "InstanceType": "m5.large",
        "SubnetId": platform.subnets["b"],
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": "one",
    }

    first, again = ec2.run_instances(**request), ec2.run_instances(**request)

    [instance] = first["Instances"]
    assert [i["InstanceId"] for i in again["Instances"]] == [instance["InstanceId"]]
    assert instance["SecurityGroups"][0]["GroupId"] == platform.group
    assert instance["IamInstanceProfile"]["Arn"].endswith("/node")


def test_a_dry_run_of_run_instances_checks_first(
    aws: Any, platform: Any, template: Callable[..., str]
) -> None:
    ec2, name = aws.client("ec2"), template()
    request: dict[str, Any] = {
        "LaunchTemplate": {"LaunchTemplateName": name, "Version": "$Latest"},
        "InstanceType": "m5.large",
        "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": platform.subnets["a"]}],
        "MinCount": 1,
        "MaxCount": 1,
        "DryRun": True,
    }

    with pytest.raises(ClientError, match="DryRunOperation"):
        ec2.run_instances(**request)
    with pytest.raises(ClientError, match="InvalidParameterValue.*Invalid IAM Instance Profile name"):  # noqa: RUF043
        ec2.run_instances(**request, IamInstanceProfile={"Name": "gone"})


def test_run_instances_without_capacity_fails_as_a_whole(
    aws: Any, platform: Any, template: Callable[..., str]
) -> None:
    aws.control.add_shortage(Shortage(instance_type="m5.large"))

    with pytest.raises(ClientError, match="InsufficientInstanceCapacity"):
        aws.client("ec2").run_instances(
            LaunchTemplate={"LaunchTemplateName": template()},
            InstanceType="m5.large",
            SubnetId=platform.subnets["a"],
            MinCount=1,
            MaxCount=1,
        )


def test_state_changes_reach_the_queue_through_the_accounts_rule(
    fleet: Fleet, platform: Any, aws: Any
) -> None:
    sqs, events = aws.client("sqs"), aws.client("events")
    url = sqs.create_queue(QueueName="interruptions")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"]}
    events.put_rule(Name="state", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="state", Targets=[{"Id": "queue", "Arn": arn}])
    [instance_id] = ids_of(fleet(platform.overrides(("m5.large", "a"))))
    aws.client("ec2").terminate_instances(InstanceIds=[instance_id])

    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]

    bodies = [json.loads(m["Body"]) for m in messages]
    assert [b["detail"] for b in bodies] == [
        {"instance-id": instance_id, "state": "pending"},
        {"instance-id": instance_id, "state": "shutting-down"},
    ]
    assert bodies[0]["time"] == "2026-06-01T12:00:00Z" or bodies[0]["time"].endswith("Z")


def test_describing_hundreds_of_instances_takes_the_server_a_moment(
    fleet: Fleet, platform: Any, aws: Any
) -> None:
    fleet(platform.overrides(("t3.medium", "a")), count=240)
    fleet(platform.overrides(("t3.medium", "b")), count=240, name="karpenter.k8s.aws/1")
    body = b"Action=DescribeInstances&Version=2016-11-15&MaxResults=1000"
    scope = "Credential=test/20260601/eu-west-2/ec2/aws4_request"

    def ask() -> tuple[float, bytes]:
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "wsgi.url_scheme": "http",
            "CONTENT_TYPE": "application/x-www-form-urlencoded",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0",
            "wsgi.input": io.BytesIO(body),
        }
        started = time.thread_time()
        answer = b"".join(aws.server.application(environ, lambda *_: None))
        return time.thread_time() - started, answer

    ask()
    seconds, answer = ask()

    # Stock moto: 5 s for 500, growing with the square.
    assert (answer.count(b"<instanceId>"), seconds < 0.5) == (480, True)

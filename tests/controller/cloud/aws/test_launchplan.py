"""Every request that a launch can make: valid by botocore's own model, allowed by our own policies."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import boto3
import pytest
from botocore.validate import ParamValidator

from controller.cloud.aws.fleet import request_key
from controller.cloud.aws.launchplan import LaunchInput, LaunchPlan, plan_launch
from controller.cloud.aws.validation import run_request
from framework.api import labels
from framework.iam import controller_policies
from framework.iam.evaluate import Request, allowed
from framework.iam.scope import Scope
from tests.controller.cloud.aws.builders import CLUSTER, REGION, a_claim, a_node_class
from tests.controller.cloud.aws.launches import CLUSTER_INPUT, a_launch, a_market

ON_DEMAND = (labels.CAPACITY_TYPE, ["on-demand"])
SPOT = (labels.CAPACITY_TYPE, ["spot"])
RESERVED = (labels.CAPACITY_TYPE, ["reserved"])
EFA = {"resources": {"requests": {"vpc.amazonaws.com/efa": "1"}}}
P4D = (labels.INSTANCE_TYPE, ["p4d.24xlarge"])
FULL: dict[str, Any] = {
    "associatePublicIPAddress": True,
    "ipPrefixCount": 1,
    "tags": {"team": "blue", "Name": "mine"},
    "detailedMonitoring": True,
    "context": "context",
    "instanceStorePolicy": "RAID0",
    "metadataOptions": {"httpTokens": "optional", "httpPutResponseHopLimit": 3},
    "blockDeviceMappings": [
        {
            "deviceName": "/dev/xvda",
            "rootVolume": True,
            "ebs": {
                "volumeSize": "100G",
                "volumeType": "gp3",
                "iops": 4000,
                "throughput": 200,
                "encrypted": True,
                "kmsKeyID": "alias/mine",
                "deleteOnTermination": True,
                "snapshotID": "snap-1",
                "volumeInitializationRate": 200,
            },
        }
    ],
    "userData": "#!/bin/bash\ntrue\n",
}


def reservation(kind: str = "default") -> dict[str, Any]:
    return {
        "capacityReservations": [
            {
                "availabilityZone": f"{REGION}a",
                "id": "cr-1",
                "instanceMatchCriteria": "targeted",
                "instanceType": "m5.large",
                "ownerID": "123456789012",
                "reservationType": kind,
                "state": "active",
            }
        ]
    }


def reserved_launch(kind: str) -> LaunchInput:
    market = a_market()
    market.types.reserved.ended("cr-1")
    return a_launch(a_claim("web-1", RESERVED), a_node_class(status=reservation(kind)), market=market)


LAUNCHES = {
    "on demand": lambda: a_launch(a_claim("web-1", ON_DEMAND), a_node_class()),
    "spot": lambda: a_launch(a_claim("web-1", SPOT), a_node_class()),
    "everything set": lambda: a_launch(a_claim("web-1", ON_DEMAND), a_node_class(**FULL)),
    "EFA": lambda: a_launch(a_claim("web-1", ON_DEMAND, P4D, **EFA), a_node_class()),
    "reservation": lambda: reserved_launch("default"),
    "capacity block": lambda: reserved_launch("capacity-block"),
    "IPv6": lambda: a_launch(
        a_claim("web-1", ON_DEMAND),
        a_node_class(ipPrefixCount=2),
        cluster=attrs.evolve(CLUSTER_INPUT, ipv6=True, dns_ip="fd00::a"),
    ),
    "no reserved capacity": lambda: a_launch(
        a_claim("web-1", ON_DEMAND),
        a_node_class(),
        cluster=attrs.evolve(CLUSTER_INPUT, reserved_capacity=False),
    ),
    "Bottlerocket": lambda: a_launch(
        a_claim("web-1", ON_DEMAND), a_node_class(amiSelectorTerms=[{"alias": "bottlerocket@latest"}])
    ),
    "Custom": lambda: a_launch(
        a_claim("web-1", ON_DEMAND),
        a_node_class(amiFamily="Custom", amiSelectorTerms=[{"id": "ami-1"}]),
    ),
}


@pytest.fixture(scope="module")
def model() -> Any:
    client = boto3.client("ec2", region_name=REGION, aws_access_key_id="x", aws_secret_access_key="y")
    return client.meta.service_model


def requests_of(launch: LaunchInput) -> Iterator[tuple[str, Mapping[str, Any]]]:
    plan = plan_launch(launch)
    for template in plan.templates:
        yield "CreateLaunchTemplate", template  # type: ignore[misc]  # a TypedDict is a mapping
    assert plan.fleet is not None
    yield "CreateFleet", plan.fleet  # type: ignore[misc]  # the same
    yield "RunInstances", run_request(launch, plan)  # type: ignore[misc]  # the same


@pytest.mark.parametrize("name", LAUNCHES)
def test_every_request_is_valid_by_the_service_model(name: str, model: Any) -> None:
    for operation, request in requests_of(LAUNCHES[name]()):
        report = ParamValidator().validate(request, model.operation_model(operation).input_shape)

        assert report.generate_report() == "", operation


POLICIES = controller_policies(
    Scope(
        region=REGION,
        account="123456789012",
        cluster=CLUSTER,
        node_role_arn="arn:aws:iam::123456789012:role/node",
        queue_arn=None,
    )
).values()


def tag_questions(operation: str, request: Mapping[str, Any]) -> Iterator[Request]:
    """Ask of each kind of resource that the request tags whether it may be made and tagged."""
    specifications = list(request.get("TagSpecifications", ()))
    specifications += request.get("LaunchTemplateData", {}).get("TagSpecifications", ())
    for item in specifications:
        kind = item["ResourceType"]
        arn = f"arn:aws:ec2:{REGION}:123456789012:{kind}/*"
        tags = {f"aws:RequestTag/{tag['Key']}": (tag["Value"],) for tag in item["Tags"]}
        origin = "RunInstances" if kind in ("network-interface", "spot-instances-request") else operation
        yield Request(
            action=f"ec2:{origin}" if kind != "launch-template" else "ec2:CreateLaunchTemplate",
            resource=arn,
            context=tags,
        )
        yield Request(action="ec2:CreateTags", resource=arn, context={**tags, "ec2:CreateAction": (origin,)})


@pytest.mark.parametrize("name", LAUNCHES)
def test_the_tags_of_every_request_satisfy_the_controllers_policy(name: str) -> None:
    questions = [
        question
        for operation, request in requests_of(LAUNCHES[name]())
        for question in tag_questions(operation, request)
    ]

    assert len(questions) >= 10
    assert [question for question in questions if not allowed(POLICIES, question)] == []


def test_a_request_without_the_pools_tag_would_be_denied() -> None:
    (operation, request), *_ = requests_of(LAUNCHES["on demand"]())
    questions = [
        attrs.evolve(
            question,
            context={k: v for k, v in question.context.items() if k != f"aws:RequestTag/{labels.NODEPOOL}"},
        )
        for question in tag_questions(operation, request)
    ]

    assert not any(allowed(POLICIES, question) for question in questions)


def plan(name: str) -> LaunchPlan:
    return plan_launch(LAUNCHES[name]())


def test_equal_launches_have_equal_templates_and_requests() -> None:
    one, two = plan("on demand"), plan("on demand")

    assert one == two
    assert one.fleet is not None
    assert two.fleet is not None
    assert request_key(one.fleet) == request_key(two.fleet)


def test_templates_are_told_apart_by_content() -> None:
    names = [{t["LaunchTemplateName"] for t in plan(name).templates} for name in LAUNCHES]

    assert all(name.startswith("karpenter.k8s.aws/") for group in names for name in group)
    assert not set.intersection(names[0], names[1])
    assert not set.intersection(names[0], names[2])


def test_spot_asks_for_price_and_capacity_and_tags_its_requests() -> None:
    found = plan("spot")

    assert found.fleet is not None
    assert found.fleet["SpotOptions"] == {"AllocationStrategy": "price-capacity-optimized"}
    assert found.fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "spot"
    kinds = [item["ResourceType"] for item in found.templates[0]["LaunchTemplateData"]["TagSpecifications"]]
    assert kinds == ["network-interface", "spot-instances-request"]


def test_a_reservation_is_targeted_and_open_ones_are_left_alone() -> None:
    reserved, plain = plan("reservation"), plan("on demand")

    wish = reserved.templates[0]["LaunchTemplateData"]["CapacityReservationSpecification"]
    assert wish == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": "cr-1"},
    }
    other = plain.templates[0]["LaunchTemplateData"]["CapacityReservationSpecification"]
    assert other == {"CapacityReservationPreference": "none"}


def test_a_capacity_block_has_its_market_type_and_no_strategy() -> None:
    found = plan("capacity block")

    assert found.fleet is not None
    assert found.fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "capacity-block"
    assert "OnDemandOptions" not in found.fleet
    options = found.templates[0]["LaunchTemplateData"]["InstanceMarketOptions"]
    assert options == {"MarketType": "capacity-block"}


def test_efa_gets_one_interface_per_card() -> None:
    (template,) = plan("EFA").templates

    interfaces = template["LaunchTemplateData"]["NetworkInterfaces"]
    assert [(i["NetworkCardIndex"], i["DeviceIndex"], i["InterfaceType"]) for i in interfaces] == [
        (0, 0, "efa"),
        (1, 1, "efa"),
        (2, 1, "efa"),
        (3, 1, "efa"),
    ]


def test_an_ipv6_cluster_gets_a_primary_address_and_its_prefixes() -> None:
    (template, *_) = plan("IPv6").templates

    (interface,) = template["LaunchTemplateData"]["NetworkInterfaces"]
    assert interface["PrimaryIpv6"] is True
    assert interface["Ipv6AddressCount"] == 1
    assert interface["Ipv6PrefixCount"] == 2
    assert "Ipv4PrefixCount" not in interface


def test_the_kubelet_is_given_no_label_that_admission_would_refuse() -> None:
    claim = a_claim("web-1", ON_DEMAND)
    named = {**claim.metadata.labels, "kubernetes.io/os": "linux", "node.k8s.io/x": "y", "team": "blue"}
    launch = a_launch(
        attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, labels=named)), a_node_class()
    )

    (template, *_) = plan_launch(launch).templates
    text = base64.b64decode(template["LaunchTemplateData"]["UserData"]).decode()
    assert "kubernetes.io/os" not in text
    assert "node.k8s.io" not in text
    assert "team=blue" in text
    assert "key: karpenter.sh/unregistered" in text

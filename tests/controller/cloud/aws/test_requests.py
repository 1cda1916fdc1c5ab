"""Whatever a class and a claim ask for, the requests are valid and allowed (issue 6, "Done when").

`test_launchplan` looks at chosen launches in detail; here settings are combined at random. Validity is
the word of botocore's model of the service, permission that of the generated policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import boto3
import pytest
from botocore.validate import ParamValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.cloud.aws.launchplan import LaunchInput, plan_launch
from controller.cloud.aws.tags import profile_tags
from controller.cloud.aws.validation import run_request
from framework.api import labels
from framework.iam import controller_policies
from framework.iam.evaluate import Request, allowed
from framework.iam.scope import Scope
from tests.controller.cloud.aws.builders import CLUSTER, REGION, a_claim, a_node_class
from tests.controller.cloud.aws.launches import CLUSTER_INPUT, a_launch, a_market
from tests.controller.cloud.aws.test_launchplan import FULL, reservation, tag_questions
from tests.controller.fakes.aws import request_tags

ACCOUNT = "123456789012"
POLICIES = controller_policies(
    Scope(
        region=REGION,
        account=ACCOUNT,
        cluster=CLUSTER,
        node_role_arn=f"arn:aws:iam::{ACCOUNT}:role/node",
        queue_arn=None,
    )
).values()
IMAGES = st.sampled_from(
    [
        {"amiSelectorTerms": [{"alias": "al2@latest"}]},
        {"amiSelectorTerms": [{"alias": "al2023@v20260201"}]},
        {"amiSelectorTerms": [{"alias": "bottlerocket@v1.39.0"}]},
        {"amiSelectorTerms": [{"alias": "windows2022@latest"}]},
        {"amiFamily": "Custom", "amiSelectorTerms": [{"id": "ami-1"}]},
    ]
)
KUBELET = {
    "maxPods": 50,
    "podsPerCore": 4,
    "clusterDNS": ["10.0.0.10"],
    "systemReserved": {"cpu": "100m"},
    "evictionHard": {"memory.available": "5%"},
    "evictionSoft": {"memory.available": "10%"},
    "evictionSoftGracePeriod": {"memory.available": "1m"},
    "cpuCFSQuota": False,
}
FIELDS = {**FULL, "kubelet": KUBELET}
CAPACITY = st.sampled_from(["on-demand", "spot", "reserved", "capacity-block"])


@st.composite
def launches(draw: st.DrawFn) -> LaunchInput:
    """Any launch: family, fields of the class, capacity, tenancy, EFA, addresses, pool, annotations."""
    fields = {key: FIELDS[key] for key in sorted(FIELDS) if key != "userData" and draw(st.booleans())}
    capacity, efa = draw(CAPACITY), draw(st.booleans())
    kind = "reserved" if capacity == "capacity-block" else capacity
    reserved = kind == "reserved"
    types = [(labels.INSTANCE_TYPE, ["p4d.24xlarge"])] if efa and not reserved else []
    more = {"resources": {"requests": {"vpc.amazonaws.com/efa": "2"}}} if efa and not reserved else {}
    claim = a_claim("web-1", (labels.CAPACITY_TYPE, [kind]), *types, **more)
    notes = {labels.PRICE_OVERLAY_APPLIED: "true"} if draw(st.booleans()) else {}
    notes |= {labels.MIN_VALUES_RELAXED: "true"} if draw(st.booleans()) else {}
    pool = {labels.NODEPOOL: "web"} if draw(st.booleans()) else {}
    claim = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, annotations=notes, labels=pool))
    status = reservation("capacity-block" if capacity == "capacity-block" else "default") if reserved else {}
    market = a_market()
    market.types.reserved.ended("cr-1")
    ipv6 = draw(st.booleans())
    return a_launch(
        claim,
        a_node_class(status=status, **draw(IMAGES), **fields),
        market=market,
        tenancy=draw(st.sampled_from(["default", "dedicated"])),
        cluster=attrs.evolve(CLUSTER_INPUT, ipv6=ipv6, dns_ip="fd00::a" if ipv6 else "10.100.0.10"),
    )


def requests_of(launch: LaunchInput) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return every request of a launch, the dry runs of its validation included."""
    plan = plan_launch(launch)
    assert plan.fleet is not None
    for template in plan.templates:
        yield "CreateLaunchTemplate", template  # type: ignore[misc]  # a TypedDict is a mapping
    yield "CreateFleet", plan.fleet  # type: ignore[misc]  # the same
    yield "CreateFleet", {**plan.fleet, "DryRun": True}
    yield "RunInstances", {**run_request(launch, plan), "DryRun": True}


@pytest.fixture(scope="module")
def model() -> Any:
    return boto3.client(
        "ec2", region_name=REGION, aws_access_key_id="x", aws_secret_access_key="y"
    ).meta.service_model


@settings(max_examples=60, deadline=None)
@given(launch=launches())
def test_any_launch_makes_valid_requests_that_the_policies_allow(launch: LaunchInput, model: Any) -> None:
    for operation, request in requests_of(launch):
        report = ParamValidator().validate(request, model.operation_model(operation).input_shape)
        questions = list(tag_questions(operation, request))

        assert report.generate_report() == "", operation
        assert questions
        assert [each for each in questions if not allowed(POLICIES, each)] == []


@settings(max_examples=20, deadline=None)
@given(launch=launches())
def test_what_a_launch_makes_may_be_used_and_taken_away_again(launch: LaunchInput) -> None:
    plan = plan_launch(launch)
    assert plan.fleet is not None
    template = request_tags(plan.templates[0], "launch-template")
    instance = request_tags(plan.fleet, "instance")

    for action, kind, tags in (
        ("ec2:CreateFleet", "launch-template", template),
        ("ec2:RunInstances", "launch-template", template),
        ("ec2:DeleteLaunchTemplate", "launch-template", template),
        ("ec2:TerminateInstances", "instance", instance),
    ):
        assert _may(action, kind, resource=tags), action
        stranger = {**tags, f"kubernetes.io/cluster/{CLUSTER}": "shared"}
        assert not _may(action, kind, resource=stranger), action


def _may(
    action: str, kind: str, *, resource: Mapping[str, str], request: Mapping[str, str] | None = None
) -> bool:
    context = {f"aws:ResourceTag/{key}": (value,) for key, value in resource.items()}
    context |= {f"aws:RequestTag/{key}": (value,) for key, value in (request or {}).items()}
    if request is not None:
        context["aws:TagKeys"] = tuple(request)
    arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:{kind}/x-1"
    return allowed(POLICIES, Request(action=action, resource=arn, context=context))


def test_late_tags_are_allowed_on_our_instances_only() -> None:
    ours = {f"kubernetes.io/cluster/{CLUSTER}": "owned", labels.NODEPOOL: "web"}
    late = {"Name": "ip-10-0-0-1", labels.NODECLAIM_TAG: "web-1", labels.EKS_CLUSTER_NAME_TAG: CLUSTER}

    assert _may("ec2:CreateTags", "instance", resource=ours, request=late)
    assert not _may("ec2:CreateTags", "instance", resource={}, request=late)
    assert not _may("ec2:CreateTags", "instance", resource=ours, request={**late, "team": "blue"})


def test_a_profile_is_made_with_the_tags_that_the_policy_asks_for() -> None:
    tags = profile_tags(a_node_class(tags={"team": "blue"}), CLUSTER, REGION)
    arn = f"arn:aws:iam::{ACCOUNT}:instance-profile/x"

    def may(action: str, prefix: str) -> bool:
        context = {f"{prefix}/{key}": (value,) for key, value in tags.items()}
        return allowed(POLICIES, Request(action=action, resource=arn, context=context))

    assert may("iam:CreateInstanceProfile", "aws:RequestTag")
    for action in ("AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile"):
        assert may(f"iam:{action}", "aws:ResourceTag")
    assert not may("iam:DeleteInstanceProfile", "aws:RequestTag")

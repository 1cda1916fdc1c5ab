from __future__ import annotations

import pytest

from sandbox.pulumi_aws import schema
from sandbox.pulumi_aws.catalogue import RESOURCES, NotCarried, resource
from sandbox.pulumi_aws.checks import Change, ChangeKind, difference, with_defaults
from sandbox.pulumi_aws.wire import DEFAULTS, UNKNOWN, aligned, equal, is_unknown

VPC, QUEUE, CLUSTER = "aws:ec2/vpc:Vpc", "aws:sqs/queue:Queue", "aws:eks/cluster:Cluster"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"roleArn": "r", "vpcConfig": {"subnetIds": ["a"], "bogus": 1}}, "vpcConfig.bogus"),
        ({"roleArn": "r"}, "vpcConfig"),
        ({"roleArn": 7, "vpcConfig": {"subnetIds": ["a"]}}, "roleArn"),
        ({"roleArn": "r", "vpcConfig": {"subnetIds": [True]}}, "vpcConfig.subnetIds[0]"),
    ],
    ids=["unknown nested", "missing", "type", "item type"],
)
def test_what_the_sdk_would_not_accept_is_named_by_path(values: dict[str, object], problem: str) -> None:
    assert [found.path for found in schema.problems(CLUSTER, values)] == [problem]


def test_a_value_that_is_not_known_yet_passes() -> None:
    assert schema.problems(CLUSTER, {"roleArn": UNKNOWN, "vpcConfig": {"subnetIds": UNKNOWN}}) == ()


def test_a_future_object_keeps_what_was_given_and_leaves_the_rest_open() -> None:
    future = schema.future(CLUSTER, {"roleArn": "r", "vpcConfig": {"subnetIds": ["a"]}})

    assert future["vpcConfig"]["subnetIds"] == ["a"]
    assert is_unknown(future["vpcConfig"]["clusterSecurityGroupId"])
    assert is_unknown(future["endpoint"])


@pytest.mark.parametrize("token", sorted(RESOURCES))
def test_what_forces_replacement_and_what_is_filled_in_exists_in_the_sdk(token: str) -> None:
    carried = RESOURCES[token]
    named = {carried.autoname} if carried.autoname else set()

    assert (carried.force_new | set(carried.defaults) | named) <= set(schema.inputs(token))


@pytest.mark.parametrize(
    ("token", "text"),
    [("aws:s3/bucket:Bucket", "does not carry it"), ("aws:ec2/vpc:Vcp", "misspelt")],
)
def test_a_type_that_is_not_carried_is_refused(token: str, text: str) -> None:
    with pytest.raises(NotCarried, match=text):
        resource(token)


def test_a_generated_name_stays() -> None:
    first = with_defaults(resource(QUEUE), {}, {}, "q", b"seed")
    second = with_defaults(resource(QUEUE), {}, first, "q", b"other")

    assert first["name"] == second["name"]
    assert first["name"].startswith("q-")


def test_a_given_name_is_not_generated() -> None:
    assert with_defaults(resource(QUEUE), {"name": "mine"}, {}, "q", b"seed")[DEFAULTS] == []


def test_a_change_of_addresses_replaces_the_vpc() -> None:
    old = {"cidrBlock": "10.0.0.0/16", "tags": {"a": "1"}}

    found = difference(resource(VPC), old, {"cidrBlock": "10.1.0.0/16"}, [])

    assert found.changes == (
        Change(property="cidrBlock", kind=ChangeKind.UPDATE, replaces=True),
        Change(property="tags", kind=ChangeKind.DELETE, replaces=False),
    )


def test_a_fixed_name_is_freed_before_it_is_used_again() -> None:
    old, new = {"name": "q", "fifoQueue": False, DEFAULTS: []}, {"name": "q", "fifoQueue": True, DEFAULTS: []}

    assert difference(resource(QUEUE), old, new, []).delete_first


def test_an_ignored_change_is_none() -> None:
    assert difference(resource(VPC), {"tags": {}}, {"tags": {"a": "1"}}, ["tags"]).changes == ()


def test_documents_are_compared_by_what_they_say() -> None:
    assert equal('{"a": 1, "b": 2}', '{"b":2,"a":1}')
    assert not equal('{"a": 1}', '{"a": 2}')


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (["b", "a"], ["a", "b"], ["b", "a"]),
        ({"x": 1}, {"x": 1, "y": 2}, {"x": 1}),
        ({"x": 1}, {}, {}),
        ('{"a": 1}', '{"a":1}', '{"a": 1}'),
        ("old", "new", "new"),
    ],
    ids=["order", "extra key", "lost key", "layout", "change"],
)
def test_a_refresh_sees_real_changes_only(old: object, new: object, wanted: object) -> None:
    assert aligned(old, new) == wanted

"""What is read and written back is what was written, for every kind."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from framework.api import Budget, Duration, InvalidField, Kind, NodeClaim, NodePool, Taint, TaintEffect
from framework.api.crds import ALL_GATES, KINDS
from framework.api.openapi import kind_schema
from tests.framework.api.builders import a_pool, a_template
from tests.framework.api.wire_strategies import values_of

by_kind = pytest.mark.parametrize("kind", KINDS, ids=[kind.INFO.kind for kind in KINDS])


@by_kind
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_read_and_written_back_is_what_was_written(kind: type[Kind], data: st.DataObject) -> None:
    raw = data.draw(values_of(kind_schema(kind, ALL_GATES)))
    raw |= {"apiVersion": kind.INFO.api_version, "kind": kind.INFO.kind}

    read = kind.from_wire(raw)

    assert json.dumps(read.to_wire()) == json.dumps(raw)
    assert kind.from_wire(read.to_wire()) == read


POOL = {
    "kind": "NodePool",
    "apiVersion": "karpenter.sh/v1",
    "metadata": {
        "name": "web",
        "creationTimestamp": "2026-01-05T10:00:00Z",
        "futureField": [1, {"a": None}],
        "labels": {"b": "1", "a": "2"},
    },
    "spec": {
        "limits": {"memory": "1000Gi", "cpu": "1000m", "nodes": 10},
        "futureField": {"x": 1},
        "template": {
            "spec": {
                "expireAfter": "43200m",
                "nodeClassRef": {"name": "default", "kind": "EC2NodeClass", "group": "karpenter.k8s.aws"},
                "requirements": [{"values": ["b", "a"], "key": "team", "operator": "In", "note": "kept"}],
            }
        },
        "disruption": {"consolidateAfter": "Never", "budgets": []},
    },
}


def test_order_spelling_and_unknown_fields_are_kept() -> None:
    assert json.dumps(NodePool.from_wire(POOL).to_wire()) == json.dumps(POOL)


def test_bookkeeping_of_the_server_is_dropped() -> None:
    raw = {**POOL, "metadata": {"name": "web", "managedFields": [{"manager": "kubectl"}]}}

    assert NodePool.from_wire(raw).to_wire()["metadata"] == {"name": "web"}


def test_values_are_typed() -> None:
    pool = NodePool.from_wire(POOL)

    assert pool.metadata.creation_timestamp == datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert pool.spec.template.spec.expire_after == Duration("720h")
    assert pool.spec.disruption.consolidate_after is None
    assert pool.spec.limits["cpu"].milli() == 1000
    assert str(pool) == "NodePool/web"


def test_a_changed_object_writes_the_change_and_keeps_the_rest() -> None:
    pool = NodePool.from_wire(POOL)
    template = pool.spec.template
    tainted = attrs.evolve(template.spec, taints=(Taint(key="a", effect=TaintEffect.NO_EXECUTE),))
    changed = attrs.evolve(pool.spec, template=attrs.evolve(template, spec=tainted), weight=3)

    written = attrs.evolve(pool, spec=changed).to_wire()

    expected: Any = json.loads(json.dumps(POOL))
    expected["spec"]["weight"] = 3
    expected["spec"]["template"]["spec"]["taints"] = [{"key": "a", "effect": "NoExecute"}]
    assert written == expected


def test_a_new_object_writes_what_was_said_and_what_the_schema_requires() -> None:
    pool = a_pool(template=a_template(expire_after=None), weight=5)

    assert pool.to_wire() == {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "web"},
        "spec": {
            "template": {
                "spec": {
                    "requirements": [],
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "expireAfter": "Never",
                }
            },
            "weight": 5,
        },
    }


def test_null_counts_as_absent() -> None:
    assert Budget.from_wire({"nodes": "5", "schedule": None}) == Budget(nodes="5")


def test_lists_and_maps_cannot_change() -> None:
    pool = a_pool(limits={"cpu": 1})

    with pytest.raises(TypeError):
        pool.spec.limits["cpu"] = 2  # type: ignore[index]
    assert attrs.evolve(pool.spec.disruption, budgets=[Budget()]).budgets == (Budget(),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("spec.weight", "10", "spec.weight is not a whole number ('10')"),
        ("spec.weight", True, "spec.weight is not a whole number (True)"),
        ("spec.limits.cpu", "lots", "spec.limits.cpu is not a quantity ('lots')"),
        ("spec.limits", ["cpu"], "spec.limits is not a map (['cpu'])"),
        ("spec.disruption.consolidateAfter", "1d", "spec.disruption.consolidateAfter is not a duration"),
        (
            "spec.disruption.budgets",
            [{"nodes": "1"}, {"nodes": 5}],
            "spec.disruption.budgets[1].nodes is not",
        ),
        ("spec.disruption.budgets", "none", "spec.disruption.budgets is not a list"),
        ("spec.disruption.consolidationPolicy", "Often", "use one of WhenEmpty, WhenEmptyOrUnderutilized"),
        (
            "spec.template.spec.nodeClassRef",
            {"name": "x"},
            "spec.template.spec.nodeClassRef.group is missing",
        ),
        ("spec", None, "NodePool/web: spec is missing; add it"),
        ("metadata.creationTimestamp", "yesterday", "metadata.creationTimestamp is not an instant"),
        ("kind", "NodeClaim", "kind is 'NodeClaim'; write NodePool"),
        ("apiVersion", "karpenter.sh/v2", "apiVersion is 'karpenter.sh/v2'; write karpenter.sh/v1"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_its_path(path: str, value: object, text: str) -> None:
    raw: Any = json.loads(json.dumps(POOL))
    *parents, last = path.split(".")
    place = raw
    for part in parents:
        place = place[part]
    place[last] = value

    with pytest.raises(InvalidField) as caught:
        NodePool.from_wire(raw)

    assert text in str(caught.value)
    assert str(caught.value).startswith("NodePool/web: ")


def test_an_object_that_is_not_even_a_map_is_refused_in_words() -> None:
    with pytest.raises(InvalidField, match=r"NodeClaim/\?: metadata is not a map"):
        NodeClaim.from_wire({"metadata": [], "spec": {}})


def test_small_parts_that_read_alike_are_one_object() -> None:
    raw = a_pool().to_wire()
    first, second = NodePool.from_wire(raw), NodePool.from_wire(json.loads(json.dumps(raw)))

    assert first.spec.template.spec.node_class_ref is second.spec.template.spec.node_class_ref
    assert first is not second

from __future__ import annotations

from typing import Any

import attrs
import pytest

from framework.api import CapacityBuffer, NodeOverlay, NodePoolTemplateMetadata, RequirementSpec, Taint
from framework.api.validation import (
    is_restricted,
    requirement_problems,
    validate_capacitybuffer,
    validate_ec2nodeclass,
    validate_nodeoverlay,
    validate_nodepool,
)
from tests.framework.api.builders import a_class, a_pool, a_requirement, a_template


def fields(problems: Any) -> list[str]:
    return [problem.field for problem in problems]


def test_a_sound_pool_has_no_problems() -> None:
    requirements = (
        a_requirement("karpenter.sh/capacity-type", "In", "spot", "on-demand", min_values=2),
        a_requirement("karpenter.k8s.aws/instance-cpu", "Gt", "3"),
        a_requirement("example.com/team", "Exists"),
        a_requirement("node.kubernetes.io/instance-type", "NotIn", "t3.nano"),
    )

    assert validate_nodepool(a_pool(template=a_template(requirements=requirements))) == ()


@pytest.mark.parametrize(
    ("requirement", "blamed", "said"),
    [
        (a_requirement("karpenter.sh/nodepool", "In", "a"), "key", "restricted"),
        (a_requirement("karpenter.sh/x", "Exists"), "key", "restricted"),
        (a_requirement("sub.karpenter.sh/x", "Exists"), "key", "restricted"),
        (a_requirement("karpenter.k8s.aws/x", "Exists"), "key", "restricted"),
        (a_requirement("kubernetes.io/hostname", "Exists"), "key", "restricted"),
        (a_requirement("a b", "Exists"), "key", "not a qualified name"),
        (a_requirement("a" * 64, "Exists"), "key", "not a qualified name"),
        (a_requirement("team", "In", "a b"), "values", "no label value"),
        (a_requirement("team", "In", "a" * 64), "values", "no label value"),
        (a_requirement("team", "In"), "values", "empty"),
        (a_requirement("team", "In", "a", min_values=2), "values", "fewer than minValues 2"),
        (a_requirement("team", "Gt", "a"), "values", "do not suit Gt"),
        (a_requirement("team", "Lte", "1", "2"), "values", "do not suit Lte"),
        (a_requirement("karpenter.sh/capacity-type", "In", "ondemand"), "values", "no known value"),
        (
            a_requirement("karpenter.sh/capacity-type", "In", "spot", "sport", min_values=2),
            "values",
            "1 known values of karpenter.sh/capacity-type, fewer than minValues 2",
        ),
    ],
    ids=lambda value: f"{value.key} {value.operator}" if isinstance(value, RequirementSpec) else None,
)
def test_each_fault_of_a_requirement_is_found(requirement: RequirementSpec, blamed: str, said: str) -> None:
    problems = validate_nodepool(a_pool(template=a_template(requirements=(requirement,))))

    assert fields(problems) == [f"spec.template.spec.requirements[0].{blamed}"]
    assert said in problems[0].problem


def test_known_and_unknown_values_together_are_accepted() -> None:
    mixed = a_requirement("karpenter.sh/capacity-type", "In", "spot", "sport")

    assert list(requirement_problems((mixed,), path="x")) == []


def test_all_problems_are_collected() -> None:
    meta = NodePoolTemplateMetadata(
        labels={"karpenter.sh/nodepool": "x", "b": "a b", "evil/karpenter.sh/x": "c"}
    )
    taint = Taint.from_wire({"key": "a", "effect": "NoSchedule"})
    odd = attrs.evolve(taint, key="a b", value="")
    template = attrs.evolve(a_template(taints=(taint, odd), startup_taints=(taint,)), metadata=meta)

    problems = validate_nodepool(a_pool(template=template))

    assert fields(problems) == [
        "spec.template.metadata.labels.karpenter.sh/nodepool",
        "spec.template.metadata.labels.b",
        "spec.template.metadata.labels.evil/karpenter.sh/x",
        "spec.template.spec.taints[1].key",
        "spec.template.spec.startupTaints[0]",
    ]


@pytest.mark.parametrize(
    ("key", "restricted"),
    [
        ("karpenter.sh/capacity-type", False),
        ("karpenter.sh/other", True),
        ("evilkarpenter.sh/x", False),
        ("karpenter.sh.evil.com/x", False),
        ("kubernetes.io/custom", False),
        ("node-restriction.kubernetes.io/x", False),
        ("karpenter.k8s.aws/instance-family", False),
        ("team", False),
    ],
)
def test_restricted_keys(key: str, restricted: bool) -> None:
    assert is_restricted(key) is restricted


def test_overlays_may_select_pools_but_not_overlay_the_standard_resources() -> None:
    raw = {
        "metadata": {"name": "gpu"},
        "spec": {
            "requirements": [
                {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["a"]},
                {"key": "team", "operator": "NotIn"},
            ],
            "capacity": {"cpu": 1, "example.com/foo": 1},
        },
    }

    problems = validate_nodeoverlay(NodeOverlay.from_wire(raw))

    assert fields(problems) == ["spec.requirements[1].values", "spec.capacity.cpu"]


def test_tags_of_the_controller_are_refused() -> None:
    tags = {
        "kubernetes.io/cluster/demo": "x",
        "kubernetes.io/cluster": "y",
        "karpenter.sh/nodeclaim": "x",
        "a": "b",
    }

    problems = validate_ec2nodeclass(a_class(tags=tags))

    assert fields(problems) == ["spec.tags.karpenter.sh/nodeclaim", "spec.tags.kubernetes.io/cluster/demo"]


def test_a_buffer_must_name_pods_and_a_known_strategy() -> None:
    buffer = CapacityBuffer.from_wire({"metadata": {"name": "b"}, "spec": {"provisioningStrategy": "x"}})

    assert fields(validate_capacitybuffer(buffer)) == ["spec", "spec.provisioningStrategy"]

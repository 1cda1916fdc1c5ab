"""Objects with defaults, so that tests say only what matters."""

from __future__ import annotations

from typing import Any

from framework.api import (
    EC2NodeClass,
    NodeClassRef,
    NodePool,
    NodePoolSpec,
    NodePoolTemplate,
    NodePoolTemplateSpec,
    ObjectMeta,
    RequirementSpec,
)
from tests.framework.api.admission_table import merged

CLASS_REF = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")


def a_template(**spec: Any) -> NodePoolTemplate:
    return NodePoolTemplate(spec=NodePoolTemplateSpec(**{"node_class_ref": CLASS_REF, **spec}))


def a_pool(name: str = "web", **spec: Any) -> NodePool:
    return NodePool(metadata=ObjectMeta(name=name), spec=NodePoolSpec(**{"template": a_template(), **spec}))


def a_requirement(key: str, operator: str, *values: str, min_values: int | None = None) -> RequirementSpec:
    raw: dict[str, Any] = {"key": key, "operator": operator, "values": list(values)}
    if min_values is not None:
        raw["minValues"] = min_values
    return RequirementSpec.from_wire(raw)


def a_class(**spec: Any) -> EC2NodeClass:
    base = {
        "metadata": {"name": "default"},
        "spec": {
            "role": "KarpenterNodeRole-demo",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
        },
    }
    return EC2NodeClass.from_wire(merged(base, {"spec": spec}))

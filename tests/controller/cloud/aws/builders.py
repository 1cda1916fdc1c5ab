"""Objects with defaults, so that a test says only what matters to it."""

from __future__ import annotations

from functools import cache
from typing import Any

from controller.cloud.aws.gateway import parse
from controller.cloud.aws.shape import TypeShape
from framework.api import NodeClaim, NodePool
from framework.api.ec2nodeclass import EC2NodeClass

CLUSTER = "demo"
REGION = "eu-west-2"


@cache
def _types() -> dict[str, Any]:
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    return dict(INSTANCE_TYPES)


def a_shape(name: str = "m5.large") -> TypeShape:
    """Return a real type's shape, from the data that ships with moto."""
    return parse.to_shape(_types()[name])


def node_class_wire(name: str = "default", **spec: Any) -> dict[str, Any]:
    """Return an EC2NodeClass manifest; keywords replace fields of its spec, None removes one."""
    discovery = [{"tags": {"karpenter.sh/discovery": CLUSTER}}]
    defaults = {
        "role": "node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": discovery,
        "securityGroupSelectorTerms": discovery,
    }
    merged = {key: value for key, value in {**defaults, **spec}.items() if value is not None}
    return {"metadata": {"name": name}, "spec": merged}


def a_node_class(name: str = "default", *, status: dict[str, Any] | None = None, **spec: Any) -> EC2NodeClass:
    """Return a resolved EC2NodeClass."""
    raw = node_class_wire(name, **spec)
    raw["metadata"].update(uid="class-uid", generation=1)
    raw["status"] = {
        "subnets": [
            {"id": f"subnet-{zone}", "zone": f"{REGION}{zone}", "zoneID": f"euw2-az{i}"}
            for i, zone in enumerate("abc", 1)
        ],
        "securityGroups": [{"id": "sg-1", "name": "nodes"}],
        "amis": [
            {
                "id": f"ami-{arch}",
                "name": f"image-{arch}",
                "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": [arch]}],
            }
            for arch in ("amd64", "arm64")
        ],
        "instanceProfile": "profile",
        **(status or {}),
    }
    return EC2NodeClass.from_wire(raw)


def claim_wire(name: str = "web-1", *requirements: tuple[str, list[str]], **spec: Any) -> dict[str, Any]:
    """Return a NodeClaim manifest of the pool `web`."""
    return {
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "web"}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [
                {"key": key, "operator": "In", "values": values} for key, values in requirements
            ],
            **spec,
        },
    }


def a_claim(name: str = "web-1", *requirements: tuple[str, list[str]], **spec: Any) -> NodeClaim:
    """Return a NodeClaim of the pool `web`."""
    raw = claim_wire(name, *requirements, **spec)
    raw["metadata"]["uid"] = f"{name}-uid"
    return NodeClaim.from_wire(raw)


def a_pool(name: str = "web", class_name: str = "default") -> NodePool:
    """Return a NodePool of a class."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class_name}
    spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}, "disruption": {}}
    return NodePool.from_wire({"metadata": {"name": name, "uid": name}, "spec": spec})

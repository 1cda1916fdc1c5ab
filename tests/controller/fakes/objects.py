"""Builders of wire objects, with defaults that make them useful at once."""

from __future__ import annotations

from typing import Any

from framework.api import labels

CLASS = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Ready"}


def a_pod(name: str = "web-0", *, node: str | None = None, cpu: str = "1", **extra: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}}}],
        **extra.pop("spec", {}),
    }
    status: dict[str, Any] = {"phase": "Running"}
    if node is None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status = {"phase": "Pending", "conditions": [condition]}
    else:
        spec["nodeName"] = node
    meta = {"name": name, "namespace": "default", **extra.pop("metadata", {})}
    return {"metadata": meta, "spec": spec, "status": {**status, **extra.pop("status", {})}}


def a_pool(name: str = "default", *, ready: bool = True, **spec: Any) -> dict[str, Any]:
    template = {"requirements": [], "nodeClassRef": CLASS, "expireAfter": "720h"}
    template |= spec.pop("template", {})
    conditions = [
        {**READY, "type": each, "observedGeneration": 1, "message": ""}
        for each in ("ValidationSucceeded", "NodeClassReady", "Ready")
    ]
    return {
        "metadata": {"name": name},
        "spec": {"template": {"spec": template}, **spec},
        "status": {"conditions": conditions if ready else []},
    }


def a_claim(name: str = "default-abcde", **parts: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {labels.NODEPOOL: "default", labels.EC2NODECLASS: "default"},
            "finalizers": [labels.TERMINATION_FINALIZER],
            **parts.pop("metadata", {}),
        },
        "spec": {"requirements": [], "nodeClassRef": CLASS, "expireAfter": "720h", **parts.pop("spec", {})},
        "status": parts.pop("status", {}),
    }


def a_node(
    name: str = "node-1", provider_id: str = "aws:///eu-west-2a/i-00000001", **parts: Any
) -> dict[str, Any]:
    unregistered = {"key": labels.UNREGISTERED_TAINT, "effect": "NoExecute"}
    resources = {"cpu": "2", "memory": "8Gi", "pods": "29"}
    return {
        "metadata": {
            "name": name,
            "labels": {labels.NODEPOOL: "default", labels.EC2NODECLASS: "default"},
            **parts.pop("metadata", {}),
        },
        "spec": {"providerID": provider_id, "taints": [unregistered], **parts.pop("spec", {})},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{**READY}],
            **parts.pop("status", {}),
        },
    }


def a_node_class(name: str = "default") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "role": "r",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"a": "b"}}],
            "securityGroupSelectorTerms": [{"tags": {"a": "b"}}],
        },
        "status": {"conditions": [{**READY, "observedGeneration": 1, "message": ""}]},
    }

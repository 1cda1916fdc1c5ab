"""Deployments that the demo and the end-to-end tests put on a sandbox.

Pure: builds manifests, sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from framework.api import labels
from sandbox.kubernetes import Object

__all__ = ["PAUSE", "Workload"]

PAUSE = "registry.k8s.io/pause:3.10"
"""The image of every container; kwok never pulls it."""


@attrs.frozen(kw_only=True)
class Workload:
    """A Deployment of equal pods; only what differs from "one small pod" need be said."""

    name: str
    replicas: int = 1
    namespace: str = "default"
    cpu: str = "500m"
    memory: str = "512Mi"
    spread_over: str | None = None
    """A topology key over which the pods spread with a hard skew of 1."""
    node_selector: Mapping[str, str] = attrs.field(factory=dict)
    tolerations: Sequence[Mapping[str, str]] = ()
    annotations: Mapping[str, str] = attrs.field(factory=dict)

    def manifest(self) -> Object:
        """Return the apps/v1 Deployment."""
        app = {"app": self.name}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": app},
                "template": {
                    "metadata": {"labels": app, "annotations": dict(self.annotations)},
                    "spec": self._pod_spec(app),
                },
            },
        }

    def _pod_spec(self, app: Mapping[str, str]) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": dict(self.node_selector),
            "tolerations": [dict(t) for t in self.tolerations],
            # Only on nodes of a pool: the first capacity is the platform's own.
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": labels.NODEPOOL, "operator": "Exists"}]}
                        ]
                    }
                }
            },
            "containers": [
                {
                    "name": "main",
                    "image": PAUSE,
                    "resources": {"requests": {"cpu": self.cpu, "memory": self.memory}},
                }
            ],
        }
        if self.spread_over is not None:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": self.spread_over,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": dict(app)},
                }
            ]
        return spec

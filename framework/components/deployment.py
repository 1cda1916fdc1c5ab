"""The controller's Deployment as a manifest.

Called by `framework.components.controller`. Owns pod spec, environment, probes and
placement (spec aws/iam-and-bootstrap sections 6 and 7); pure, but for the image and
the environment's values, which may be outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import pulumi

from framework.api import labels

SELECTOR: Mapping[str, str] = MappingProxyType(
    {"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": "karpenter"}
)
COMMAND = ("charpente", "run")
METRICS_PORT, HEALTH_PORT = 8080, 8081
_USER = 65532
"""Neither root nor a user of the host."""


@attrs.frozen(kw_only=True)
class PodArgs:
    """What one replica is made from."""

    name: str
    namespace: str
    service_account: str
    image: pulumi.Input[str]
    environment: Mapping[str, pulumi.Input[str]]
    """Settings by environment variable; values are texts."""
    cpu: str = "1"
    memory: str = "1Gi"


def pod_spec(args: PodArgs) -> dict[str, Any]:
    """The pod of one replica."""
    return {
        "serviceAccountName": args.service_account,
        "automountServiceAccountToken": True,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {"fsGroup": _USER, "seccompProfile": {"type": "RuntimeDefault"}},
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": {labels.OS: "linux"},
        "affinity": _affinity(),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": labels.ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": dict(SELECTOR)},
            }
        ],
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        "containers": [_container(args)],
    }


def _affinity() -> dict[str, Any]:
    """Not on nodes that the controller manages, and each replica on a host of its own."""
    unmanaged = [{"matchExpressions": [{"key": labels.NODEPOOL, "operator": "DoesNotExist"}]}]
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": unmanaged}},
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": labels.HOSTNAME, "labelSelector": {"matchLabels": dict(SELECTOR)}}
            ]
        },
    }


def _container(args: PodArgs) -> dict[str, Any]:
    size = {"cpu": args.cpu, "memory": args.memory}
    return {
        "name": "controller",
        "image": args.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(COMMAND),
        "env": _environment(args),
        "ports": [
            {"name": "http-metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": "http", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        "livenessProbe": _probe("/healthz", delay_s=30),
        "readinessProbe": _probe("/readyz", delay_s=5),
        "resources": {"requests": size, "limits": size},
        "securityContext": {
            "privileged": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def _probe(path: str, *, delay_s: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "http"},
        "initialDelaySeconds": delay_s,
        "timeoutSeconds": 30,
    }


def _environment(args: PodArgs) -> list[dict[str, Any]]:
    """Settings first, sorted, then what the pod knows about itself."""
    given = [{"name": name, "value": args.environment[name]} for name in sorted(args.environment)]
    return [
        *given,
        {"name": "KUBERNETES_MIN_VERSION", "value": "1.19.0-0"},
        {"name": "KARPENTER_SERVICE", "value": args.name},
        {"name": "SYSTEM_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        {"name": "CPU_REQUESTS", "valueFrom": _resource("requests.cpu", "1m")},
        {"name": "MEMORY_LIMIT", "valueFrom": _resource("limits.memory", "0")},
    ]


def _resource(field: str, divisor: str) -> dict[str, Any]:
    return {"resourceFieldRef": {"containerName": "controller", "resource": field, "divisor": divisor}}

"""What a big cluster weighs: `python -m benchmarks.resident`.

Goals of issue 7: with 1,000 nodes and 10,000 pods a controller process stays under 350 MiB resident, and
waves of 10,000 pods leave it within 10 % of where it settled. Exits 1 when one is missed. The whole
program is imported and mirror, metrics and snapshot are real; the provider's catalogue, which
`benchmarks.provider` weighs (goal 40 MiB), and the API connection are not there.
"""

from __future__ import annotations

import gc
import random
import sys
from typing import Any

import orjson

from benchmarks.api import a_claim
from controller.cli.memory import resident_bytes
from controller.cli.run import run
from controller.clock import SystemClock
from controller.cluster import Mirror
from controller.kube import kinds
from controller.kube.kinds import Kind
from controller.observability import Metrics
from controller.observability.cluster import ClusterObserver
from framework.data import on_demand_prices

NODES, PODS = 1_000, 10_000
WAVES = 5
SETTLED_AFTER = 2
"""Waves until memory has settled."""
GOAL_MIB, GROWTH_GOAL = 350.0, 0.10


def a_node(index: int, claim: dict[str, Any]) -> dict[str, Any]:
    """Return the node of a claim as a kubelet reports it, images included."""
    images = [
        {"names": [f"registry.example/team-{n}/app@sha256:{n:064x}", f"registry.example/team-{n}/app:v{n}"]}
        for n in range(40)
    ]
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-05T10:00:00Z", "reason": "Ok"}
    return {
        "metadata": {
            "name": claim["status"]["nodeName"],
            "uid": f"11111111-0000-4000-8000-{index:012x}",
            "resourceVersion": str(index + 1),
            "creationTimestamp": "2026-01-05T10:00:00Z",
            "labels": {**claim["metadata"]["labels"], "kubernetes.io/hostname": claim["status"]["nodeName"]},
        },
        "spec": {"providerID": claim["status"]["providerID"]},
        "status": {
            "allocatable": claim["status"]["allocatable"],
            "capacity": claim["status"]["capacity"],
            "conditions": [ready],
            "images": images,
        },
    }


def a_pod(index: int, wave: int, node: str) -> dict[str, Any]:
    """Return a running pod with what most pods have: two containers, probes, mounts, statuses."""
    container = {
        "image": "registry.example/team/app:v1",
        "env": [{"name": f"SETTING_{n}", "value": "x" * 20} for n in range(10)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{index % 100}", "controller": True}
    return {
        "metadata": {
            "name": f"web-{wave}-{index:05}",
            "namespace": f"team-{index % 20}",
            "uid": f"2222{wave:04x}-0000-4000-8000-{index:012x}",
            "resourceVersion": str(100_000 * (wave + 1) + index),
            "creationTimestamp": "2026-01-05T10:00:00Z",
            "labels": {"app": f"web-{index % 100}", "pod-template-hash": f"{index % 100:010x}"},
            "ownerReferences": [{**owner, "uid": f"33333333-0000-4000-8000-{index % 100:012x}"}],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": name, **container} for name in ("app", "proxy")],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _take(mirror: Mirror, kind: Kind, raw: dict[str, Any]) -> None:
    """Apply an object as it comes off the wire: parsed anew, so that nothing is shared by accident."""
    mirror.apply(kind, orjson.loads(orjson.dumps(raw)))


def _wave(mirror: Mirror, metrics: Metrics, wave: int, nodes: list[str]) -> float:
    """Replace all pods by others, look at everything once, and return the MiB resident."""
    for pod in tuple(mirror.pods):
        mirror.store(kinds.POD).remove(
            {
                "metadata": {
                    "name": pod.name,
                    "namespace": pod.namespace,
                    "uid": pod.uid,
                    "resourceVersion": "9",
                }
            }
        )
    for index in range(PODS):
        _take(mirror, kinds.POD, a_pod(index, wave, nodes[index % NODES]))
    mirror.snapshot(SystemClock().now())
    metrics.render()
    gc.collect()
    return resident_bytes() / 2**20


def main() -> int:
    """Measure, print, and return the exit code."""
    empty = resident_bytes() / 2**20
    mirror, metrics, source = Mirror(), Metrics(), random.Random(1)  # noqa: S311 - a fixed workload
    ClusterObserver(mirror, metrics, SystemClock()).follow()
    types, nodes = sorted(on_demand_prices("us-east-1")), []
    for index in range(NODES):
        claim = a_claim(index, types, source)
        nodes.append(claim["status"]["nodeName"])
        _take(mirror, kinds.NODECLAIM, claim)
        _take(mirror, kinds.NODE, a_node(index, claim))
    sizes = [_wave(mirror, metrics, wave, nodes) for wave in range(WAVES)]
    if len(mirror.pods) != PODS:
        raise AssertionError(f"{len(mirror.pods)} pods are left of {PODS}")
    growth = sizes[-1] / sizes[SETTLED_AFTER - 1] - 1
    print(f"{run.name}: {empty:.0f} MiB imported, {NODES} nodes and {PODS} pods: {max(sizes):.0f} MiB")
    print(f"goal {GOAL_MIB:.0f} MiB; by wave: {', '.join(f'{size:.0f}' for size in sizes)}")
    print(f"growth after wave {SETTLED_AFTER}: {growth:.1%} (goal {GROWTH_GOAL:.0%})")
    return 0 if max(sizes) < GOAL_MIB and growth < GROWTH_GOAL else 1


if __name__ == "__main__":
    sys.exit(main())

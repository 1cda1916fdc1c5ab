"""Clusters as disruption sees them, for its benchmarks: nodes with pods on real types and prices.

Used by `benchmarks.disruption`. Values only, the same for the same arguments.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from benchmarks.fleet import ZONES, fleet
from benchmarks.workloads import instance_type_of
from controller.disruption import World
from controller.scheduling import InstanceType, Objective, Options, Pod, ReservedMode, Snapshot, StateNode
from framework.api import NodeClaim, NodePool, labels

__all__ = ["crowd", "spread_out"]

NOW: Final = datetime.fromisoformat("2026-03-02T10:00:00+00:00")
BORN: Final = NOW - timedelta(hours=5)
CLASS_REF: Final = {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}
DEPLOYMENTS: Final = 100
PODS_PER_NODE: Final = 10
KINDS: Final = ("c6i.xlarge", "c6i.2xlarge", "c6i.4xlarge", "c6i.8xlarge")
"""One family, so that price goes by size and a full node is worth its price."""
Item = tuple[StateNode, NodeClaim]


def crowd(nodes: int, *, filled: Sequence[float], seed: int = 7) -> World:
    """Return a cluster of one pool: nodes filled to each of those parts in turn, by ten pods each."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    pool, types = _pool("default", KINDS), _catalogue()
    kinds = [kind for kind in types if kind.name in KINDS]
    items = [_filled(rng, kinds, pool, number, filled[number % len(filled)]) for number in range(nodes)]
    return _world([pool], types, items)


def spread_out(nodes: int, pools: int, *, filled: float, seed: int = 7) -> World:
    """Return a cluster of many pools: pods spread over zones, at most one of a kind on a node."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    made, types = [_pool(f"pool-{number:02}", KINDS) for number in range(pools)], _catalogue()
    kinds = [kind for kind in types if kind.name in KINDS[:2]]
    items = []
    for number in range(nodes):
        pool, kind = made[number % pools], rng.choice(kinds)
        share = int(filled * kind.allocatable["cpu"] / 4)
        pods = [
            _pod(f"n{number:04}-{app}", f"{pool.name}-app{app}", share - rng.randrange(20), ruled=True)
            for app in range(4)
        ]
        zone = ZONES[number // pools % len(ZONES)]
        items.append(_node(number, pool, kind, zone, pods))
    return _world(made, types, items)


def _filled(
    rng: random.Random, kinds: Sequence[InstanceType], pool: NodePool, number: int, part: float
) -> Item:
    kind = rng.choice(kinds)
    share = int(part * kind.allocatable["cpu"] / PODS_PER_NODE)
    pods = [
        _pod(f"n{number:04}-{place}", f"app{rng.randrange(DEPLOYMENTS)}", share - place % 3)
        for place in range(PODS_PER_NODE)
    ]
    return _node(number, pool, kind, rng.choice(ZONES), pods)


def _world(pools: Sequence[NodePool], types: tuple[InstanceType, ...], items: Sequence[Item]) -> World:
    snapshot = Snapshot(now=NOW, nodes=tuple(node for node, _ in items), pools=tuple(pools))
    return World(
        snapshot=snapshot,
        claims={claim.name: claim for _, claim in items},
        instance_types={pool.name: types for pool in pools},
        options=Options(objective=Objective.COST, reserved_mode=ReservedMode.FALLBACK),
    )


def _catalogue() -> tuple[InstanceType, ...]:
    return tuple(instance_type_of(raw) for raw in fleet(1)["instanceTypes"])


def _pool(name: str, kinds: Sequence[str]) -> NodePool:
    """Return a pool whose nodes are on-demand machines of these types."""
    demand = {"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}
    machine = {"key": labels.INSTANCE_TYPE, "operator": "In", "values": list(kinds)}
    return NodePool.from_wire(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": name, "generation": 1},
            "spec": {
                "template": {"spec": {"nodeClassRef": CLASS_REF, "requirements": [demand, machine]}},
                "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
            },
            "status": {"conditions": [_condition("Ready")]},
        }
    )


def _node(number: int, pool: NodePool, kind: InstanceType, zone: str, pods: Sequence[Pod]) -> Item:
    name = f"node-{number:04}"
    own = {
        **kind.requirements.labels(),
        labels.NODEPOOL: pool.name,
        labels.ZONE: zone,
        labels.CAPACITY_TYPE: "on-demand",
        labels.HOSTNAME: name,
    }
    node = StateNode(
        name=name,
        node_name=name,
        claim_name=f"claim-{number:04}",
        pool=pool.name,
        labels=own,
        capacity=kind.capacity,
        allocatable=kind.allocatable,
        pods=tuple(pods),
        registered=True,
        initialized=True,
        created=BORN,
        initialized_at=BORN,
    )
    return node, _claim(f"claim-{number:04}", pool.name)


def _claim(name: str, pool: str) -> NodeClaim:
    done = ("Launched", "Registered", "Initialized", "Consolidatable")
    return NodeClaim.from_wire(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "labels": {labels.NODEPOOL: pool},
                "creationTimestamp": BORN.isoformat(),
            },
            "spec": {"nodeClassRef": CLASS_REF, "requirements": [], "expireAfter": "Never"},
            "status": {"conditions": [_condition(each) for each in done]},
        }
    )


def _condition(type: str) -> dict[str, Any]:
    since = BORN.isoformat()
    return {
        "type": type,
        "status": "True",
        "reason": type,
        "message": "",
        "lastTransitionTime": since,
        "observedGeneration": 1,
    }


def _pod(name: str, app: str, cpu: int, *, ruled: bool = False) -> Pod:
    """Return a running pod; `ruled` pods spread over zones and keep off nodes with one of their own."""
    selector = {"matchLabels": {"app": app}}
    rules: dict[str, Any] = {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": labels.ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": labels.HOSTNAME, "labelSelector": selector}
                ]
            }
        },
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
    requests = {"cpu": f"{cpu}m", "memory": f"{cpu}Mi"}
    return Pod.from_wire(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "labels": {"app": app},
                "creationTimestamp": BORN.isoformat(),
                "ownerReferences": [owner],
            },
            "spec": {
                "containers": [{"name": "c", "image": "app", "resources": {"requests": requests}}],
                **(rules if ruled else {}),
            },
            "status": {"phase": "Running", "conditions": [_condition("Ready")]},
        }
    )

"""Values with defaults for the tests of disruption: each test says only what matters to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from controller.disruption.world import Gates, World
from controller.scheduling import (
    CapacityType,
    InstanceType,
    Offering,
    Options,
    Pod,
    PodDisruptionBudget,
    Requirement,
    Requirements,
    ReservedMode,
    Snapshot,
    StateNode,
)
from framework.api import NodeClaim, NodePool, Operator, labels

NOW = datetime.fromisoformat("2026-03-02T10:00:00+00:00")
"""A Monday."""
ZONES = ("z-a", "z-b", "z-c")
GIB = 2**30
CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}

Item = tuple[StateNode, NodeClaim | None]


def a_pool(name: str = "default", *, disruption: Mapping[str, Any] | None = None, **spec: Any) -> NodePool:
    settings = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}], **(disruption or {})}
    requirements = spec.pop("requirements", [])
    conditions = [a_condition("Ready", observedGeneration=1), *spec.pop("status", ())]
    return NodePool.from_wire(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": name, "uid": f"pool-{name}", "generation": 1},
            "spec": {
                "template": {"spec": {"nodeClassRef": CLASS_REF, "requirements": requirements}},
                "disruption": settings,
                **spec,
            },
            "status": {"conditions": conditions},
        }
    )


def a_condition(type: str, status: str = "True", since: datetime = NOW, **more: Any) -> dict[str, Any]:
    return {
        "type": type,
        "status": status,
        "reason": type,
        "message": "",
        "lastTransitionTime": since.isoformat(),
        **more,
    }


def a_claim(name: str, *, pool: str = "default", conditions: Sequence[Any] = (), **spec: Any) -> NodeClaim:
    base = ["Launched", "Registered", "Initialized", "Consolidatable"]
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "generation": 1,
        "labels": {labels.NODEPOOL: pool},
        "creationTimestamp": (NOW - timedelta(hours=1)).isoformat(),
        **spec.pop("metadata", {}),
    }
    listed = [a_condition(each) if isinstance(each, str) else each for each in (*base, *conditions)]
    last = {each["type"]: each for each in listed}
    return NodeClaim.from_wire(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": metadata,
            "spec": {"nodeClassRef": CLASS_REF, "requirements": [], "expireAfter": "Never", **spec},
            "status": {"providerID": f"aws:///{name}", "conditions": list(last.values())},
        }
    )


def a_node(
    name: str = "n1",
    *,
    pods: Sequence[Pod] = (),
    pool: str = "default",
    type: str = "medium",
    zone: str = "z-a",
    capacity_type: str = "on-demand",
    cpu: int = 4000,
    conditions: Sequence[Any] = (),
    claim: Mapping[str, Any] | None = None,
    **more: Any,
) -> Item:
    own = {
        labels.NODEPOOL: pool,
        labels.INSTANCE_TYPE: type,
        labels.ZONE: zone,
        labels.CAPACITY_TYPE: capacity_type,
        labels.HOSTNAME: name,
        labels.ARCH: "amd64",
        labels.OS: "linux",
        labels.REGISTERED: "true",
        labels.INITIALIZED: "true",
        **more.pop("labels", {}),
    }
    room = {"cpu": cpu, "memory": cpu * GIB // 500, "pods": 110}
    fields: dict[str, Any] = {
        "name": name,
        "node_name": name,
        "claim_name": f"claim-{name}",
        "provider_id": f"aws:///{name}",
        "pool": pool,
        "labels": own,
        "capacity": room,
        "allocatable": room,
        "pods": tuple(pods),
        "registered": True,
        "initialized": True,
        **more,
    }
    made = a_claim(f"claim-{name}", pool=pool, conditions=conditions, **(claim or {}))
    return StateNode(**fields), made


def a_pod(name: str = "web-0", *, cpu: int = 1000, owner: str = "ReplicaSet", **more: Any) -> Pod:
    fields: dict[str, Any] = {
        "namespace": "default",
        "name": name,
        "uid": f"uid-{name}",
        "created": NOW - timedelta(hours=1),
        "phase": "Running",
        "ready": True,
        "owners": Pod.from_wire(
            {
                "metadata": {
                    "name": name,
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": owner, "name": "o"}],
                }
            }
        ).owners,
        "requests": {"cpu": cpu, "memory": cpu * GIB // 1000, "pods": 1},
        **more,
    }
    return Pod(**fields)


def a_pending_pod(name: str = "pending-0", **more: Any) -> Pod:
    return a_pod(name, **{"phase": "Pending", "unschedulable": True, "ready": False, **more})


def a_budget(name: str = "pdb", *, allowed: int = 1, **more: Any) -> PodDisruptionBudget:
    return PodDisruptionBudget.from_wire(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, **more},
            "status": {"disruptionsAllowed": allowed},
        }
    )


def an_instance_type(
    name: str,
    *,
    cpu: int,
    price: float,
    spot: float | None = None,
    zones: Sequence[str] = ZONES,
    family: str | None = None,
) -> InstanceType:
    offerings = [Offering(zone=z, capacity_type=CapacityType.ON_DEMAND, price=price) for z in zones]
    if spot is not None:
        offerings += [Offering(zone=z, capacity_type=CapacityType.SPOT, price=spot) for z in zones]
    values = {
        labels.INSTANCE_TYPE: (name,),
        labels.ZONE: zones,
        labels.CAPACITY_TYPE: ("on-demand", *(("spot",) if spot is not None else ())),
        labels.ARCH: ("amd64",),
        labels.OS: ("linux",),
        labels.INSTANCE_FAMILY: (family or name,),
    }
    return InstanceType(
        name=name,
        requirements=Requirements.of(
            *(Requirement.new(key, Operator.IN, tuple(each)) for key, each in values.items())
        ),
        offerings=tuple(offerings),
        capacity={"cpu": cpu, "memory": cpu * GIB // 500, "pods": 110},
    )


SMALL = an_instance_type("small", cpu=2000, price=0.1, spot=0.04)
MEDIUM = an_instance_type("medium", cpu=4000, price=0.2, spot=0.08)
LARGE = an_instance_type("large", cpu=8000, price=0.4, spot=0.16)
CATALOGUE = (SMALL, MEDIUM, LARGE)


def a_world(*items: Item, **more: Any) -> World:
    """Return a world of these nodes; keywords go to the snapshot or to the world."""
    pools = tuple(more.pop("pools", (a_pool(),)))
    types = more.pop("types", {pool.name: CATALOGUE for pool in pools})
    world = {key: more.pop(key) for key in ("busy", "gates", "policies", "history") if key in more}
    snapshot = Snapshot(now=more.pop("now", NOW), nodes=tuple(node for node, _ in items), pools=pools, **more)
    return World(
        snapshot=snapshot,
        claims={claim.name: claim for _, claim in items if claim is not None},
        instance_types=types,
        options=Options(reserved_mode=ReservedMode.FALLBACK),
        **{"gates": Gates(), **world},
    )

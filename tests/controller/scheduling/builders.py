"""Values with defaults for the tests of the engine: each test says only what matters to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from controller.scheduling import (
    CapacityType,
    InstanceType,
    Offering,
    Options,
    Plan,
    Pod,
    Problem,
    Requirement,
    Requirements,
    Snapshot,
    StateNode,
    solve,
)
from controller.scheduling.verify import verify
from framework.api import NodePool, Operator, labels

NOW = datetime.fromisoformat("2026-03-02T10:00:00+00:00")
ZONES = ("z-a", "z-b", "z-c")
GIB = 2**30
CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def a_pool(
    name: str = "default",
    *,
    requirements: Sequence[Mapping[str, Any]] = (),
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    **spec: Any,
) -> NodePool:
    template = {
        "metadata": {"labels": dict(labels or {})},
        "spec": {"nodeClassRef": CLASS_REF, "requirements": list(requirements), "taints": list(taints)},
    }
    metadata = {"name": name, "uid": name}
    return NodePool.from_wire({"metadata": metadata, "spec": {"template": template, **spec}})


def a_type(
    name: str = "m.large",
    cpu: int = 2,
    gib: int = 8,
    price: float = 0.1,
    *,
    pods: int = 110,
    zones: Sequence[str] = ZONES,
    spot: float | None = None,
    reserved: Mapping[str, int] | None = None,
    more: Mapping[str, Sequence[str]] | None = None,
    **capacity: int,
) -> InstanceType:
    """A type with whole cores and GiB, on demand in every zone; `spot` is its price there."""
    prices = {"on-demand": price, **({"spot": spot} if spot is not None else {})}
    offerings = [Offering(zone=z, capacity_type=kind, price=p) for kind, p in prices.items() for z in zones]
    offerings += [
        Offering(
            zone=zones[0],
            capacity_type=CapacityType.RESERVED,
            price=price / 1000,
            reservation_id=identity,
            reservation_type="default",
            reservation_capacity=count,
        )
        for identity, count in (reserved or {}).items()
    ]
    values = {
        labels.INSTANCE_TYPE: [name],
        labels.INSTANCE_FAMILY: [name.partition(".")[0]],
        labels.INSTANCE_CPU: [str(cpu)],
        labels.ARCH: ["amd64"],
        labels.OS: ["linux"],
        labels.ZONE: list(zones),
        labels.CAPACITY_TYPE: [*prices, *(["reserved"] if reserved else [])],
        **(more or {}),
    }
    return InstanceType(
        name=name,
        requirements=Requirements.of(
            *(Requirement.new(key, Operator.IN, listed) for key, listed in values.items())
        ),
        offerings=tuple(offerings),
        capacity={
            "cpu": cpu * 1000,
            "memory": gib * GIB,
            "pods": pods,
            **{k.replace("_", "."): v for k, v in capacity.items()},
        },
    )


SIZES = (a_type("m.large", 2, 8, 0.1), a_type("m.xlarge", 4, 16, 0.2), a_type("m.2xlarge", 8, 32, 0.4))


def a_pod(
    name: str = "web-0",
    *,
    cpu: str = "100m",
    memory: str = "128Mi",
    app: str = "web",
    owner: str = "ReplicaSet",
    node: str | None = None,
    number: int = 0,
    **spec: Any,
) -> Pod:
    requests = {"cpu": cpu, "memory": memory, **spec.pop("requests", {})}
    container = {"name": "c", "resources": {"requests": requests}, **spec.pop("container", {})}
    return Pod.from_wire(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "labels": {"app": app, **spec.pop("labels", {})},
                "creationTimestamp": (NOW + timedelta(seconds=number)).isoformat(),
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": owner, "name": app, "uid": app}],
            },
            "spec": {"containers": [container], **({"nodeName": node} if node else {}), **spec},
            "status": {
                "phase": "Running" if node else "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
            },
        }
    )


def pods(count: int, **fields: Any) -> list[Pod]:
    return [a_pod(f"{fields.get('app', 'web')}-{n:03d}", number=n, **fields) for n in range(count)]


def spread(key: str, skew: int = 1, app: str = "web", **more: Any) -> dict[str, Any]:
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": skew,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": app}},
                **more,
            }
        ]
    }


def near(kind: str, key: str, app: str = "web") -> dict[str, Any]:
    """A required `podAffinity` or `podAntiAffinity` to pods of the app."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def a_node(
    name: str = "n1", *, cpu: int = 4, gib: int = 16, zone: str = "z-a", pool: str = "default", **fields: Any
) -> StateNode:
    resources = {"cpu": cpu * 1000, "memory": gib * GIB, "pods": 110}
    values = {
        "name": name,
        "node_name": name,
        "claim_name": f"claim-{name}",
        "pool": pool,
        "labels": {labels.ZONE: zone, labels.HOSTNAME: name, labels.ARCH: "amd64", labels.NODEPOOL: pool},
        "capacity": resources,
        "allocatable": resources,
        "registered": True,
        "initialized": True,
    }
    return StateNode(**{**values, **fields})


def a_problem(
    pending: Sequence[Pod],
    *,
    pools: Sequence[NodePool] = (a_pool(),),
    types: Sequence[InstanceType] = SIZES,
    nodes: Sequence[StateNode] = (),
    options: Options | None = None,
    **snapshot: Any,
) -> Problem:
    return Problem(
        snapshot=Snapshot(now=NOW, pools=tuple(pools), nodes=tuple(nodes), **snapshot),
        pods=tuple(pending),
        instance_types={pool.name: tuple(types) for pool in pools},
        options=options or Options(),
    )


def solved(problem: Problem) -> Plan:
    """Solve, and demand that the verifier finds nothing."""
    plan = solve(problem)
    assert verify(problem, plan) == ()
    return plan


def by_claim(plan: Plan) -> list[list[str]]:
    return sorted(sorted(key.partition("/")[2] for key in claim.pod_keys) for claim in plan.claims)

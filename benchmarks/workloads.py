"""Workload files for side-by-side runs: read into a `Problem` (format: `benchmarks/peer/workload.py`).

Used by `benchmarks.scheduling` and by tests. Reads JSON only.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from controller.scheduling import (
    CapacityType,
    InstanceType,
    Objective,
    Offering,
    Options,
    Pod,
    Problem,
    Requirement,
    Requirements,
    Snapshot,
)
from controller.scheduling.resources import add
from framework.api import NodePool, labels, parse_resources

__all__ = ["instance_type_of", "problem_of"]

_NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - 3.11


def problem_of(workload: Mapping[str, Any], objective: Objective = Objective.FIRST_FIT) -> Problem:
    """Return the workload as a problem; every pool may use every type."""
    types = tuple(instance_type_of(raw) for raw in workload["instanceTypes"])
    pools = tuple(NodePool.from_wire(raw) for raw in workload["nodePools"])
    well_known = labels.WELL_KNOWN | labels.AWS_WELL_KNOWN | frozenset(workload.get("wellKnownLabels", ()))
    pods = tuple(Pod.from_wire(raw) for raw in workload["pods"])
    for pod in pods:
        pod.shape  # noqa: B018 - worked out once per pod when it is read, as the mirror does
    return Problem(
        snapshot=Snapshot(
            now=_NOW,
            pools=pools,
            pods=pods,
            daemonsets=tuple(Pod.from_wire(raw) for raw in workload.get("daemonSetPods") or ()),
        ),
        pods=pods,
        instance_types={pool.name: types for pool in pools},
        options=Options(objective=objective, well_known=well_known),
    )


def instance_type_of(raw: Mapping[str, Any]) -> InstanceType:
    """Return one instance type of a workload file."""
    overhead = raw.get("overhead") or {}
    kinds = ("kubeReserved", "systemReserved", "evictionThreshold")
    return InstanceType(
        name=raw["name"],
        requirements=Requirements.of(
            *(Requirement.new(r["key"], r["operator"], r.get("values") or ()) for r in raw["requirements"])
        ),
        offerings=tuple(_offering(offering) for offering in raw["offerings"]),
        capacity=parse_resources(raw["capacity"]),
        overhead=add(*(parse_resources(overhead.get(kind)) for kind in kinds)),
    )


def _offering(raw: Mapping[str, Any]) -> Offering:
    given = raw["requirements"]
    return Offering(
        zone=given[labels.ZONE],
        capacity_type=CapacityType(given[labels.CAPACITY_TYPE]),
        price=float(raw["price"]),
        available=bool(raw.get("available", True)),
    )

"""Instance types of a case: its small catalogue under the node class of each pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from controller.cluster.mirror import Mirror
from controller.scheduling import InstanceType, Offering, Requirement, Requirements
from framework.api import EC2NodeClass, NodePool, Operator, labels, parse_quantity, parse_resources
from tests.cases.files import Variant

Wire = dict[str, Any]


def types_by_pool(variant: Variant, mirror: Mirror) -> Mapping[str, Sequence[InstanceType]]:
    """Return every type of the catalogue for each pool, as its node class shapes it."""
    return {name: _types(variant, mirror, pool) for name, pool in mirror.pools.items()}


def _types(variant: Variant, mirror: Mirror, pool: NodePool) -> tuple[InstanceType, ...]:
    node_class = mirror.node_class(pool.spec.template.spec.node_class_ref)
    return tuple(_type(raw, variant, node_class) for raw in variant.catalog["types"])


def capacity_of(raw: Wire, variant: Variant, node_class: EC2NodeClass | None) -> dict[str, int]:
    """Return what pods may use of a type of the catalogue, as the node class shapes it."""
    capacity = dict(parse_resources(raw["allocatable"]))
    capacity["ephemeral-storage"] = _ephemeral(raw, variant.catalog, node_class)
    kubelet = node_class.spec.kubelet if node_class is not None else None
    if kubelet is not None and kubelet.max_pods is not None:
        capacity["pods"] = min(capacity["pods"], kubelet.max_pods)
    if kubelet is not None and kubelet.pods_per_core:
        capacity["pods"] = min(capacity["pods"], kubelet.pods_per_core * raw["vcpu"])
    for event in variant.given.get("history") or ():
        if event.get("event") == "registered" and event["type"] == raw["name"]:
            capacity["memory"] = min(capacity["memory"], parse_quantity(event["reportedMemory"]).value())
    return capacity


def _type(raw: Wire, variant: Variant, node_class: EC2NodeClass | None) -> InstanceType:
    return InstanceType(
        name=raw["name"],
        requirements=_labels(raw, variant.catalog),
        offerings=tuple(_offerings(raw, variant)),
        capacity=capacity_of(raw, variant, node_class),
    )


def _ephemeral(raw: Wire, catalog: Wire, node_class: EC2NodeClass | None) -> int:
    policy = node_class.spec.instance_store_policy if node_class is not None else None
    if policy == "RAID0" and raw.get("localNvmeGB"):
        return int(raw["localNvmeGB"]) * 10**9
    return parse_quantity(catalog["ephemeralStorageDefault"]).value()


def _labels(raw: Wire, catalog: Wire) -> Requirements:
    gpus = raw["allocatable"].get("nvidia.com/gpu")
    known: dict[str, Sequence[str]] = {
        labels.INSTANCE_TYPE: [raw["name"]],
        labels.ARCH: [raw["arch"]],
        labels.OS: ["linux"],
        labels.ZONE: catalog["zones"],
        labels.REGION: [catalog["region"]],
        labels.CAPACITY_TYPE: ["on-demand", "spot"],
        labels.INSTANCE_CATEGORY: [raw["family"][0]],
        labels.INSTANCE_FAMILY: [raw["family"]],
        labels.INSTANCE_GENERATION: [str(raw["generation"])],
        labels.INSTANCE_SIZE: [raw["name"].partition(".")[2]],
        labels.INSTANCE_CPU: [str(raw["vcpu"])],
        labels.INSTANCE_MEMORY: [str(raw["memoryGiB"] * 1024)],
    }
    if gpus:
        known[labels.INSTANCE_GPU_COUNT] = [str(gpus)]
        known[labels.INSTANCE_GPU_MANUFACTURER] = ["nvidia"]
    if raw.get("localNvmeGB"):
        known[labels.INSTANCE_LOCAL_NVME] = [str(raw["localNvmeGB"])]
    absent = (labels.WELL_KNOWN | labels.AWS_WELL_KNOWN) - set(known) - {labels.NODEPOOL, labels.EC2NODECLASS}
    return Requirements.of(
        *(Requirement.new(key, Operator.IN, values) for key, values in sorted(known.items())),
        *(Requirement.new(key, Operator.DOES_NOT_EXIST) for key in sorted(absent)),
    )


def _offerings(raw: Wire, variant: Variant) -> list[Offering]:
    found = []
    for zone in variant.catalog["zones"]:
        spot = raw["onDemandPrice"] * variant.catalog["spotFactorByZone"][zone]
        for capacity_type, price in (("on-demand", raw["onDemandPrice"]), ("spot", spot)):
            available = not any(
                out["type"] == raw["name"] and zone in out["zones"] and out["capacityType"] == capacity_type
                for out in (variant.given.get("aws") or {}).get("insufficientCapacity", ())
            )
            found.append(Offering(zone=zone, capacity_type=capacity_type, price=price, available=available))
    return found

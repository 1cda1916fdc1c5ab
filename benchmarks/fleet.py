"""The `fleet` workload: a hundred deployments on real EC2 types and prices.

Lognormal sizes and requests, three zones, c, m, r and t families of generation 5 and later, two
architectures. Types come with moto, prices with `framework.data`; written in the peer's format.
"""

from __future__ import annotations

import random
from typing import Any

from framework.api import labels
from framework.data import on_demand_prices, spot_prices

__all__ = ["fleet"]

REGION = "us-east-1"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
SPOT_BY_ZONE = (1.0, 0.97, 1.04)
"""Spot prices differ a little by zone; the data has one average per region."""
FAMILIES = ("c", "m", "r", "t")
FIRST_GENERATION = 5
ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
Wire = dict[str, Any]


def fleet(pods: int, deployments: int = 100, seed: int = 7) -> Wire:
    """Return a workload of about so many pods."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"},
                    "requirements": [],
                }
            }
        },
    }
    return {
        "wellKnownLabels": [],
        "nodePools": [pool],
        "daemonSetPods": [],
        "pods": _pods(pods, deployments, rng),
        "instanceTypes": _types(),
    }


def _pods(count: int, deployments: int, rng: random.Random) -> list[Wire]:
    sizes = [rng.lognormvariate(0, 1.2) for _ in range(deployments)]
    pods: list[Wire] = []
    for number, size in enumerate(sizes):
        cpu = max(20, int(rng.lognormvariate(5.8, 1.0)) // 10 * 10)
        memory = max(64, int(cpu * rng.choice([1, 2, 4, 8]) * rng.uniform(0.7, 1.3)) // 16 * 16)
        spec: Wire = {}
        if rng.random() < 0.3:
            selector = {"matchLabels": {"app": f"d{number}"}}
            constraint = {"maxSkew": 1, "topologyKey": labels.ZONE, "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [{**constraint, "labelSelector": selector}]
        architecture = rng.choice(["amd64", "amd64", "arm64", "any", "any"])
        if architecture != "any":
            spec["nodeSelector"] = {labels.ARCH: architecture}
        for _ in range(max(1, round(count * size / sum(sizes)))):
            pods.append(_pod(len(pods), f"d{number}", {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}, spec))
    return pods


def _pod(number: int, app: str, requests: Wire, spec: Wire) -> Wire:
    container = {"name": "c", "image": "app", "resources": {"requests": requests}}
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p{number:06d}",
            "namespace": "default",
            "uid": f"uid-{number:06d}",
            "labels": {"app": app},
        },
        "spec": {"containers": [container], **spec},
        "status": {"phase": "Pending", "conditions": [unschedulable]},
    }


def _types() -> list[Wire]:
    from moto.ec2.models.instance_types import INSTANCE_TYPES  # slow to import; needed here only

    demand, spot = on_demand_prices(REGION), spot_prices(REGION)
    found = []
    for name, raw in sorted(INSTANCE_TYPES.items()):
        family = name.partition(".")[0]
        recent = family[:1] in FAMILIES and family[1:2].isdigit() and int(family[1:2]) >= FIRST_GENERATION
        fits = recent or family in ("t3", "t4g")
        if fits and not raw.get("BareMetal") and name in demand and name in spot and "GpuInfo" not in raw:
            found.append(_type(name, raw, demand[name], spot[name]))
    return found


def _type(name: str, raw: Wire, demand: float, spot: float) -> Wire:
    family, _, size = name.partition(".")
    vcpus, memory = raw["VCpuInfo"]["DefaultVCpus"], raw["MemoryInfo"]["SizeInMiB"]
    network = raw["NetworkInfo"]
    addresses = network["MaximumNetworkInterfaces"] * (network["Ipv4AddressesPerInterface"] - 1) + 2
    architecture = next(
        ARCHITECTURES[a] for a in raw["ProcessorInfo"]["SupportedArchitectures"] if a in ARCHITECTURES
    )
    values = {
        labels.INSTANCE_TYPE: [name],
        labels.ARCH: [architecture],
        labels.OS: ["linux"],
        labels.ZONE: list(ZONES),
        labels.CAPACITY_TYPE: ["on-demand", "spot"],
        labels.INSTANCE_FAMILY: [family],
        labels.INSTANCE_SIZE: [size],
        labels.INSTANCE_CPU: [str(vcpus)],
    }
    return {
        "name": name,
        "requirements": [{"key": k, "operator": "In", "values": v} for k, v in values.items()],
        "capacity": {
            "cpu": str(vcpus),
            "memory": f"{int(memory * 0.925)}Mi",
            "pods": str(min(addresses, 737)),
        },
        "overhead": {"kubeReserved": {"cpu": f"{60 + 5 * vcpus}m", "memory": f"{255 + 11 * addresses}Mi"}},
        "offerings": [
            {
                "requirements": {labels.CAPACITY_TYPE: kind, labels.ZONE: zone},
                "price": round(demand if kind == "on-demand" else spot * factor, 6),
                "available": True,
            }
            for zone, factor in zip(ZONES, SPOT_BY_ZONE, strict=True)
            for kind in ("on-demand", "spot")
        ],
    }

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs
import pytest

from controller.cloud.aws.capacity import CapacityRules, capacity, overhead
from controller.cloud.aws.shape import Gpu
from framework.api import format_resources
from tests.controller.cloud.aws.builders import a_node_class, a_shape

GOLDEN = {
    "a1.medium": {"cpu": "940m", "memory": "1392Mi", "pods": "8"},
    "t4g.medium": {"cpu": "1930m", "memory": "3187Mi", "pods": "17"},
    "m5.large": {"cpu": "1930m", "memory": "6903Mi", "pods": "29", "vpc.amazonaws.com/pod-eni": "9"},
    "g4dn.xlarge": {
        "cpu": "3920m",
        "memory": "14481Mi",
        "pods": "29",
        "nvidia.com/gpu": "1",
        "vpc.amazonaws.com/pod-eni": "39",
    },
    "inf2.xlarge": {
        "cpu": "3920m",
        "memory": "14162Mi",
        "pods": "58",
        "aws.amazon.com/neuron": "1",
        "aws.amazon.com/neuroncore": "2",
        "vpc.amazonaws.com/pod-eni": "18",
    },
    "p4d.24xlarge": {
        "cpu": "95690m",
        "memory": "1082712Mi",
        "pods": "737",
        "nvidia.com/gpu": "8",
        "vpc.amazonaws.com/efa": "4",
        "vpc.amazonaws.com/pod-eni": "62",
    },
}
"""Spec aws/instances §4.1."""


def allocatable(name: str, *, reserved_enis: int = 0, **spec: Any) -> dict[str, str]:
    node_class = a_node_class(**spec)
    rules = CapacityRules(
        family=node_class.spec.resolved_ami_family,
        spec=node_class.spec,
        memory_overhead=Fraction(75, 1000),
        reserved_enis=reserved_enis,
    )
    total = capacity(a_shape(name), rules)
    kept = overhead(a_shape(name), rules, total)
    return format_resources({key: amount - kept.get(key, 0) for key, amount in total.items()})


@pytest.mark.parametrize("name", GOLDEN)
def test_allocatable_is_that_of_the_golden_vectors(name: str) -> None:
    found = allocatable(name)

    shared = {key: value for key, value in found.items() if key in GOLDEN[name]}
    assert shared == GOLDEN[name]
    assert found["ephemeral-storage"] == "17Gi"
    extra = set(found) - set(GOLDEN[name]) - {"ephemeral-storage"}
    assert extra <= {"vpc.amazonaws.com/pod-eni", "vpc.amazonaws.com/efa"}


@pytest.mark.parametrize(
    ("name", "resources"),
    [
        ("inf2.48xlarge", {"aws.amazon.com/neuron": "12", "aws.amazon.com/neuroncore": "24"}),
        ("trn1.32xlarge", {"aws.amazon.com/neuron": "16", "aws.amazon.com/neuroncore": "32"}),
    ],
)
def test_every_accelerator_is_counted_as_its_own_resource(name: str, resources: dict[str, str]) -> None:
    found = allocatable(name)

    accelerators = {key: value for key, value in found.items() if "/" in key and "vpc." not in key}
    assert accelerators == resources


@pytest.mark.parametrize(
    ("maker", "resource"),
    [("NVIDIA", "nvidia.com/gpu"), ("AMD", "amd.com/gpu"), ("Habana", "habana.ai/gaudi")],
)
def test_gpus_are_counted_by_their_maker(maker: str, resource: str) -> None:
    gpus = (Gpu(name="G", manufacturer=maker, count=8, memory_mib=1),)
    node_class = a_node_class()
    rules = CapacityRules(
        family=node_class.spec.resolved_ami_family,
        spec=node_class.spec,
        memory_overhead=Fraction(0),
        reserved_enis=0,
    )

    found = capacity(attrs.evolve(a_shape("m5.large"), gpus=gpus), rules)

    assert {key: amount for key, amount in found.items() if key.endswith(("gpu", "gaudi"))} == {resource: 8}


@pytest.mark.parametrize(
    ("kubelet", "family", "pods"),
    [
        ({"maxPods": 110}, None, "110"),
        ({"podsPerCore": 2}, None, "4"),
        ({"podsPerCore": 2, "maxPods": 3}, None, "3"),
        ({"podsPerCore": 2}, "bottlerocket@latest", "29"),
        ({}, "windows2022@latest", "110"),
    ],
    ids=["maxPods", "podsPerCore", "the smaller", "not on Bottlerocket", "Windows"],
)
def test_pod_density_follows_the_kubelet_settings(
    kubelet: dict[str, int], family: str | None, pods: str
) -> None:
    alias = family or "al2023@latest"

    found = allocatable("m5.large", kubelet=kubelet, amiSelectorTerms=[{"alias": alias}])

    assert found["pods"] == pods


def test_reserved_interfaces_lower_density_but_not_the_reserve_of_kubelet() -> None:
    found = allocatable("m5.large", reserved_enis=1)

    assert (found["pods"], found["memory"]) == ("20", "6903Mi")


def test_own_reserves_replace_the_defaults_key_by_key() -> None:
    found = allocatable(
        "m5.large",
        kubelet={
            "kubeReserved": {"cpu": "200m"},
            "systemReserved": {"cpu": "100m", "memory": "100Mi"},
            "evictionHard": {"memory.available": "5%", "nodefs.available": "100%"},
        },
    )

    threshold = -(-7577 * 1024**2 // 20)
    memory = 7577 * 1024**2 - 574 * 1024**2 - 100 * 1024**2 - threshold
    assert found["cpu"] == "1700m"
    assert found["memory"] == format_resources({"memory": memory})["memory"]
    assert found["ephemeral-storage"] == "19Gi"


def volume(size: str, device: str = "/dev/xvda", **more: Any) -> dict[str, Any]:
    return {"deviceName": device, "ebs": {"volumeSize": size}, **more}


@pytest.mark.parametrize(
    ("name", "spec", "total"),
    [
        ("m5d.large", {"instanceStorePolicy": "RAID0"}, 75 * 1000**3),
        ("m5.large", {"instanceStorePolicy": "RAID0"}, 20 * 1024**3),
        ("m5.large", {"blockDeviceMappings": [volume("100Gi"), volume("1Ti", "/dev/xvdb")]}, 100 * 1024**3),
        (
            "m5.large",
            {"blockDeviceMappings": [volume("100Gi"), volume("1Ti", "/dev/xvdb", rootVolume=True)]},
            1024**4,
        ),
        ("m5.large", {"amiSelectorTerms": [{"alias": "windows2022@latest"}]}, 50 * 1024**3),
        (
            "m5.large",
            {
                "amiFamily": "Custom",
                "amiSelectorTerms": [{"id": "ami-1"}],
                "blockDeviceMappings": [volume("100Gi"), volume("30Gi", "/dev/sdb")],
            },
            30 * 1024**3,
        ),
    ],
    ids=["RAID0", "RAID0 without disks", "family device", "root volume", "Windows", "Custom takes the last"],
)
def test_ephemeral_storage_is_that_of_the_right_volume(name: str, spec: dict[str, Any], total: int) -> None:
    node_class = a_node_class(**spec)
    rules = CapacityRules(
        family=node_class.spec.resolved_ami_family,
        spec=node_class.spec,
        memory_overhead=Fraction(75, 1000),
        reserved_enis=0,
    )

    assert capacity(a_shape(name), rules)["ephemeral-storage"] == total

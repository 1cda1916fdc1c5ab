"""Capacity, allocatable and the Node a kubelet registers."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest

from sandbox.nodes.bootstrap import Bootstrap, KubeletSettings, Taint
from sandbox.nodes.kubelet import Host, allocatable, capacity, node_object, reserved_cpu_milli
from sandbox.nodes.machine_shape import MachineShape

MIB, GIB = 1024**2, 1024**3
M6I_LARGE = MachineShape(
    instance_type="m6i.large",
    architecture="amd64",
    cpus=2,
    memory_kib=8192 * 1024 * 98 // 100,
    network_pods=29,
)


@pytest.mark.parametrize(
    ("cpus", "milli"), [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (96, 310), (192, 550)]
)
def test_the_cpu_reserve_follows_the_published_bands(cpus: int, milli: int) -> None:
    assert reserved_cpu_milli(cpus) == milli


def test_allocatable_is_capacity_less_every_reserve() -> None:
    settings = KubeletSettings(system_reserved={"memory": "100Mi"})
    total = capacity(M6I_LARGE, settings, 20 * GIB)

    usable = allocatable(total, M6I_LARGE, settings)

    assert usable == {
        "cpu": 2000 - 70,
        "memory": total["memory"] - (255 + 11 * 29) * MIB - 100 * MIB - 100 * MIB,
        "ephemeral-storage": 20 * GIB - GIB - 2 * GIB,
        "pods": 29,
    }


def test_what_the_user_reserves_replaces_the_default_of_that_resource_only() -> None:
    settings = KubeletSettings(kube_reserved={"cpu": "500m"}, eviction_hard={"memory.available": "5%"})
    total = capacity(M6I_LARGE, settings, 20 * GIB)

    usable = allocatable(total, M6I_LARGE, settings)

    assert usable["cpu"] == 1500
    assert usable["memory"] == total["memory"] - (255 + 11 * 29) * MIB - total["memory"] * 5 // 100


def test_al2023_reserves_memory_by_the_network_and_bottlerocket_by_max_pods() -> None:
    al2023 = KubeletSettings(max_pods=110)
    bottlerocket = attrs.evolve(al2023, reserves_by_max_pods=True)
    total = capacity(M6I_LARGE, al2023, 20 * GIB)

    difference = (
        allocatable(total, M6I_LARGE, al2023)["memory"]
        - allocatable(total, M6I_LARGE, bottlerocket)["memory"]
    )

    assert difference == 11 * (110 - 29) * MIB


def test_pods_per_core_lowers_the_pod_count() -> None:
    assert capacity(M6I_LARGE, KubeletSettings(max_pods=58, pods_per_core=10), GIB)["pods"] == 20


def test_nothing_allocatable_falls_below_zero() -> None:
    settings = KubeletSettings(kube_reserved={"memory": "1Ti"})
    total = capacity(M6I_LARGE, settings, 20 * GIB)

    assert allocatable(total, M6I_LARGE, settings)["memory"] == 0


def test_the_node_carries_what_follows_from_instance_and_bootstrap() -> None:
    bootstrap = Bootstrap(
        cluster_name="demo",
        endpoint="https://127.0.0.1:6443",
        certificate_authority="",
        labels={"team": "a", "topology.kubernetes.io/zone": "a lie"},
        taints=[Taint("karpenter.sh/unregistered", "", "NoExecute")],
    )
    host = Host(
        instance_id="i-1",
        name="ip-10-0-0-1.eu-west-2.compute.internal",
        address="10.0.0.1",
        zone="eu-west-2a",
        zone_id="euw2-az2",
        region="eu-west-2",
        image_id="ami-1",
        storage_bytes=20 * GIB,
        kubernetes_version="v1.34.4",
    )

    node = node_object(host, M6I_LARGE, bootstrap)

    assert node["spec"] == {
        "providerID": "aws:///eu-west-2a/i-1",
        "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
    }
    assert node["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/hostname": "ip-10-0-0-1.eu-west-2.compute.internal",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m6i.large",
        "topology.kubernetes.io/zone": "eu-west-2a",
        "topology.kubernetes.io/region": "eu-west-2",
        "topology.k8s.aws/zone-id": "euw2-az2",
        "sandbox.charpente.dev/heartbeat": "on",
    }
    assert node["status"]["allocatable"]["cpu"] == "1930m"
    assert node["status"]["conditions"][0]["status"] == "False"


def test_devices_and_network_limits_are_read_from_the_instance_type() -> None:
    found: dict[str, Any] = {
        "InstanceType": "g5.xlarge",
        "VCpuInfo": {"DefaultVCpus": 4},
        "MemoryInfo": {"SizeInMiB": 16384},
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        "InstanceStorageInfo": {"TotalSizeInGB": 250},
        "GpuInfo": {"Gpus": [{"Manufacturer": "NVIDIA", "Count": 1}]},
        "NetworkInfo": {
            "MaximumNetworkInterfaces": 4,
            "Ipv4AddressesPerInterface": 15,
            "DefaultNetworkCardIndex": 0,
            "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 4}],
        },
    }

    shape = MachineShape.from_ec2(cast("Any", found))

    assert shape.devices == {"nvidia.com/gpu": 1}
    assert (shape.network_pods, shape.local_disks_bytes) == (58, 250 * 10**9)

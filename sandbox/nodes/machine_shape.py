"""The hardware of an instance type, as DescribeInstanceTypes tells it and as Linux on it would see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import InstanceTypeInfoTypeDef

__all__ = ["MachineShape"]

KIB_PER_MIB = 1024
FIRMWARE_SHARE_PERCENT = 2
"""Memory that firmware and kernel keep: 1.5 to 3 % of the nominal size on most current types, rounded here.
"""
_EXTENDED = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}


@attrs.frozen(kw_only=True)
class MachineShape:
    """What the kubelet finds on the machine."""

    instance_type: str
    architecture: str
    """Kubernetes' name: amd64 or arm64."""
    cpus: int
    memory_kib: int
    """What /proc/meminfo shows: the nominal size less what firmware and kernel keep."""
    network_pods: int
    """Pods that the interfaces and addresses of the type allow (the VPC CNI without prefixes)."""
    local_disks_bytes: int = 0
    devices: Mapping[str, int] = attrs.field(factory=dict)
    """Extended resource → count, as the device plugins would announce it."""

    @classmethod
    def from_ec2(cls, found: InstanceTypeInfoTypeDef) -> MachineShape:
        """Read one item of DescribeInstanceTypes."""
        memory_mib = found["MemoryInfo"]["SizeInMiB"]
        architectures = found["ProcessorInfo"]["SupportedArchitectures"]
        network = found["NetworkInfo"]
        cards = {c["NetworkCardIndex"]: c for c in network.get("NetworkCards", ())}
        card = cards.get(network.get("DefaultNetworkCardIndex", 0))
        interfaces = card["MaximumNetworkInterfaces"] if card else network["MaximumNetworkInterfaces"]
        disks = found.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0)
        return cls(
            instance_type=found["InstanceType"],
            architecture="arm64" if "arm64" in architectures else "amd64",
            cpus=found["VCpuInfo"]["DefaultVCpus"],
            memory_kib=memory_mib * KIB_PER_MIB * (100 - FIRMWARE_SHARE_PERCENT) // 100,
            network_pods=interfaces * (network["Ipv4AddressesPerInterface"] - 1) + 2,
            local_disks_bytes=disks * 10**9,
            devices=_devices(found),
        )


def _devices(found: InstanceTypeInfoTypeDef) -> dict[str, int]:
    devices: dict[str, int] = {}
    for gpu in found.get("GpuInfo", {}).get("Gpus", ()):
        name = _EXTENDED.get(gpu.get("Manufacturer", ""))
        if name is not None:
            devices[name] = devices.get(name, 0) + gpu.get("Count", 0)
    neuron = sum(d.get("Count", 0) for d in found.get("NeuronInfo", {}).get("NeuronDevices", ()))
    if neuron:
        devices["aws.amazon.com/neuron"] = neuron
    return {name: count for name, count in devices.items() if count}

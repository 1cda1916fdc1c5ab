"""How much a machine holds and how much of it pods may use (spec aws/instances §3, §4).

Called by `instancetypes` for every type of a class. Pure integer arithmetic: a type's shape and the
class's settings in, resources in engine units out (cpu in milli-cores, the rest whole).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import attrs

from controller.cloud.aws import data, families
from controller.cloud.aws.shape import TypeShape
from controller.scheduling import Resources
from framework.api.ec2nodeclass import AmiFamily, EC2NodeClassSpec, InstanceStorePolicy
from framework.api.ec2settings import KubeletConfiguration
from framework.api.quantity import parse_quantity

__all__ = [
    "AMD_GPU",
    "EFA",
    "GAUDI",
    "NEURON",
    "NEURON_CORE",
    "NVIDIA_GPU",
    "POD_ENI",
    "CapacityRules",
    "capacity",
    "overhead",
    "pod_density",
]

NVIDIA_GPU: Final = "nvidia.com/gpu"
AMD_GPU: Final = "amd.com/gpu"
GAUDI: Final = "habana.ai/gaudi"
NEURON: Final = "aws.amazon.com/neuron"
NEURON_CORE: Final = "aws.amazon.com/neuroncore"
EFA: Final = "vpc.amazonaws.com/efa"
POD_ENI: Final = "vpc.amazonaws.com/pod-eni"
PRIVATE_IPV4: Final = "vpc.amazonaws.com/PrivateIPv4Address"

_MIB: Final = 1024**2
_GIB: Final = 1024**3
_GB: Final = 1000**3
_ARM_HIDDEN_MIB: Final = 64
"""Memory that Graviton machines keep for themselves."""
_WINDOWS_PODS: Final = 110
_EVICTION_MEMORY: Final = 100 * _MIB
_KUBE_RESERVED_STORAGE: Final = _GIB
_CPU_BANDS: Final = ((1000, 600), (1000, 100), (2000, 50))
"""Milli-cores of a band, and the share of it that kubelet keeps, in ten-thousandths."""
_CPU_REST: Final = 25
_GPU_RESOURCES: Final = {"NVIDIA": NVIDIA_GPU, "AMD": AMD_GPU, "Habana": GAUDI}


@attrs.frozen(kw_only=True)
class CapacityRules:
    """What capacity depends on beside the type: the class's settings and the controller's."""

    family: AmiFamily
    spec: EC2NodeClassSpec
    memory_overhead: Fraction
    """Share of memory that the hypervisor keeps; 0.075 unless set."""
    reserved_enis: int

    @property
    def kubelet(self) -> KubeletConfiguration:
        """Return the kubelet settings, empty when the class has none."""
        return self.spec.kubelet or KubeletConfiguration()


def _divide_up(amount: int, share: Fraction) -> int:
    return -((-amount * share.numerator) // share.denominator)


def memory(shape: TypeShape, rules: CapacityRules) -> int:
    """Return usable memory in bytes as the formula predicts it, before what real nodes taught."""
    arm = bool(shape.architectures) and shape.architectures[0] == "arm64"
    size = shape.memory_mib - (_ARM_HIDDEN_MIB if arm else 0)
    return (size - _divide_up(size, rules.memory_overhead)) * _MIB


def eni_pods(shape: TypeShape, reserved: int) -> int:
    """Return how many pods get an address from the default card's interfaces less the reserved ones."""
    interfaces = max(shape.primary_interfaces - reserved, 0)
    return interfaces * (shape.ipv4_per_interface - 1) + 2 if interfaces else 0


def pod_density(shape: TypeShape, rules: CapacityRules) -> int:
    """Return the most pods a node takes."""
    kubelet = rules.kubelet
    if kubelet.max_pods is not None:
        count = kubelet.max_pods
    elif families.uses_eni_density(rules.family):
        count = eni_pods(shape, rules.reserved_enis)
    else:
        count = _WINDOWS_PODS
    if kubelet.pods_per_core and rules.family is not AmiFamily.BOTTLEROCKET:
        count = min(count, kubelet.pods_per_core * shape.vcpus)
    return count


def ephemeral_storage(shape: TypeShape, rules: CapacityRules) -> int:
    """Return the bytes of the volume that pods' ephemeral storage lies on."""
    spec, family = rules.spec, rules.family
    if spec.instance_store_policy is InstanceStorePolicy.RAID0 and shape.storage_gb:
        return shape.storage_gb * _GB
    sizes = [
        (mapping, mapping.ebs.volume_size.value() if mapping.ebs and mapping.ebs.volume_size else None)
        for mapping in spec.block_device_mappings
    ]
    default = parse_quantity(families.DEFAULT_VOLUME[family]).value()
    for mapping, size in sizes:
        if mapping.root_volume and size:
            return size
    if family is AmiFamily.CUSTOM:
        return (sizes[-1][1] if sizes else None) or default
    for mapping, size in sizes:
        if mapping.device_name == families.EPHEMERAL_DEVICE[family] and size:
            return size
    return default


def capacity(shape: TypeShape, rules: CapacityRules) -> Resources:
    """Return all the machine holds; resources it has none of are 0 or absent."""
    found = {
        "cpu": shape.vcpus * 1000,
        "memory": memory(shape, rules),
        "ephemeral-storage": ephemeral_storage(shape, rules),
        "pods": pod_density(shape, rules),
        NEURON: sum(device.count for device in shape.neuron),
        NEURON_CORE: shape.neuron[0].count * shape.neuron[0].cores if shape.neuron else 0,
        EFA: shape.efa_interfaces,
        POD_ENI: data.branch_interfaces().get(shape.name, 0),
        **dict.fromkeys(_GPU_RESOURCES.values(), 0),
    }
    for gpu in shape.gpus:
        resource = _GPU_RESOURCES.get(gpu.manufacturer)
        if resource:
            found[resource] += gpu.count
    if families.is_windows(rules.family) and "x86_64" in shape.architectures:
        found[PRIVATE_IPV4] = max(shape.ipv4_per_interface - 1, 0)
    return {name: amount for name, amount in found.items() if amount}


def overhead(shape: TypeShape, rules: CapacityRules, total: Resources) -> Resources:
    """Return what kubelet and the system keep of `total`, and what eviction keeps free."""
    kube = _kube_reserved(shape, rules, total)
    system = {name: parse_quantity(text) for name, text in rules.kubelet.system_reserved.items()}
    eviction = _eviction(shape, rules, total)
    names = sorted({*kube, *system, *eviction} - {"pid"})
    return {
        name: kube.get(name, 0) + (system[name].units(name) if name in system else 0) + eviction.get(name, 0)
        for name in names
    }


def _kube_reserved(shape: TypeShape, rules: CapacityRules, total: Resources) -> dict[str, int]:
    counts_final_pods = rules.family is AmiFamily.BOTTLEROCKET or families.is_windows(rules.family)
    pods = total.get("pods", 0) if counts_final_pods else eni_pods(shape, 0)
    reserved = {
        "cpu": _reserved_cpu(shape.vcpus),
        "memory": (11 * pods + 255) * _MIB,
        "ephemeral-storage": _KUBE_RESERVED_STORAGE,
    }
    own = {name: parse_quantity(text).units(name) for name, text in rules.kubelet.kube_reserved.items()}
    return {**reserved, **own}


def _reserved_cpu(vcpus: int) -> int:
    left, reserved = vcpus * 1000, 0
    for size, share in _CPU_BANDS:
        band = min(left, size)
        reserved += band * share // 10_000
        left -= band
    return reserved + left * _CPU_REST // 10_000


def _eviction(shape: TypeShape, rules: CapacityRules, total: Resources) -> dict[str, int]:
    hard = rules.kubelet.eviction_hard
    storage = total.get("ephemeral-storage", 0)
    return {
        "memory": _threshold(hard.get("memory.available"), memory(shape, rules), _EVICTION_MEMORY),
        "ephemeral-storage": _threshold(
            hard.get("nodefs.available"), storage, _divide_up(storage, Fraction(1, 10))
        ),
    }


def _threshold(signal: str | None, total: int, default: int) -> int:
    """Return an eviction threshold in bytes; 100 % switches the signal off."""
    if signal is None:
        return default
    if not signal.endswith("%"):
        return parse_quantity(signal).value()
    share = Fraction(signal[:-1])
    return 0 if share == 100 else _divide_up(total, share / 100)

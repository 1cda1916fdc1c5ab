"""What EC2 says about one instance type, reduced to the fields the provider reads.

Made by `gateway.parse`, kept by `catalogue`, turned into labels and resources by `labelling` and
`capacity`. Owns no rule. About 1 KiB a type, so that 900 types stay small.
"""

from __future__ import annotations

import attrs

__all__ = ["Accelerator", "Gpu", "NetworkCard", "TypeShape"]


@attrs.frozen(kw_only=True, slots=True)
class Gpu:
    """One GPU entry of a type."""

    name: str
    manufacturer: str
    count: int
    memory_mib: int
    """Per GPU."""


@attrs.frozen(kw_only=True, slots=True)
class Accelerator:
    """One Neuron or inference accelerator entry of a type."""

    name: str
    manufacturer: str
    count: int
    cores: int
    """Neuron cores per device; 0 for inference accelerators."""


@attrs.frozen(kw_only=True, slots=True)
class NetworkCard:
    """One network card of a type."""

    index: int
    max_interfaces: int
    baseline_mbps: int | None


@attrs.frozen(kw_only=True, slots=True)
class TypeShape:
    """One instance type as EC2 describes it."""

    name: str
    architectures: tuple[str, ...]
    """As EC2 spells them, in its order."""
    vcpus: int
    memory_mib: int
    usage_classes: frozenset[str]
    hypervisor: str
    """`nitro`, `xen`, or empty for bare metal."""
    cpu_manufacturer: str
    clock_ghz: float | None
    ebs_bandwidth_mbps: int | None
    """Maximum; None unless EBS optimisation is on by default."""
    encryption_in_transit: bool
    nvme_gb: int | None
    """Total instance store in decimal GB when it is NVMe; None otherwise."""
    storage_gb: int
    """Total instance store in decimal GB, 0 without one."""
    gpus: tuple[Gpu, ...]
    neuron: tuple[Accelerator, ...]
    inference: tuple[Accelerator, ...]
    cards: tuple[NetworkCard, ...]
    default_card: int
    ipv4_per_interface: int
    efa_interfaces: int
    """Most EFA interfaces, 0 when EFA is not supported."""

    @property
    def primary_interfaces(self) -> int:
        """Return how many interfaces the default network card takes; ENI density counts only these."""
        for card in self.cards:
            if card.index == self.default_card:
                return card.max_interfaces
        return 0

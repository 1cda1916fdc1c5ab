"""The labels that describe an instance type, as requirements (spec aws/instances §2).

Called by `instancetypes`. Every label is always there; one whose value is not known is "does not
exist". Requirements are shared between types, so a catalogue of 900 stays small.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

import attrs

from controller.cloud.aws import data, families
from controller.cloud.aws.shape import TypeShape
from controller.scheduling import CapacityType, Requirement, Requirements
from framework.api import Operator, labels
from framework.api.ec2nodeclass import AmiFamily, CapacityReservation

__all__ = ["LabelRules", "architecture", "type_requirements"]

_NAME: Final = re.compile(r"^([a-z]+)(?:-\d+tb)?(\d+).*\.")
_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
_TENANCIES: Final = frozenset({"default", "dedicated"})


@attrs.frozen(kw_only=True)
class LabelRules:
    """What labels depend on beside the type."""

    region: str
    family: AmiFamily
    subnet_zones: Mapping[str, str | None]
    """Zone id, where known, of each zone in which the class has a subnet."""
    reservations: tuple[CapacityReservation, ...] = ()
    """Those of the class."""


@cache
def _one_of(key: str, values: frozenset[str]) -> Requirement:
    return Requirement.new(key, Operator.IN, values)


def architecture(shape: TypeShape) -> str | None:
    """Return the Kubernetes name of the first architecture that has one."""
    return next((_ARCHITECTURES[name] for name in shape.architectures if name in _ARCHITECTURES), None)


def type_requirements(shape: TypeShape, zones: frozenset[str], rules: LabelRules) -> Requirements:
    """Return every label of a type that `zones` offer, as one requirement per key."""
    found: dict[str, frozenset[str]] = {
        key: frozenset() if value is None else frozenset({value})
        for key, value in {
            labels.INSTANCE_TYPE: shape.name,
            labels.ARCH: architecture(shape),
            labels.REGION: rules.region,
            **_naming(shape),
            **_hardware(shape),
            **_accelerators(shape),
            **_operating_system(shape, rules.family),
        }.items()
    }
    found[labels.INSTANCE_TENANCY] = _TENANCIES
    found.update(_places(zones, rules))
    found.update(_capacity_types(shape, rules))
    return Requirements({key: _one_of(key, values) for key, values in sorted(found.items())})


def _places(zones: frozenset[str], rules: LabelRules) -> dict[str, frozenset[str]]:
    usable = zones.intersection(rules.subnet_zones)
    ids = frozenset(text for zone in usable if (text := rules.subnet_zones[zone]))
    places = {labels.ZONE: usable}
    return {**places, labels.ZONE_ID: ids} if ids else places


def _capacity_types(shape: TypeShape, rules: LabelRules) -> dict[str, frozenset[str]]:
    kinds = frozenset({CapacityType.ON_DEMAND.value, CapacityType.SPOT.value}) & shape.usage_classes
    own = [item for item in rules.reservations if item.instance_type == shape.name]
    if not own:
        return {labels.CAPACITY_TYPE: kinds}
    return {
        labels.CAPACITY_TYPE: kinds | {CapacityType.RESERVED.value},
        labels.CAPACITY_RESERVATION_ID: frozenset(item.id for item in own),
        labels.CAPACITY_RESERVATION_TYPE: frozenset(item.reservation_type.value for item in own),
    }


def _operating_system(shape: TypeShape, family: AmiFamily) -> dict[str, str | None]:
    if not families.is_windows(family):
        return {labels.OS: "linux", labels.WINDOWS_BUILD: None}
    windows = "windows" if architecture(shape) == "amd64" else None
    return {labels.OS: windows, labels.WINDOWS_BUILD: families.WINDOWS_BUILDS[family]}


def _naming(shape: TypeShape) -> dict[str, str | None]:
    family, _, size = shape.name.partition(".")
    match = _NAME.match(shape.name)
    return {
        labels.INSTANCE_CATEGORY: match[1] if match else None,
        labels.INSTANCE_GENERATION: match[2] if match else None,
        labels.INSTANCE_FAMILY: family,
        labels.INSTANCE_SIZE: size or None,
        labels.INSTANCE_CAPABILITY_FLEX: "true" if "-flex" in family else "false",
    }


def _hardware(shape: TypeShape) -> dict[str, str | None]:
    bandwidth = network_bandwidth(shape)
    return {
        labels.INSTANCE_CPU: str(shape.vcpus),
        labels.INSTANCE_CPU_MANUFACTURER: _kebab(shape.cpu_manufacturer) or None,
        labels.INSTANCE_CPU_CLOCK_MHZ: _text(
            None if shape.clock_ghz is None else round(shape.clock_ghz * 1000)
        ),
        labels.INSTANCE_MEMORY: str(shape.memory_mib),
        labels.INSTANCE_EBS_BANDWIDTH: _text(shape.ebs_bandwidth_mbps),
        labels.INSTANCE_NETWORK_BANDWIDTH: _text(bandwidth),
        labels.INSTANCE_LOCAL_NVME: _text(shape.nvme_gb),
        labels.INSTANCE_HYPERVISOR: shape.hypervisor,
        labels.INSTANCE_ENCRYPTION_IN_TRANSIT: "true" if shape.encryption_in_transit else "false",
    }


def network_bandwidth(shape: TypeShape) -> int | None:
    """Return the documented baseline in Mbit/s, or the sum of what EC2 says of the cards, or None."""
    documented = data.bandwidth_mbps().get(shape.name)
    if documented is not None:
        return documented
    cards = [card.baseline_mbps for card in shape.cards]
    known = [mbps for mbps in cards if mbps is not None]
    return sum(known) if known and len(known) == len(cards) else None


def _accelerators(shape: TypeShape) -> dict[str, str | None]:
    gpu = shape.gpus[0] if len(shape.gpus) == 1 else None
    entries = shape.neuron or shape.inference
    device = entries[0] if len(entries) == 1 else None
    return {
        labels.INSTANCE_GPU_NAME: _kebab(gpu.name) if gpu else None,
        labels.INSTANCE_GPU_MANUFACTURER: _kebab(gpu.manufacturer) if gpu else None,
        labels.INSTANCE_GPU_COUNT: str(gpu.count) if gpu else None,
        labels.INSTANCE_GPU_MEMORY: str(gpu.memory_mib) if gpu else None,
        labels.INSTANCE_ACCELERATOR_NAME: _kebab(device.name) if device else None,
        labels.INSTANCE_ACCELERATOR_MANUFACTURER: _kebab(device.manufacturer) if device else None,
        labels.INSTANCE_ACCELERATOR_COUNT: str(device.count) if device else None,
    }


def _kebab(text: str) -> str:
    return text.lower().replace(" ", "-")


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)

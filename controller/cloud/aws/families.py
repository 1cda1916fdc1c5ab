"""Facts about image families (spec aws/launch §7.4, aws/ec2nodeclass §5.5, aws/instances §3).

Looked up by the whole provider; owns tables only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from framework.api.ec2nodeclass import AmiFamily
from framework.api.ec2settings import BlockDevice, BlockDeviceMapping, VolumeType
from framework.api.quantity import parse_quantity

__all__ = [
    "DEFAULT_VOLUME",
    "EPHEMERAL_DEVICE",
    "WINDOWS_BUILDS",
    "default_devices",
    "is_windows",
    "uses_eni_density",
]

WINDOWS_BUILDS: Final[Mapping[AmiFamily, str]] = MappingProxyType(
    {
        AmiFamily.WINDOWS2019: "10.0.17763",
        AmiFamily.WINDOWS2022: "10.0.20348",
        AmiFamily.WINDOWS2025: "10.0.26100",
    }
)
"""Build number of each Windows family, as nodes label themselves."""

EPHEMERAL_DEVICE: Final[Mapping[AmiFamily, str]] = MappingProxyType(
    {
        AmiFamily.AL2: "/dev/xvda",
        AmiFamily.AL2023: "/dev/xvda",
        AmiFamily.BOTTLEROCKET: "/dev/xvdb",
        **dict.fromkeys(WINDOWS_BUILDS, "/dev/sda1"),
    }
)
"""The device on which pods' ephemeral storage lies; unknown for Custom."""

DEFAULT_VOLUME: Final[Mapping[AmiFamily, str]] = MappingProxyType(
    {**dict.fromkeys(AmiFamily, "20Gi"), **dict.fromkeys(WINDOWS_BUILDS, "50Gi")}
)
"""Size of that device unless the class says otherwise."""

_BOTTLEROCKET_SYSTEM: Final = ("/dev/xvda", "4Gi")


def is_windows(family: AmiFamily) -> bool:
    """Tell whether nodes of the family run Windows."""
    return family in WINDOWS_BUILDS


def uses_eni_density(family: AmiFamily) -> bool:
    """Tell whether pod density follows from network interfaces; Windows nodes take 110."""
    return not is_windows(family)


def default_devices(family: AmiFamily) -> tuple[BlockDeviceMapping, ...]:
    """Return the volumes of a class that names none; for Custom the image decides."""
    if family is AmiFamily.CUSTOM:
        return ()
    devices = [(EPHEMERAL_DEVICE[family], DEFAULT_VOLUME[family])]
    if family is AmiFamily.BOTTLEROCKET:
        devices.insert(0, _BOTTLEROCKET_SYSTEM)
    return tuple(
        BlockDeviceMapping(
            device_name=name,
            ebs=BlockDevice(encrypted=True, volume_type=VolumeType.GP3, volume_size=parse_quantity(size)),
        )
        for name, size in devices
    )

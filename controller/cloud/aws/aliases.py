"""Image aliases: which SSM parameters they stand for and which machines each image is for.

Called by `images`. Owns the table of spec aws/ec2nodeclass §5.5 and the rule of which Kubernetes
versions an alias supports. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import attrs

from controller.cloud.aws import families
from framework.api import Operator, RequirementSpec, labels
from framework.api.ec2nodeclass import AmiFamily

__all__ = [
    "REQUIREMENTS",
    "ParameterImage",
    "Variant",
    "is_mutable",
    "parameters",
    "unsupported",
    "variant_of",
]

_EKS: Final = "/aws/service/eks/optimized-ami"
_BOTTLEROCKET: Final = "/aws/service/bottlerocket"
LATEST: Final = "latest"
_AL2_ENDS: Final = (1, 33)
_WINDOWS2025_STARTS: Final = (1, 35)


class Variant(StrEnum):
    """What an image has drivers for."""

    STANDARD = "standard"
    NVIDIA = "nvidia"
    NEURON = "neuron"


def _spec(key: str, operator: Operator) -> RequirementSpec:
    return RequirementSpec(key=key, operator=operator)


REQUIREMENTS: Final[Mapping[Variant, tuple[RequirementSpec, ...]]] = MappingProxyType(
    {
        Variant.STANDARD: (
            _spec(labels.INSTANCE_ACCELERATOR_COUNT, Operator.DOES_NOT_EXIST),
            _spec(labels.INSTANCE_GPU_COUNT, Operator.DOES_NOT_EXIST),
        ),
        Variant.NVIDIA: (_spec(labels.INSTANCE_GPU_COUNT, Operator.EXISTS),),
        Variant.NEURON: (_spec(labels.INSTANCE_ACCELERATOR_COUNT, Operator.EXISTS),),
    }
)
"""Which types an image of each variant is for; the architecture comes on top."""


@attrs.frozen(kw_only=True)
class ParameterImage:
    """An SSM parameter that holds an image id, and the requirement sets under which the image is listed."""

    parameter: str
    requirement_sets: tuple[tuple[RequirementSpec, ...], ...]


def _image(parameter: str, *variants: Variant) -> ParameterImage:
    return ParameterImage(
        parameter=parameter, requirement_sets=tuple(REQUIREMENTS[variant] for variant in variants)
    )


def parameters(alias_family: str, version: str, kubernetes: str) -> tuple[ParameterImage, ...]:
    """Return the parameters of an alias (`al2023`, `latest` or a pinned version) for a Kubernetes version."""
    family = AmiFamily(alias_family) if alias_family in set(AmiFamily) else AmiFamily.CUSTOM
    match family:
        case AmiFamily.AL2:
            return _al2(version, kubernetes)
        case AmiFamily.AL2023:
            return _al2023(version, kubernetes)
        case AmiFamily.BOTTLEROCKET:
            return _bottlerocket(version, kubernetes)
        case AmiFamily.CUSTOM:
            return ()
        case _:
            return _windows(family, kubernetes)


def _al2(version: str, kubernetes: str) -> tuple[ParameterImage, ...]:
    def path(flavour: str, node: str) -> str:
        leaf = "recommended" if version == LATEST else f"amazon-eks-{node}-{kubernetes}-{version}"
        return f"{_EKS}/{kubernetes}/amazon-linux-2{flavour}/{leaf}/image_id"

    return (
        _image(path("", "node"), Variant.STANDARD),
        _image(path("-arm64", "arm64-node"), Variant.STANDARD),
        _image(path("-gpu", "gpu-node"), Variant.NEURON, Variant.NVIDIA),
    )


def _al2023(version: str, kubernetes: str) -> tuple[ParameterImage, ...]:
    pairs = (
        ("x86_64", Variant.STANDARD),
        ("x86_64", Variant.NVIDIA),
        ("x86_64", Variant.NEURON),
        ("arm64", Variant.STANDARD),
        ("arm64", Variant.NVIDIA),
    )

    def path(arch: str, variant: Variant) -> str:
        pinned = f"amazon-eks-node-al2023-{arch}-{variant}-{kubernetes}-{version}"
        leaf = "recommended" if version == LATEST else pinned
        return f"{_EKS}/{kubernetes}/amazon-linux-2023/{arch}/{variant}/{leaf}/image_id"

    return tuple(_image(path(arch, variant), variant) for arch, variant in pairs)


def _bottlerocket(version: str, kubernetes: str) -> tuple[ParameterImage, ...]:
    leaf = version if version == LATEST else version.lstrip("v")

    def path(flavour: str, arch: str) -> str:
        return f"{_BOTTLEROCKET}/aws-k8s-{kubernetes}{flavour}/{arch}/{leaf}/image_id"

    return (
        _image(path("", "x86_64"), Variant.STANDARD, Variant.NEURON),
        _image(path("", "arm64"), Variant.STANDARD),
        _image(path("-nvidia", "x86_64"), Variant.NVIDIA),
        _image(path("-nvidia", "arm64"), Variant.NVIDIA),
    )


def _windows(family: AmiFamily, kubernetes: str) -> tuple[ParameterImage, ...]:
    year = family.value.removeprefix("Windows")
    specs = (
        RequirementSpec(key=labels.OS, operator=Operator.IN, values=("windows",)),
        RequirementSpec(
            key=labels.WINDOWS_BUILD, operator=Operator.IN, values=(families.WINDOWS_BUILDS[family],)
        ),
    )
    leaf = f"Windows_Server-{year}-English-Core-EKS_Optimized-{kubernetes}"
    return (
        ParameterImage(
            parameter=f"/aws/service/ami-windows-latest/{leaf}/image_id", requirement_sets=(specs,)
        ),
    )


def is_mutable(parameter: str) -> bool:
    """Tell whether a parameter moves on with every release."""
    return "/recommended/" in parameter or f"/{LATEST}/" in parameter or "/ami-windows-latest/" in parameter


def variant_of(image_name: str) -> Variant:
    """Return the variant that an image's name speaks of; images without a word are standard."""
    words = image_name.lower()
    if "nvidia" in words or "-gpu-" in words:
        return Variant.NVIDIA
    return Variant.NEURON if "neuron" in words else Variant.STANDARD


def unsupported(alias_family: str, kubernetes: str) -> str | None:
    """Return why an alias cannot be used with a Kubernetes version, or None (spec aws/ec2nodeclass §5.1)."""
    major, _, minor = kubernetes.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        return None
    version = (int(major), int(minor))
    if alias_family == AmiFamily.AL2 and version >= _AL2_ENDS:
        return f"the alias al2 has no images for Kubernetes {kubernetes}; use al2023 or bottlerocket"
    if alias_family == AmiFamily.WINDOWS2025 and version < _WINDOWS2025_STARTS:
        return f"the alias windows2025 needs Kubernetes 1.35, not {kubernetes}; use windows2022"
    return None

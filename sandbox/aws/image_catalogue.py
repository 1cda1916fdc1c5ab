"""The EKS images of every region and the SSM parameters that name them (aws/ec2nodeclass §5.5).

Ids are made from region and name, so they are the same in every run. Releases are made up but shaped like
AWS's: three of each family and Kubernetes version, the last one recommended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import cache

import attrs

__all__ = ["KUBERNETES_VERSIONS", "EksImage", "catalogue"]

UTC = timezone.utc  # noqa: UP017 - the form the rest of the code base uses
KUBERNETES_VERSIONS = ("1.31", "1.32", "1.33", "1.34", "1.35")
AL2_VERSIONS = ("1.31", "1.32")
"""EKS publishes no AL2 images from Kubernetes 1.33 on."""
RELEASES = ((2025, 10, 1), (2026, 1, 15), (2026, 4, 1))
BOTTLEROCKET_RELEASES = ("1.45.0", "1.50.0", "1.55.0")
LIFETIME = timedelta(days=730)
"""AWS deprecates an image two years after it is made."""
EKS_OWNER, BOTTLEROCKET_OWNER, WINDOWS_OWNER = "602401143452", "651937483462", "801119661308"
WINDOWS_YEARS = {"2019": KUBERNETES_VERSIONS, "2022": KUBERNETES_VERSIONS, "2025": ("1.35",)}
AL2023_VARIANTS = (
    ("x86_64", "standard"),
    ("x86_64", "nvidia"),
    ("x86_64", "neuron"),
    ("arm64", "standard"),
    ("arm64", "nvidia"),
)
AL2_VARIANTS = (
    ("amazon-linux-2", "amazon-eks-node", "x86_64"),
    ("amazon-linux-2-arm64", "amazon-eks-arm64-node", "arm64"),
    ("amazon-linux-2-gpu", "amazon-eks-gpu-node", "x86_64"),
)
_SSM = "/aws/service"


@attrs.frozen(kw_only=True)
class EksImage:
    """One image with the parameters that hold its id."""

    region: str
    name: str
    description: str
    architecture: str
    created: datetime
    owner_id: str
    parameters: tuple[str, ...]
    """Names of SSM parameters whose value is the id."""
    root_device: str = "/dev/xvda"
    platform: str | None = None

    @property
    def id(self) -> str:
        """The image id, the same in every run."""
        return "ami-" + hashlib.sha256(f"{self.region}/{self.name}".encode()).hexdigest()[:17]

    @property
    def deprecated(self) -> datetime:
        """From when the image counts as deprecated."""
        return self.created + LIFETIME


@cache
def catalogue(region: str) -> tuple[EksImage, ...]:
    """Return the images of a region, by family, Kubernetes version and release."""
    return (*_al2023(region), *_al2(region), *_bottlerocket(region), *_windows(region))


def _releases() -> Iterator[tuple[datetime, str, bool]]:
    for place, day in enumerate(RELEASES):
        made = datetime(*day, tzinfo=UTC)
        yield made, f"v{made:%Y%m%d}", place == len(RELEASES) - 1


def _al2023(region: str) -> Iterator[EksImage]:
    for version in KUBERNETES_VERSIONS:
        for architecture, variant in AL2023_VARIANTS:
            folder = f"{_SSM}/eks/optimized-ami/{version}/amazon-linux-2023/{architecture}/{variant}"
            for made, release, last in _releases():
                name = f"amazon-eks-node-al2023-{architecture}-{variant}-{version}-{release}"
                yield EksImage(
                    region=region,
                    name=name,
                    description=f"EKS-optimized Kubernetes node based on Amazon Linux 2023, (k8s: {version})",
                    architecture=architecture,
                    created=made,
                    owner_id=EKS_OWNER,
                    parameters=_with_recommended(folder, name, last),
                )


def _with_recommended(folder: str, name: str, last: bool) -> tuple[str, ...]:
    pinned = f"{folder}/{name}/image_id"
    return (pinned, f"{folder}/recommended/image_id") if last else (pinned,)


def _al2(region: str) -> Iterator[EksImage]:
    for version in AL2_VERSIONS:
        for folder_name, prefix, architecture in AL2_VARIANTS:
            folder = f"{_SSM}/eks/optimized-ami/{version}/{folder_name}"
            for made, release, last in _releases():
                name = f"{prefix}-{version}-{release}"
                yield EksImage(
                    region=region,
                    name=name,
                    description=f"EKS Kubernetes Worker AMI with AmazonLinux2 image, (k8s: {version})",
                    architecture=architecture,
                    created=made,
                    owner_id=EKS_OWNER,
                    parameters=_with_recommended(folder, name, last),
                )


def _bottlerocket(region: str) -> Iterator[EksImage]:
    dated = list(zip(BOTTLEROCKET_RELEASES, _releases(), strict=True))
    for version in KUBERNETES_VERSIONS:
        for flavour in (f"aws-k8s-{version}", f"aws-k8s-{version}-nvidia"):
            for architecture in ("x86_64", "arm64"):
                folder = f"{_SSM}/bottlerocket/{flavour}/{architecture}"
                for release, (made, _, last) in dated:
                    pinned = f"{folder}/{release}/image_id"
                    yield EksImage(
                        region=region,
                        name=f"bottlerocket-{flavour}-{architecture}-v{release}",
                        description=f"Bottlerocket {flavour} {release}",
                        architecture=architecture,
                        created=made,
                        owner_id=BOTTLEROCKET_OWNER,
                        parameters=(pinned, f"{folder}/latest/image_id") if last else (pinned,),
                    )


def _windows(region: str) -> Iterator[EksImage]:
    for year, versions in WINDOWS_YEARS.items():
        for version in versions:
            base = f"Windows_Server-{year}-English-Core-EKS_Optimized-{version}"
            for made, _, last in _releases():
                yield EksImage(
                    region=region,
                    name=f"{base}-{made:%Y.%m.%d}",
                    description=f"Microsoft Windows Server {year} Core, EKS optimized (k8s: {version})",
                    architecture="x86_64",
                    created=made,
                    owner_id=WINDOWS_OWNER,
                    root_device="/dev/sda1",
                    platform="windows",
                    parameters=(f"{_SSM}/ami-windows-latest/{base}/image_id",) if last else (),
                )

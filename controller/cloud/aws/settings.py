"""What the operator sets for the AWS provider (spec aws/iam-and-bootstrap §6).

Filled by `charpente run` from environment and flags; read by the whole provider. Values only.
"""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Final

import attrs

__all__ = ["AwsSettings"]

_DEFAULT_OVERHEAD: Final = Fraction(75, 1000)


def _fraction(value: float | str | Fraction) -> Fraction:
    return Fraction(str(value))


@attrs.frozen(kw_only=True)
class AwsSettings:
    """Settings of the provider."""

    cluster_name: str
    cluster_endpoint: str | None = None
    """None: ask EKS."""
    cluster_ca_bundle: str = ""
    """Base64 of the PEM bundle that nodes trust; the controller's own when not set."""
    region: str | None = None
    """None: the SDK's configuration, else instance metadata."""
    isolated_vpc: bool = False
    eks_control_plane: bool = False
    vm_memory_overhead: Fraction = attrs.field(default=_DEFAULT_OVERHEAD, converter=_fraction)
    """Share of memory that the hypervisor keeps; a fraction, not a percentage."""
    reserved_enis: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    disable_dry_run: bool = False
    reserved_capacity: bool = True
    """Feature gate ReservedCapacity."""
    min_values_strict: bool = True
    """Policy Strict: a launch that cannot keep minValues fails."""
    ami_refresh: timedelta = timedelta(minutes=1)
    subnet_refresh: timedelta = timedelta(minutes=1)
    version: str = "0.0.0"
    """Charpente's version, for the user agent."""

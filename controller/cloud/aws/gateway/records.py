"""AWS objects as plain frozen values: what the gateways answer and the provider works on.

Made by `gateway.parse` from boto3's dictionaries; used by the whole provider. Owns no behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

__all__ = [
    "FleetError",
    "FleetInstance",
    "FleetResult",
    "ImageRecord",
    "InstanceRecord",
    "ProfileRecord",
    "ReservationRecord",
    "SecurityGroupRecord",
    "StatusRecord",
    "SubnetRecord",
    "TemplateRecord",
]


@attrs.frozen(kw_only=True, slots=True)
class SubnetRecord:
    """One subnet."""

    id: str
    zone: str
    zone_id: str
    vpc: str
    free_addresses: int


@attrs.frozen(kw_only=True, slots=True)
class SecurityGroupRecord:
    """One security group."""

    id: str
    name: str
    vpc: str


@attrs.frozen(kw_only=True, slots=True)
class ImageRecord:
    """One machine image."""

    id: str
    name: str
    architecture: str
    """As EC2 spells it: `x86_64` or `arm64`."""
    created: datetime
    deprecated_at: datetime | None


@attrs.frozen(kw_only=True, slots=True)
class ReservationRecord:
    """One capacity reservation."""

    id: str
    instance_type: str
    zone: str
    owner: str
    match_criteria: str
    reservation_type: str
    """As EC2 spells it; empty means `default`."""
    available: int
    """Instances that can still be launched into it."""
    end: datetime | None


@attrs.frozen(kw_only=True, slots=True)
class InstanceRecord:
    """One instance."""

    id: str
    instance_type: str
    image_id: str
    zone: str
    zone_id: str
    state: str
    launched: datetime
    subnet: str
    security_groups: frozenset[str]
    tags: Mapping[str, str]
    spot: bool
    reservation_id: str
    reservations_only: bool
    """Its reservation preference is `capacity-reservations-only`."""
    capacity_block: bool
    tenancy: str
    efa_interfaces: int


@attrs.frozen(kw_only=True, slots=True)
class StatusRecord:
    """What EC2's checks say of one instance."""

    id: str
    instance_failures: tuple[datetime, ...] = ()
    """Since when each failed check of the instance has failed."""
    system_failures: tuple[datetime, ...] = ()
    """The same of the host below it."""
    events: tuple[str, ...] = ()
    """Codes of scheduled events, such as `instance-retirement`."""


@attrs.frozen(kw_only=True, slots=True)
class TemplateRecord:
    """One launch template."""

    id: str
    name: str
    tags: Mapping[str, str]


@attrs.frozen(kw_only=True, slots=True)
class ProfileRecord:
    """One instance profile."""

    name: str
    path: str
    roles: tuple[str, ...]
    """Role names, at most one."""


@attrs.frozen(kw_only=True, slots=True)
class FleetInstance:
    """One instance of a fleet's answer, with the override that it came from."""

    id: str
    instance_type: str
    zone: str
    subnet: str
    image_id: str
    template: str
    """Launch template name, empty when EC2 did not say."""
    spot: bool


@attrs.frozen(kw_only=True, slots=True)
class FleetError:
    """One override that could not be had."""

    code: str
    message: str
    instance_type: str
    zone: str
    subnet: str
    template: str


@attrs.frozen(kw_only=True, slots=True)
class FleetResult:
    """The answer of one CreateFleet call."""

    instances: tuple[FleetInstance, ...]
    errors: tuple[FleetError, ...]

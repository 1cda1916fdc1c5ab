"""What the sandbox knows of EC2 resources that moto has no field for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs

__all__ = ["CapacityReservation", "Impairment", "InstanceRecord", "PlacementGroup"]


@attrs.define(kw_only=True)
class InstanceRecord:
    """The rest of an instance, kept beside moto's object."""

    region: str
    capacity_type: str
    """"on-demand", "spot" or "capacity-block"."""
    spot_request_id: str | None = None
    capacity_reservation_id: str | None = None
    reservation_specification: Mapping[str, Any] = attrs.field(factory=dict)
    tenancy: str = "default"
    placement_group: str | None = None
    profile: tuple[str, str] | None = None
    """(ARN, id) of the instance profile."""
    interfaces: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    """Network interface id → the launch's specification of it."""
    client_token: str | None = None
    version: int = 0
    """Counts changes that DescribeInstances shows; with the tags it keys the cached answer."""
    rendered: tuple[Any, str] | None = attrs.field(default=None, repr=False)
    """(key, XML) of the last answer."""


@attrs.define(kw_only=True)
class CapacityReservation:
    """An on-demand capacity reservation or a capacity block."""

    id: str
    region: str
    owner_id: str
    instance_type: str
    zone: str
    zone_id: str
    total: int
    created: datetime
    match_criteria: str = "open"
    """"open" or "targeted"."""
    reservation_type: str = "default"
    """"default" or "capacity-block"."""
    state: str = "active"
    tenancy: str = "default"
    platform: str = "Linux/UNIX"
    end: datetime | None = None
    used_by: set[str] = attrs.field(factory=set)
    """Ids of instances that run in it."""

    @property
    def available(self) -> int:
        """How many more instances fit."""
        return max(self.total - len(self.used_by), 0)


@attrs.frozen(kw_only=True)
class PlacementGroup:
    """A placement group."""

    id: str
    region: str
    name: str
    strategy: str
    partition_count: int | None = None
    spread_level: str | None = None


@attrs.frozen(kw_only=True)
class Impairment:
    """What is wrong with one instance."""

    since: datetime
    check: str = ""
    """The failed check: "instance" or "system"; empty for none."""
    event: str = ""
    """Code of a scheduled event, such as "instance-retirement"; empty for none."""

"""Everything the sandbox's AWS keeps beside moto's own backends, and the one lock around both.

One `World` belongs to one server; moto's backends are process-wide, so a process runs one server at a time.
Service modules take the world as an argument and use it under `world.lock` (the application holds it for
every call but long polls). It owns no behaviour of a service.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import attrs

from sandbox.aws.ec2.lifecycle import Lifecycle
from sandbox.aws.ec2.records import CapacityReservation, Impairment, InstanceRecord, PlacementGroup
from sandbox.aws.faults import Faults, Shortages
from sandbox.aws.recorder import RequestLog

__all__ = ["ACCOUNT", "ClusterEndpoint", "NodeBoot", "Timings", "World"]

ACCOUNT = "123456789012"
"""The one account of the sandbox (moto's default)."""


@attrs.frozen(kw_only=True)
class Timings:
    """How long EC2 takes for things, settable while the sandbox runs."""

    boot: timedelta = timedelta(seconds=1)
    """pending → running."""
    shutdown: timedelta = timedelta(seconds=2)
    """shutting-down → terminated, stopping → stopped."""
    purge: timedelta = timedelta(hours=1)
    """How long a terminated instance can still be described."""


@attrs.frozen(kw_only=True)
class NodeBoot:
    """What `sandbox.nodes` asks for: how instances become nodes."""

    boot_seconds: float = 5.0
    """Seconds from running to a registered node."""
    never_join: tuple[str, ...] = ()
    """Patterns of instance id, type, or zone whose instances never register."""


@attrs.frozen(kw_only=True)
class ClusterEndpoint:
    """The local API server that every EKS cluster of the sandbox stands for."""

    endpoint: str
    certificate_authority: str
    """Base64 of the PEM."""


@attrs.define(kw_only=True)
class World:
    """The sandbox's state beside moto's."""

    now: Callable[[], datetime]
    """The current instant, aware, UTC."""
    region: str
    lock: threading.RLock = attrs.field(factory=threading.RLock)
    timings: Timings = Timings()
    node_boot: NodeBoot = NodeBoot()
    cluster_endpoint: ClusterEndpoint | None = None
    spot_role_required: bool = False
    """Whether spot launches fail without the role AWSServiceRoleForEC2Spot."""
    faults: Faults = attrs.field(factory=Faults)
    shortages: Shortages = attrs.field(factory=Shortages)
    requests: RequestLog = attrs.field(factory=RequestLog)
    lifecycle: Lifecycle = attrs.field(factory=Lifecycle)
    instances: dict[str, InstanceRecord] = attrs.field(factory=dict)
    """By instance id, until purged."""
    capacity_reservations: dict[str, CapacityReservation] = attrs.field(factory=dict)
    placement_groups: dict[str, PlacementGroup] = attrs.field(factory=dict)
    impairments: dict[str, Impairment] = attrs.field(factory=dict)
    """By instance id."""
    image_deprecations: dict[tuple[str, str], datetime] = attrs.field(factory=dict)
    """(region, image id) → instant."""
    prepared_regions: set[str] = attrs.field(factory=set)
    """Regions whose images and parameters were loaded."""
    answered_tokens: dict[tuple[str, str, str], tuple[str, Any]] = attrs.field(factory=dict)
    """(region, operation, client token) → (request, answer)."""
    clusters: dict[tuple[str, str], Any] = attrs.field(factory=dict)
    """(region, name) → `sandbox.aws.eks.clusters.Cluster`."""

    def utc_naive(self) -> datetime:
        """Return the instant as moto keeps it: UTC without a zone."""
        return self.now().replace(tzinfo=None)

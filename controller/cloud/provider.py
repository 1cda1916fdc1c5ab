"""What the core asks of a cloud (spec core/lifecycle §14), and the errors it may get.

`controller.nodeclaims`, `controller.provisioning` and `controller.disruption` call a `Provider`; an
implementation owns every call to the cloud's API and never writes to Kubernetes objects of the core.

Errors, by what the caller should do::

    CloudError
    ├── InsufficientCapacity   delete the claim, plan again with what was learnt
    ├── NodeClassNotReady      delete the claim; the node class says why
    ├── NodeClaimNotFound      the instance is gone: go on
    └── CreateFailed           keep the claim, show reason and message, retry with back-off
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import attrs

from controller.scheduling import InstanceType, Resources
from framework.api import NodeClaim, NodePool
from framework.api.schedulingconfig import DriftSource

__all__ = [
    "CloudError",
    "CreateFailed",
    "Drifted",
    "Instance",
    "InsufficientCapacity",
    "NodeClaimNotFound",
    "NodeClassNotReady",
    "Provider",
    "RepairPolicy",
]


class CloudError(Exception):
    """Anything the cloud refused; the subclasses say what the caller should do."""


class InsufficientCapacity(CloudError):
    """No instance could be had for this claim now."""


class NodeClassNotReady(CloudError):
    """The claim's node class is missing, deleting or not ready."""


class NodeClaimNotFound(CloudError):
    """No instance stands behind this provider id."""


class CreateFailed(CloudError):
    """A launch failed for a reason the user should see; `reason` is CamelCase (spec aws/launch §8.3)."""

    def __init__(self, reason: str, message: str) -> None:
        """Keep the condition reason and the message for the claim's `Launched` condition."""
        super().__init__(message)
        self.reason = reason
        self.message = message


@attrs.frozen(kw_only=True)
class Instance:
    """A machine in the cloud as the core sees it; also the answer to a create."""

    provider_id: str
    image_id: str
    capacity: Resources
    """All the machine has; empty for instances that were listed, not created."""
    allocatable: Resources
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    created: datetime
    tags: Mapping[str, str] = attrs.field(factory=dict)
    deleting: bool = False
    """The cloud is already ending it."""


@attrs.frozen(kw_only=True)
class RepairPolicy:
    """A node condition that, held for `toleration`, makes the node be replaced (spec core/lifecycle §13)."""

    condition_type: str
    status: str
    toleration: timedelta


@attrs.frozen(kw_only=True)
class Drifted:
    """That a machine is not what is asked for any more."""

    reason: str
    """CamelCase, for the claim's `Drifted` condition."""
    message: str
    """What differs: the field, what it was and what it is to be."""


class Provider(Protocol):
    """One cloud."""

    @property
    def name(self) -> str:
        """Return the provider's name in metric labels, for instance ``aws``."""
        ...

    @property
    def node_class_kinds(self) -> frozenset[tuple[str, str]]:
        """Return the (group, kind) pairs of the node classes it supports."""
        ...

    @property
    def well_known_labels(self) -> frozenset[str]:
        """Return the label keys that every instance type defines, beyond the core's."""
        ...

    def repair_policies(self) -> Sequence[RepairPolicy]:
        """Return the node conditions that node repair watches."""
        ...

    async def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        """Return every type for the pool's node class, unavailable ones included.

        Raises: NodeClassNotReady; CloudError when discovery has not succeeded yet.
        """
        ...

    async def create(self, claim: NodeClaim) -> Instance:
        """Launch an instance for the claim; idempotent by the claim's UID.

        Raises: InsufficientCapacity, NodeClassNotReady, CreateFailed, CloudError.
        """
        ...

    async def get(self, provider_id: str) -> Instance:
        """Return the instance. Raises: NodeClaimNotFound, CloudError."""
        ...

    async def list(self) -> Sequence[Instance]:
        """Return every instance of this cluster that is not terminated. Raises: CloudError."""
        ...

    async def delete(self, provider_id: str) -> None:
        """Start (or go on) ending the instance. Raises: NodeClaimNotFound once it is gone, CloudError."""
        ...

    async def drift(
        self, claim: NodeClaim, pool: NodePool, *, ignored: frozenset[DriftSource] = frozenset()
    ) -> Drifted | None:
        """Return how the claim's machine differs from what the pool's class asks for, or None.

        Raises: NodeClaimNotFound, CloudError.
        """
        ...

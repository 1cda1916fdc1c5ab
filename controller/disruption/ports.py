"""What disruption asks of its surroundings, as protocols.

`charpente run` passes in the mirror, the provisioner's claim writer and the executor that planning runs
on; tests pass small fakes. Nothing here is implemented in this package.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from controller.cluster import Node
from controller.kube import Event, Kind, WireObject
from controller.scheduling import InstanceType, PlannedClaim, Pod, Snapshot
from framework.api import NodeClaim, NodePool

__all__ = ["Cluster", "InstanceTypes", "Launcher", "Offload", "Publisher"]

T = TypeVar("T")

InstanceTypes = Callable[[NodePool], Awaitable[Sequence[InstanceType]]]
"""Lists a pool's instance types, overlays applied. Raises CloudError when they cannot be had."""


class Offload(Protocol):
    """Runs planning where it does not hold up the event loop."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """Return what the work returns."""
        ...


class Publisher(Protocol):
    """Takes events; `controller.kube.Recorder` is one."""

    def publish(self, *events: Event) -> None:
        """Send the events that are news."""
        ...


class Cluster(Protocol):
    """The mirror."""

    @property
    def claims(self) -> Mapping[str, NodeClaim]:
        """Return the NodeClaims by name, live."""
        ...

    @property
    def pools(self) -> Mapping[str, NodePool]:
        """Return the NodePools by name, live."""
        ...

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Return the Nodes by name, live."""
        ...

    def is_synced(self) -> bool:
        """Return whether decisions may be made."""
        ...

    def snapshot(self, now: datetime) -> Snapshot:
        """Return everything as of now, frozen."""
        ...

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return one pod, or None."""
        ...

    def consolidation_stamp(self, now: datetime) -> Hashable:
        """Return a value that differs when something changed that consolidation cares for."""
        ...

    def mark_for_deletion(self, claim_names: Iterable[str]) -> None:
        """Note that these claims' nodes go away by a command."""
        ...

    def unmark_for_deletion(self, claim_names: Iterable[str]) -> None:
        """Take the note back."""
        ...

    def nominate(self, node_name: str, until: datetime) -> None:
        """Note that pods count on the node until then."""
        ...

    def apply(self, kind: Kind, obj: WireObject) -> None:
        """Take the answer to one of our own writes."""
        ...


class Launcher(Protocol):
    """Writes claims."""

    async def launch(self, planned: PlannedClaim, pool: NodePool, *, reason: str) -> str:
        """Create the planned claim and return its name; raises when it cannot be created."""
        ...

    async def launch_static(self, pool: NodePool, *, reason: str) -> str:
        """Create a claim straight from the pool's template and return its name."""
        ...

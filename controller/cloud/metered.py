"""A provider whose calls are timed and whose errors are counted (spec core/observability §1.4).

Wrapped around the real provider by `charpente run`; changes no answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

import structlog

from controller.clock import Clock
from controller.cloud.provider import (
    CloudError,
    Drifted,
    Instance,
    InsufficientCapacity,
    NodeClaimNotFound,
    NodeClassNotReady,
    Provider,
    RepairPolicy,
)
from controller.observability import Metrics
from controller.scheduling import InstanceType
from framework.api import NodeClaim, NodePool
from framework.api.schedulingconfig import DriftSource

__all__ = ["MeteredProvider"]

_NAMES: Final = (
    (InsufficientCapacity, "InsufficientCapacityError"),
    (NodeClaimNotFound, "NodeClaimNotFoundError"),
    (NodeClassNotReady, "NodeClassNotReadyError"),
)


class MeteredProvider:
    """A `Provider` around another."""

    def __init__(self, provider: Provider, metrics: Metrics, clock: Clock) -> None:
        """Keep the arguments."""
        self._provider = provider
        self._metrics = metrics.cloud
        self._clock = clock

    @property
    def name(self) -> str:
        """Return the provider's name."""
        return self._provider.name

    @property
    def node_class_kinds(self) -> frozenset[tuple[str, str]]:
        """Return the (group, kind) pairs of the node classes it supports."""
        return self._provider.node_class_kinds

    @property
    def well_known_labels(self) -> frozenset[str]:
        """Return the label keys that every instance type defines, beyond the core's."""
        return self._provider.well_known_labels

    def repair_policies(self) -> Sequence[RepairPolicy]:
        """Return the node conditions that node repair watches."""
        return self._provider.repair_policies()

    async def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        """Return every type for the pool's node class; raises as the provider does."""
        with self._timed("GetInstanceTypes"):
            return await self._provider.instance_types(pool)

    async def create(self, claim: NodeClaim) -> Instance:
        """Launch an instance for the claim; raises as the provider does."""
        with self._timed("Create"):
            return await self._provider.create(claim)

    async def get(self, provider_id: str) -> Instance:
        """Return the instance; raises as the provider does."""
        with self._timed("Get"):
            return await self._provider.get(provider_id)

    async def list(self) -> Sequence[Instance]:
        """Return every instance of this cluster; raises as the provider does."""
        with self._timed("List"):
            return await self._provider.list()

    async def delete(self, provider_id: str) -> None:
        """Start ending the instance; raises as the provider does."""
        with self._timed("Delete"):
            await self._provider.delete(provider_id)

    async def drift(
        self, claim: NodeClaim, pool: NodePool, *, ignored: frozenset[DriftSource] = frozenset()
    ) -> Drifted | None:
        """Return how the machine differs from what is asked for; raises as the provider does."""
        with self._timed("IsDrifted"):
            return await self._provider.drift(claim, pool, ignored=ignored)

    @contextlib.contextmanager
    def _timed(self, method: str) -> Iterator[None]:
        caller = str(structlog.contextvars.get_contextvars().get("controller", ""))
        labels = {"controller": caller, "method": method, "provider": self.name}
        started = self._clock.monotonic()
        try:
            yield
        except CloudError as exc:
            error = next((name for kind, name in _NAMES if isinstance(exc, kind)), "")
            self._metrics.errors.labels(**labels, error=error).inc()
            raise
        finally:
            self._metrics.duration.labels(**labels).observe(self._clock.monotonic() - started)

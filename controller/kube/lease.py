"""Leader election on a Lease: of all replicas one acts, the others stand by.

Used by `charpente run`. Owns the Lease object named by the settings and nothing else. A leader that
cannot renew within its own deadline gives up by itself, so two never act at once; on a graceful stop
the lease is released and the next replica takes over within a retry. Spec: core/observability §7.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final

import attrs
import structlog

from controller.clock import Clock
from controller.kube.client import Client, WireObject
from controller.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from controller.kube.kinds import LEASE

__all__ = ["LeaderElector", "LeaseSettings"]

_log: Final = structlog.get_logger("controller")
_STAMP: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


@attrs.frozen(kw_only=True)
class LeaseSettings:
    """Which lease, who we are, and the times of the election."""

    name: str
    namespace: str
    identity: str
    duration: timedelta = timedelta(seconds=15)
    """How long others wait after our last renewal before they take over."""
    renew_deadline: timedelta = timedelta(seconds=10)
    """How long a leader tries to renew before it stops leading."""
    retry: timedelta = timedelta(seconds=2)


class LeaderElector:
    """Holds, renews and releases one lease."""

    def __init__(self, client: Client, settings: LeaseSettings, *, clock: Clock) -> None:
        """Keep the arguments; follower until `acquire` returns."""
        self._client = client
        self._settings = settings
        self._clock = clock
        self._observed: tuple[str, str] | None = None
        self._observed_at = 0.0
        self._leading = False

    @property
    def leading(self) -> bool:
        """Return whether we hold the lease as far as we know."""
        return self._leading

    async def acquire(self) -> None:
        """Return once the lease is ours."""
        while not await self._try():
            await self._clock.sleep(self._settings.retry.total_seconds())
        self._leading = True
        _log.info("became leader", lease=self._settings.name, identity=self._settings.identity)

    async def hold(self) -> None:
        """Renew until a whole renew deadline passes without success; then return, no longer leader."""
        renewed = self._clock.monotonic()
        while self._clock.monotonic() - renewed < self._settings.renew_deadline.total_seconds():
            await self._clock.sleep(self._settings.retry.total_seconds())
            began = self._clock.monotonic()
            if await self._try():
                renewed = began
        self._leading = False
        _log.error("leadership lost: the lease could not be renewed", lease=self._settings.name)

    async def release(self) -> None:
        """Give the lease up so that another replica need not wait; does nothing when it is not ours."""
        if not self._leading:
            return
        self._leading = False
        try:
            lease = await self._client.get(LEASE, self._settings.name, self._settings.namespace)
            if (lease.get("spec") or {}).get("holderIdentity") == self._settings.identity:
                await self._write(lease, {"holderIdentity": "", "leaseDurationSeconds": 1})
        except KubeError as exc:
            _log.info("lease could not be released; it runs out by itself", error=str(exc))

    async def _try(self) -> bool:
        """Take or renew the lease if it is free, ours or run out."""
        try:
            async with asyncio.timeout(self._settings.renew_deadline.total_seconds() / 2):
                return await self._take()
        except (Conflict, AlreadyExists):
            return False
        except (KubeError, TimeoutError) as exc:
            _log.error("lease is out of reach", lease=self._settings.name, error=str(exc) or "timed out")
            return False

    async def _take(self) -> bool:
        now = self._clock.now()
        try:
            lease = await self._client.get(LEASE, self._settings.name, self._settings.namespace)
        except NotFound:
            meta = {"name": self._settings.name, "namespace": self._settings.namespace}
            spec = {**self._spec(now), "acquireTime": now.strftime(_STAMP), "leaseTransitions": 0}
            await self._client.create(LEASE, {"metadata": meta, "spec": spec}, self._settings.namespace)
            return True
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder == self._settings.identity:
            await self._write(lease, self._spec(now))
            return True
        if holder and not self._ran_out(holder, spec):
            return False
        taken = {
            "acquireTime": now.strftime(_STAMP),
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1,
        }
        await self._write(lease, {**self._spec(now), **taken})
        return True

    def _ran_out(self, holder: str, spec: dict[str, Any]) -> bool:
        """Tell whether the holder has been silent too long, by our own clock since we saw it last move."""
        seen = (holder, str(spec.get("renewTime")))
        if seen != self._observed:
            self._observed, self._observed_at = seen, self._clock.monotonic()
            return False
        length = float(spec.get("leaseDurationSeconds") or self._settings.duration.total_seconds())
        return self._clock.monotonic() - self._observed_at > length

    def _spec(self, now: datetime) -> WireObject:
        return {
            "holderIdentity": self._settings.identity,
            "leaseDurationSeconds": int(self._settings.duration.total_seconds()),
            "renewTime": now.strftime(_STAMP),
        }

    async def _write(self, lease: WireObject, spec: WireObject) -> None:
        await self._client.patch(
            LEASE,
            self._settings.name,
            {"metadata": {"resourceVersion": lease["metadata"]["resourceVersion"]}, "spec": spec},
            namespace=self._settings.namespace,
        )

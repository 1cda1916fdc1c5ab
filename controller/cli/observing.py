"""Observe mode: everything is decided, nothing is done (`--mode=observe`).

Put together by `controller.cli.operator` instead of what acts. Plans for pending pods and looks for nodes
that could go, beside whatever controller runs the cluster; what would be done is logged, counted and kept
for `/debug/observed`, with the money it would cost or save. Writes nothing to the API server or the cloud.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import attrs
import structlog
from prometheus_client import Counter

from controller.cloud.provider import Provider
from controller.cluster import Shell, Writer
from controller.disruption import World, methods
from controller.disruption.dryrun import Decided, decide
from controller.disruption.policy import policies
from controller.disruption.ports import Offload
from controller.kube import Key, Requeue
from controller.observability.logs import ref
from controller.provisioning import launchable
from controller.scheduling import Options, PlannedClaim
from framework.api import CapacityBuffer, NodePool

__all__ = ["Observed", "ObservingLauncher", "ObservingWriter", "WouldDisrupt"]

_log: Final = structlog.get_logger("controller")
_EVERY: Final = Requeue(timedelta(minutes=1))
_UNSYNCED: Final = Requeue(timedelta(seconds=1))
_KEPT: Final = 500
"""Decisions kept for reading."""


class Observed:
    """What would have been done, newest last."""

    def __init__(self, shell: Shell) -> None:
        """Start empty."""
        self._clock = shell.clock
        self._kept: deque[Mapping[str, Any]] = deque(maxlen=_KEPT)
        self._count = Counter(
            "charpente_observed_decisions",
            "What would have been done in observe mode",
            ("action", "reason"),
            registry=shell.metrics.registry,
        )

    def note(self, action: str, reason: str, usd_per_hour: float, **details: Any) -> None:
        """Keep, count and log one decision; `usd_per_hour` is added to the bill, negative for savings."""
        entry = {
            "time": self._clock.now().isoformat(timespec="seconds"),
            "action": action,
            "reason": reason,
            "usdPerHour": round(usd_per_hour, 4),
            **details,
        }
        self._kept.append(entry)
        self._count.labels(action=action, reason=reason).inc()
        _log.info(f"would {action}", **{key: value for key, value in entry.items() if key != "time"})

    def to_json(self) -> list[Mapping[str, Any]]:
        """Return what is kept."""
        return list(self._kept)


class ObservingWriter(Writer):
    """Stands in for the writer of what planning says of objects."""

    async def capacity_buffer(self, before: CapacityBuffer, after: CapacityBuffer) -> CapacityBuffer:  # noqa: ARG002
        """Return the buffer as it would be."""
        return after


class ObservingLauncher:
    """Stands in for the writer of claims."""

    def __init__(self, observed: Observed) -> None:
        """Keep the argument."""
        self._observed = observed

    async def launch(self, planned: PlannedClaim, pool: NodePool, *, reason: str) -> str:
        """Note the claim that would be created."""
        self._observed.note(
            "create nodeclaim",
            reason,
            planned.price,
            NodePool=ref(pool.name),
            pods=len(planned.pods),
            **{"instance-types": list(planned.instance_types[:5])},
        )
        return f"{pool.name}-would-be"


@attrs.frozen(kw_only=True, eq=False)
class WouldDisrupt:
    """Looks for nodes that would go, once a minute."""

    shell: Shell
    provider: Provider
    options: Options
    offload: Offload
    observed: Observed

    name = "observe.disruption"

    async def reconcile(self, key: Key) -> Requeue:  # noqa: ARG002 - a singleton
        """Note the commands that disruption would start now."""
        mirror = self.shell.mirror
        if not mirror.is_synced():
            return _UNSYNCED
        snapshot = mirror.snapshot(self.shell.clock.now())
        types = await launchable(snapshot.pools, self.provider)
        world = World(
            snapshot=snapshot,
            claims=dict(mirror.claims),
            instance_types=types,
            options=self.options,
            policies=policies(snapshot.pools, snapshot.scheduling_configs),
        )
        decided: Decided = await self.offload(lambda: decide(world, methods()))
        for command in decided.commands:
            bill = -(command.savings or 0.0)
            self.observed.note(str(command.decision), command.reason.lower(), bill, command=command.text())
        return _EVERY

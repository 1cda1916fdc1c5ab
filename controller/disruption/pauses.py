"""Writes the `RolloutPaused` condition of pools; the loop calls it after the methods (design: rollout)."""

from __future__ import annotations

from controller.clock import Clock
from controller.disruption.history import Journal
from controller.disruption.ports import Cluster
from controller.disruption.rollout import PAUSED, pauses, target_of
from controller.disruption.world import World
from controller.kube import Client, NotFound, kinds
from framework.api import ConditionSet, NodePool

__all__ = ["RolloutPauses"]


class RolloutPauses:
    """Keeps the condition of each pool true to what its rollout does."""

    def __init__(self, client: Client, cluster: Cluster, clock: Clock, journal: Journal) -> None:
        """Keep the arguments."""
        self._client = client
        self._cluster = cluster
        self._clock = clock
        self._journal = journal

    async def sync(self, world: World) -> None:
        """Write the conditions that must change. Raises KubeError."""
        for name, message in pauses(world).items():
            await self._write(name, message)
            if message is None:
                self._journal.rollout_over(name)
        for name in world.pools:
            if not target_of(world, name):
                self._journal.rollout_over(name)

    async def _write(self, name: str, message: str | None) -> None:
        try:
            raw = await self._client.get(kinds.NODEPOOL, name)
        except NotFound:
            return
        before = ConditionSet.of(NodePool.from_wire(raw), dependents=NodePool.DEPENDENTS)
        now = self._clock.now()
        if message is None:
            after = before.set_false(PAUSED, "RolloutGoesOn", "", now=now)
        else:
            after = before.set_true(PAUSED, "ReplacementsFailed", message, now=now)
        body = {
            "metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]},
            "status": {"conditions": [condition.to_wire() for condition in after.conditions]},
        }
        answer = await self._client.patch(kinds.NODEPOOL, name, body, subresource="status")
        self._cluster.apply(kinds.NODEPOOL, answer)

"""The signs of a running command on a node and its claim: taint and condition (spec core/disruption §15, §1).

Used by the queue, which sets and takes them back, and by the loop, which clears what a killed
controller left behind. Every write is conditional on the version read.
"""

from __future__ import annotations

from typing import Final

from controller.clock import Clock
from controller.disruption.ports import Cluster
from controller.kube import Client, Conflict, NotFound, WireObject, kinds
from framework.api import ClaimCondition, ConditionSet, DisruptionReason, NodeClaim, TaintEffect, labels

__all__ = ["Marks"]

_TAINT: Final = {"key": labels.DISRUPTED_TAINT, "effect": str(TaintEffect.NO_SCHEDULE)}
_TRIES: Final = 3
"""Writes that lose a race are read again and retried this often in all."""


class Marks:
    """Sets and clears the signs."""

    def __init__(self, client: Client, cluster: Cluster, clock: Clock) -> None:
        """Keep the arguments."""
        self._client = client
        self._cluster = cluster
        self._clock = clock

    async def set(self, node_name: str, claim_name: str, reason: DisruptionReason) -> None:
        """Taint the node and say why on its claim. Raises KubeError."""
        await self._taint(node_name, wanted=True)
        await self._condition(claim_name, reason)

    async def clear(self, node_name: str | None, claim_name: str) -> None:
        """Take both back; a node or claim that is gone needs nothing. Raises KubeError."""
        if node_name is not None:
            await self._taint(node_name, wanted=False)
        await self._condition(claim_name, None)

    async def _taint(self, name: str, *, wanted: bool) -> None:
        for left in range(_TRIES - 1, -1, -1):
            try:
                return await self._write_taint(name, wanted=wanted)
            except NotFound:
                if wanted:
                    raise
                return None
            except Conflict:
                if not left:
                    raise
        return None

    async def _write_taint(self, name: str, *, wanted: bool) -> None:
        node = await self._client.get(kinds.NODE, name)
        taints = (node.get("spec") or {}).get("taints") or []
        others = [taint for taint in taints if taint.get("key") != labels.DISRUPTED_TAINT]
        after = [*others, _TAINT] if wanted else others
        if after == taints or (wanted and len(others) < len(taints)):
            return
        body = {"metadata": _version(node), "spec": {"taints": after}}
        self._cluster.apply(kinds.NODE, await self._client.patch(kinds.NODE, name, body))

    async def _condition(self, name: str, reason: DisruptionReason | None) -> None:
        for left in range(_TRIES - 1, -1, -1):
            try:
                return await self._write_condition(name, reason)
            except NotFound:
                if reason is not None:
                    raise
                return None
            except Conflict:
                if not left:
                    raise
        return None

    async def _write_condition(self, name: str, reason: DisruptionReason | None) -> None:
        raw = await self._client.get(kinds.NODECLAIM, name)
        claim = NodeClaim.from_wire(raw)
        before = ConditionSet.of(claim, dependents=NodeClaim.DEPENDENTS)
        if reason is None:
            after = before.clear(ClaimCondition.DISRUPTION_REASON)
        else:
            after = before.set_true(ClaimCondition.DISRUPTION_REASON, reason, reason, now=self._clock.now())
        if after.conditions == claim.status.conditions:
            return
        body = {
            "metadata": _version(raw),
            "status": {"conditions": [condition.to_wire() for condition in after.conditions]},
        }
        answer = await self._client.patch(kinds.NODECLAIM, name, body, subresource="status")
        self._cluster.apply(kinds.NODECLAIM, answer)


def _version(obj: WireObject) -> WireObject:
    return {"resourceVersion": obj["metadata"]["resourceVersion"]}

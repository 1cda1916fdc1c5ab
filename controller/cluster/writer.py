"""Writes what changed of an object, and nothing else.

Called by the controllers of claims, pools and nodes. Takes the object as read and as it should be,
patches the difference under the version that was read, and shows the answer to the mirror at once, so
the next reconcile sees it. Owns no decision.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from controller.cluster.mirror import Mirror
from controller.cluster.objects import Node
from controller.kube import Client, Kind, NotFound, WireObject, kinds
from framework.api import CapacityBuffer, ConditionSet, NodeClaim, NodeOverlay, NodePool, SchedulingConfig

__all__ = ["Writer", "conditions_of", "merge_difference", "with_conditions"]

Ours = TypeVar("Ours", NodeClaim, NodePool, NodeOverlay, SchedulingConfig)


def conditions_of(obj: NodeClaim | NodePool | NodeOverlay | SchedulingConfig) -> ConditionSet:
    """Return the object's conditions, ready to be changed."""
    return ConditionSet.of(obj, dependents=obj.DEPENDENTS)


def with_conditions(obj: Ours, conditions: ConditionSet) -> Ours:
    """Return the object with these conditions."""
    status = attrs.evolve(obj.status, conditions=conditions.conditions)
    return attrs.evolve(obj, status=status)


def merge_difference(before: WireObject, after: WireObject) -> WireObject:
    """Return the JSON merge patch that turns one object into the other; empty when they are the same."""
    patch: WireObject = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            patch[key] = merge_difference(old, new)
        else:
            patch[key] = new
    return patch


class Writer:
    """Patches and deletes through one client, seen by one mirror."""

    def __init__(self, client: Client, mirror: Mirror) -> None:
        """Keep the arguments."""
        self._client = client
        self._mirror = mirror

    async def claim(self, before: NodeClaim, after: NodeClaim) -> NodeClaim:
        """Write what differs between the two and return the claim as stored. Raises Conflict, NotFound."""
        stored = await self._write(kinds.NODECLAIM, before.to_wire(), after.to_wire())
        return after if stored is None else NodeClaim.from_wire(stored)

    async def pool(self, before: NodePool, after: NodePool) -> NodePool:
        """Write what differs between the two and return the pool as stored. Raises Conflict, NotFound."""
        stored = await self._write(kinds.NODEPOOL, before.to_wire(), after.to_wire())
        return after if stored is None else NodePool.from_wire(stored)

    async def overlay(self, before: NodeOverlay, after: NodeOverlay) -> NodeOverlay:
        """Write what differs between the two and return the overlay as stored. Raises Conflict, NotFound."""
        stored = await self._write(kinds.NODEOVERLAY, before.to_wire(), after.to_wire())
        return after if stored is None else NodeOverlay.from_wire(stored)

    async def scheduling_config(self, before: SchedulingConfig, after: SchedulingConfig) -> SchedulingConfig:
        """Write what differs between the two and return the config as stored. Raises Conflict, NotFound."""
        stored = await self._write(kinds.SCHEDULINGCONFIG, before.to_wire(), after.to_wire())
        return after if stored is None else SchedulingConfig.from_wire(stored)

    async def capacity_buffer(self, before: CapacityBuffer, after: CapacityBuffer) -> CapacityBuffer:
        """Write what differs between the two and return the buffer as stored. Raises Conflict, NotFound."""
        stored = await self._write(kinds.CAPACITYBUFFER, before.to_wire(), after.to_wire())
        return after if stored is None else CapacityBuffer.from_wire(stored)

    async def node(self, node: Node, patch: WireObject) -> Node:
        """Patch a node under the version that was read; lists in the patch are whole. Raises Conflict."""
        version = {"resourceVersion": node.metadata.resource_version}
        body = {**patch, "metadata": {**(patch.get("metadata") or {}), **version}}
        stored = await self._client.patch(kinds.NODE, node.name, body)
        self._mirror.apply(kinds.NODE, stored)
        return Node.from_wire(stored)

    async def delete_claim(self, claim: NodeClaim) -> bool:
        """Ask for the deletion of that very claim; False when it is gone or asked for already."""
        return not claim.deleting and await self._delete(kinds.NODECLAIM, claim.name, claim.metadata.uid)

    async def delete_node(self, node: Node) -> bool:
        """Ask for the deletion of that very node; False when it is gone or asked for already."""
        return not node.deleting and await self._delete(kinds.NODE, node.name, node.metadata.uid)

    async def _delete(self, kind: Kind, name: str, uid: str) -> bool:
        try:
            answer = await self._client.delete(kind, name, uid=uid)
        except NotFound:
            return False
        if answer.get("kind") == kind.kind:
            self._mirror.apply(kind, answer)
        return True

    async def _write(self, kind: Kind, before: WireObject, after: WireObject) -> WireObject | None:
        """Patch the object and then its status; return the last answer, None when nothing differs."""
        patch = merge_difference(before, after)
        status = patch.pop("status", None)
        meta = before["metadata"]
        stored: WireObject | None = None
        if patch:
            stored = await self._patch(kind, meta, patch, None)
            meta = stored["metadata"]
        if status:
            stored = await self._patch(kind, meta, {"status": status}, "status")
        return stored

    async def _patch(
        self, kind: Kind, meta: WireObject, patch: WireObject, subresource: str | None
    ) -> WireObject:
        """Patch the version of an object that this metadata is of."""
        version = {"resourceVersion": meta.get("resourceVersion")}
        body = {**patch, "metadata": {**(patch.get("metadata") or {}), **version}}
        stored = await self._client.patch(
            kind, meta["name"], body, namespace=meta.get("namespace") or None, subresource=subresource
        )
        self._mirror.apply(kind, stored)
        return stored

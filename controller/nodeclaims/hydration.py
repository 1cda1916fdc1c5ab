"""Hydration: objects of older versions get the label of their node class (spec core/lifecycle §12).

Two reconcilers, for NodeClaims and for Nodes that have a claim.
"""

from __future__ import annotations

import attrs

from controller.cluster import Mirror, Writer, class_label
from controller.kube import DONE, Key, Requeue

__all__ = ["ClaimHydration", "NodeHydration"]


class ClaimHydration:
    """Labels claims."""

    name = "nodeclaim.hydration"

    def __init__(self, mirror: Mirror, writer: Writer) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer

    async def reconcile(self, key: Key) -> Requeue:
        """Add the class label to one claim that lacks it."""
        claim = self._mirror.claims.get(key.name)
        reference = self._mirror.class_ref(claim) if claim is not None else None
        if claim is None or reference is None or claim.deleting or not self._mirror.is_ours(claim):
            return DONE
        label = class_label(reference.group, reference.kind)
        if label not in claim.metadata.labels:
            labelled = {**claim.metadata.labels, label: reference.name}
            metadata = attrs.evolve(claim.metadata, labels=labelled)
            await self._writer.claim(claim, attrs.evolve(claim, metadata=metadata))
        return DONE


class NodeHydration:
    """Labels nodes."""

    name = "node.hydration"

    def __init__(self, mirror: Mirror, writer: Writer) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer

    async def reconcile(self, key: Key) -> Requeue:
        """Add the class label to one node that has a claim and lacks it."""
        node = self._mirror.nodes.get(key.name)
        claim = self._mirror.claim_of(node) if node is not None else None
        reference = self._mirror.class_ref(claim) if claim is not None else None
        if node is None or reference is None or node.deleting:
            return DONE
        label = class_label(reference.group, reference.kind)
        if label not in node.labels:
            await self._writer.node(node, {"metadata": {"labels": {label: reference.name}}})
        return DONE

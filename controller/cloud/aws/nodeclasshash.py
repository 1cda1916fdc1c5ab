"""The `nodeclass.hash` reconciler: the static drift hash on each EC2NodeClass (spec aws/ec2nodeclass §6).

Run by `charpente run`. Owns the two annotations on the class, and their migration on claims when the
way of hashing changed: a new version never makes a node drift.
"""

from __future__ import annotations

from controller.cluster import Mirror
from controller.kube import Client, Key, NotFound, Requeue, kinds
from framework.api import (
    EC2NODECLASS_HASH_VERSION,
    ClaimCondition,
    NodeClaim,
    conditions,
    labels,
)
from framework.api.hashes import HashedDocument, ec2nodeclass_document

__all__ = ["HashReconciler"]


class HashReconciler:
    """Writes one class's hash."""

    name = "nodeclass.hash"

    def __init__(self, client: Client, mirror: Mirror) -> None:
        """Take where to read and write."""
        self._client = client
        self._mirror = mirror

    async def reconcile(self, key: Key) -> Requeue:
        """Bring the annotations up to date, claims first. Raises: KubeError."""
        node_class = self._mirror.ec2nodeclass(key.name)
        if node_class is None or node_class.metadata.deletion_timestamp is not None:
            return Requeue()
        document = ec2nodeclass_document(node_class)
        wanted = {
            labels.NODECLASS_HASH: document.hash,
            labels.NODECLASS_HASH_VERSION: EC2NODECLASS_HASH_VERSION,
        }
        stored = node_class.metadata.annotations
        version = stored.get(labels.NODECLASS_HASH_VERSION)
        if version is not None and version != EC2NODECLASS_HASH_VERSION:
            for claim in list(self._mirror.claims.values()):
                reference = self._mirror.class_ref(claim)
                if reference is not None and reference.name == key.name:
                    await self._migrate(claim, document)
        if any(stored.get(name) != value for name, value in wanted.items()):
            answer = await self._client.patch(
                kinds.EC2NODECLASS, key.name, {"metadata": {"annotations": wanted}}
            )
            self._mirror.apply(kinds.EC2NODECLASS, answer)
        return Requeue()

    async def _migrate(self, claim: NodeClaim, document: HashedDocument) -> None:
        stored = claim.metadata.annotations
        if stored.get(labels.NODECLASS_HASH_VERSION) == EC2NODECLASS_HASH_VERSION:
            return
        notes = {labels.NODECLASS_HASH_VERSION: EC2NODECLASS_HASH_VERSION}
        if conditions.get(claim.status.conditions, ClaimCondition.DRIFTED) is None:
            notes |= {
                labels.NODECLASS_HASH: document.hash,
                labels.NODECLASS_HASH_DOCUMENT: document.text,
            }
        try:
            answer = await self._client.patch(
                kinds.NODECLAIM, claim.metadata.name, {"metadata": {"annotations": notes}}
            )
        except NotFound:
            return
        self._mirror.apply(kinds.NODECLAIM, answer)

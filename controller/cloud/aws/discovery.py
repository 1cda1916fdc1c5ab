"""The `providers.instancetype.capacity` reconciler: learns memory from real nodes (spec aws/instances §3.1).

Run by `charpente run` for each Node. A node that reports less than was predicted corrects its type at
once, so that the next plan does not choose the same too-small machine again.
"""

from __future__ import annotations

from controller.cloud.aws.images import image_for
from controller.cloud.aws.learned import images_key
from controller.cloud.aws.parts import Parts
from controller.cloud.provider import CloudError
from controller.cluster import Mirror
from controller.kube import Key, Requeue
from framework.api import labels

__all__ = ["CapacityDiscovery"]


class CapacityDiscovery:
    """Remembers what registered nodes report."""

    name = "providers.instancetype.capacity"

    def __init__(self, parts: Parts, mirror: Mirror) -> None:
        """Teach the parts' instance types."""
        self._types = parts.types
        self._mirror = mirror

    async def reconcile(self, key: Key) -> Requeue:
        """Learn from a registered node that runs its type's current image."""
        node = self._mirror.nodes.get(key.name)
        if node is None or node.labels.get(labels.REGISTERED) != "true":
            return Requeue()
        memory = node.capacity.get("memory", 0)
        claim = self._mirror.claim_of(node)
        reference = None if claim is None else self._mirror.class_ref(claim)
        node_class = None if reference is None else self._mirror.ec2nodeclass(reference.name)
        if claim is None or node_class is None or not memory:
            return Requeue()
        try:
            kind = self._types.find(node_class, node.labels.get(labels.INSTANCE_TYPE, ""))
        except CloudError:
            return Requeue()  # the class has no subnets just now; the next node teaches
        current = None if kind is None else image_for(node_class.status.amis, kind.requirements)
        if kind is not None and current is not None and current.id == claim.status.image_id:
            self._types.learned.learn(kind.name, images_key(node_class.status.amis), memory)
        return Requeue()

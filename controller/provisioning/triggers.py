"""What makes the provisioner plan: pods that cannot be scheduled, nodes about to go, room to keep free.

Reconcilers that only put UIDs into the batch, again every 10 s while it still holds (spec
core/scheduling §1). A claim that was given up triggers once, so that its pods are planned again at once
with what the failure taught.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from controller.cluster import Mirror
from controller.kube import DONE, Change, Key, Requeue
from controller.provisioning.batcher import Batcher
from controller.scheduling import is_provisionable
from framework.api import NodeClaim, labels

__all__ = ["ClaimTrigger", "HeadroomTrigger", "NodeTrigger", "PodTrigger", "given_up"]

_AGAIN: Final = Requeue(timedelta(seconds=10))


class PodTrigger:
    """Triggers for every provisionable pod."""

    name = "provisioner.trigger.pod"

    def __init__(self, mirror: Mirror, batcher: Batcher) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._batcher = batcher

    async def reconcile(self, key: Key) -> Requeue:
        """Put the pod into the batch if it waits for a node."""
        pod = self._mirror.pod(key.namespace or "", key.name)
        if pod is None or not is_provisionable(pod):
            return DONE
        self._batcher.trigger(pod.uid)
        return _AGAIN


class NodeTrigger:
    """Triggers for every node that is being emptied, whose pods need a place."""

    name = "provisioner.trigger.node"

    def __init__(self, mirror: Mirror, batcher: Batcher) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._batcher = batcher

    async def reconcile(self, key: Key) -> Requeue:
        """Put the node into the batch if it carries the disrupted taint."""
        node = self._mirror.nodes.get(key.name)
        if node is None or not any(taint.key == labels.DISRUPTED_TAINT for taint in node.taints):
            return DONE
        self._batcher.trigger(node.metadata.uid)
        return _AGAIN


class HeadroomTrigger:
    """Triggers for every SchedulingConfig that wants room kept free, as pods take it up at any time."""

    name = "provisioner.trigger.headroom"

    def __init__(self, mirror: Mirror, batcher: Batcher) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._batcher = batcher

    async def reconcile(self, key: Key) -> Requeue:
        """Put the config into the batch if it has headroom."""
        config = self._mirror.scheduling_configs.get(key.name)
        if config is None or config.deleting or not config.spec.headroom:
            return DONE
        self._batcher.trigger(config.metadata.uid)
        return _AGAIN


def given_up(change: Change) -> Iterable[Key]:
    """Return the claim of a change that ends it before it got an instance."""
    before: NodeClaim | None = change.old
    after: NodeClaim | None = change.new
    ended = before is not None and not before.status.provider_id and (after is None or after.deleting)
    return (Key(name=before.name),) if before is not None and ended else ()


class ClaimTrigger:
    """Triggers for every claim that was given up: its pods wait for nothing any more."""

    name = "provisioner.trigger.claim"

    def __init__(self, batcher: Batcher) -> None:
        """Keep the argument."""
        self._batcher = batcher

    async def reconcile(self, key: Key) -> Requeue:
        """Put the claim into the batch; it may be gone already."""
        self._batcher.trigger(f"NodeClaim/{key.name}")
        return DONE

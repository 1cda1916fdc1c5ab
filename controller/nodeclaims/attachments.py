"""Which volumes still hold a drained node (spec core/lifecycle §8.2).

Called by node termination; reads the mirror. Detaching is the attach-detach controller's work.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from controller.cluster import Mirror, VolumeAttachment
from controller.nodeclaims.drain import is_drainable
from controller.scheduling import Pod

__all__ = ["awaited_attachments"]


def awaited_attachments(
    mirror: Mirror, node_name: str, pods: Iterable[Pod], now: datetime
) -> tuple[VolumeAttachment, ...]:
    """Return the node's attachments that must go first, by name.

    Volumes of pods that stay until the end do not count, nor do attachments without a volume.
    """
    staying = {
        f"{pod.namespace}/{claim}"
        for pod in pods
        if not is_drainable(pod, now)
        for claim in pod.volume_claims
    }
    awaited = [
        attachment
        for attachment in mirror.attachments_on(node_name)
        if attachment.volume_name
        and not any(claim.key in staying for claim in mirror.volumes.claims_of_volume(attachment.volume_name))
    ]
    return tuple(sorted(awaited, key=lambda each: each.metadata.name))

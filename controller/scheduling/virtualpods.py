"""Pods that stand for room kept free: marks, and those of CapacityBuffers (spec core/scheduling §16).

Made by `headroom_pods` of SchedulingConfigs and of buffers that their controller has resolved; known by
their annotations only. They open nodes and keep them like real pods, but are never bound or nominated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from controller.scheduling.pods import Pod
from framework.api import labels

__all__ = ["Buffer", "buffer_pods", "headroom_owner", "is_virtual"]

LEAST_PRIORITY: Final = -(2**31)


@attrs.frozen(kw_only=True)
class Buffer:
    """A CapacityBuffer as its controller resolved it: room for so many pods like the sample."""

    namespace: str
    name: str
    uid: str
    sample: Pod
    """A pod of the buffer's template, without volumes."""
    replicas: int

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


def buffer_pods(buffers: Iterable[Buffer]) -> Iterator[Pod]:
    """Yield the virtual pods of the buffers, by buffer and number."""
    for buffer in sorted(buffers, key=lambda each: each.key):
        marks = {
            labels.BUFFER_POD: "true",
            labels.BUFFER_NAME: buffer.name,
            labels.BUFFER_NAMESPACE: buffer.namespace,
        }
        for number in range(1, buffer.replicas + 1):
            yield attrs.evolve(
                buffer.sample,
                name=f"capacity-buffer-{buffer.name}-{number}",
                uid=f"{buffer.uid}-{number}",
                annotations=marks,
                priority=LEAST_PRIORITY,
                node_name=None,
                volume_claims=(),
            )


def is_virtual(pod: Pod) -> bool:
    """Tell whether a pod stands for room kept free."""
    return labels.HEADROOM in pod.annotations or labels.BUFFER_POD in pod.annotations


def headroom_owner(pod: Pod) -> str:
    """Return kind and name of the object that asks for a virtual pod's room."""
    marks = pod.annotations
    if labels.HEADROOM in marks:
        return f"SchedulingConfig/{marks[labels.HEADROOM].partition('/')[0]}"
    return f"CapacityBuffer/{marks[labels.BUFFER_NAMESPACE]}/{marks[labels.BUFFER_NAME]}"

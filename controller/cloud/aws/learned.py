"""What real nodes taught about memory (spec aws/instances §3.1, "discovered capacity").

Written when a node registers, read when instance types are resolved. A machine that reports less than
the formula predicts corrects the prediction for its type and images at once, so that the same
too-small node is not launched again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from controller.clock import Clock
from controller.cloud.aws.ttl import TtlCache
from framework.api.ec2nodeclass import Ami

__all__ = ["LearnedMemory", "images_key"]

_TTL: Final = timedelta(days=60)


def images_key(amis: Sequence[Ami]) -> str:
    """Return a short name for a class's images: other images may leave other memory."""
    text = "\n".join(sorted(f"{ami.id} {ami.requirements}" for ami in amis))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class LearnedMemory:
    """Memory in bytes by instance type and images."""

    def __init__(self, clock: Clock) -> None:
        """Start knowing nothing."""
        self._bytes: TtlCache[tuple[str, str], int] = TtlCache(clock, _TTL)
        self.version = 0

    def get(self, instance_type: str, images: str) -> int | None:
        """Return the capacity that a node of this type and images reported, or None."""
        return self._bytes.get((instance_type, images))

    def learn(self, instance_type: str, images: str, memory_bytes: int) -> None:
        """Remember a report, unless a smaller one is known."""
        known = self.get(instance_type, images)
        if known is not None and memory_bytes > known:
            return
        if known != memory_bytes:
            self.version += 1
        self._bytes.put((instance_type, images), memory_bytes)

"""Runs one reflector per mirrored kind.

Called by `charpente run` and by commands that want a live mirror. Owns nothing but the tasks.
"""

from __future__ import annotations

import asyncio
from random import Random

from controller.clock import Clock
from controller.cluster.mirror import Mirror
from controller.kube import Client, Reflector

__all__ = ["watch_all"]


async def watch_all(client: Client, mirror: Mirror, *, clock: Clock, random: Random) -> None:
    """Keep every kind of the mirror current until cancelled."""
    async with asyncio.TaskGroup() as group:
        for kind in mirror.kinds:
            reflector = Reflector(client, kind, mirror.store(kind), clock=clock, random=random)
            group.create_task(reflector.run(), name=f"reflector {kind.resource}")

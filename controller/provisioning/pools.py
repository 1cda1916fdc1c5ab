"""Which pools may be planned with, and what they can launch (spec core/scheduling §4).

Called by the provisioner at the start of a round. Asks the provider for instance types; pools that cannot be
used now are left out and logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import structlog

from controller.cloud.provider import CloudError, Provider
from controller.observability.logs import ref
from controller.scheduling import InstanceType
from framework.api import NodePool
from framework.api.conditions import READY, is_true

__all__ = ["is_dynamic", "is_ready", "launchable", "usable"]

_log: Final = structlog.get_logger("controller")


def is_dynamic(pool: NodePool) -> bool:
    """Tell whether the pool grows with its pods, unlike one with fixed replicas."""
    return pool.spec.replicas is None


def is_ready(pool: NodePool) -> bool:
    """Tell whether the pool's Ready condition is True for the spec it has now."""
    return is_true(pool.status.conditions, READY, generation=pool.metadata.generation)


async def launchable(pools: Iterable[NodePool], provider: Provider) -> Mapping[str, tuple[InstanceType, ...]]:
    """Return the instance types of every pool that may launch nodes now, by pool name."""
    growing = usable(pools)
    found = await asyncio.gather(*(_types(pool, provider) for pool in growing))
    return {pool.name: tuple(types) for pool, types in zip(growing, found, strict=True) if types}


def usable(pools: Iterable[NodePool]) -> list[NodePool]:
    """Return the pools that may launch nodes for pods now."""
    return [pool for pool in pools if is_dynamic(pool) and not pool.deleting and _checked(pool)]


def _checked(pool: NodePool) -> bool:
    if not is_ready(pool):
        _log.error("pool is not ready and is not planned with", NodePool=ref(pool.name))
        return False
    return True


async def _types(pool: NodePool, provider: Provider) -> Sequence[InstanceType]:
    try:
        return await provider.instance_types(pool)
    except CloudError as exc:
        _log.error(
            "instance types cannot be had; pool is not planned with", NodePool=ref(pool.name), error=str(exc)
        )
        return ()

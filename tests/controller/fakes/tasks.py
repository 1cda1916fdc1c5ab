"""Loops that run beside a test, and are gone when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def beside(loop: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run the loop during the block; its connections are closed when the block is left."""
    task = asyncio.create_task(loop)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

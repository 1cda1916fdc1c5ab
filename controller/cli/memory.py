"""Keeps the process under its memory limit: gives back what is free before the kernel takes the process.

Run by `charpente run` beside everything else when MEMORY_LIMIT is set (spec core/observability §5). Reads
the process's own size and frees; never drops anything that is in use.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from controller.clock import Clock

__all__ = ["resident_bytes", "stay_under"]

_log: Final = structlog.get_logger("controller")
_SOFT: Final = 0.9
_EVERY_S: Final = 10.0
_STATM: Final = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _free() -> None:
    """Collect garbage and hand free pages back to the kernel, where the C library can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


async def stay_under(
    limit: int,
    clock: Clock,
    *,
    resident: Callable[[], int] = resident_bytes,
    free: Callable[[], None] = _free,
) -> None:
    """Look every 10 s until cancelled, and free memory from 90 % of the limit (bytes) on."""
    soft = int(limit * _SOFT)
    while True:
        before = resident()
        if before > soft:
            free()
            _log.info("freed memory near the limit", limit=limit, before=before, after=resident())
        await clock.sleep(_EVERY_S)

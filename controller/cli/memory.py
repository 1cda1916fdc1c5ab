"""The process's memory: how often garbage is looked for, and what is given back near the limit.

Used by `charpente run`: rare collections from the start, and `stay_under` beside everything else when
MEMORY_LIMIT is set (spec core/observability §5). Never drops anything that is in use.
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

__all__ = ["collect_rarely", "resident_bytes", "stay_under"]

_log: Final = structlog.get_logger("controller")
_SOFT: Final = 0.9
_EVERY_S: Final = 10.0
_YOUNG: Final = 20_000
"""New objects between two looks at the young ones; Python's own is 700."""
_OLDER: Final = (20, 20)
_STATM: Final = Path("/proc/self/statm")


def collect_rarely() -> None:
    """Let the interpreter look for garbage less often: the mirror is millions of small objects that stay.

    With Python's own thresholds reading a large cluster spends a quarter of its time looking through them.
    """
    gc.set_threshold(_YOUNG, *_OLDER)


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

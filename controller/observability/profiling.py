"""Profiles of a running replica at `/debug/pprof/…`, behind ENABLE_PROFILING (core/observability §4).

Served by the endpoints. `profile` says where the event loop's time goes, `tasks` what every task waits
for. Nothing is measured until somebody asks.
"""

from __future__ import annotations

import asyncio
import cProfile
import io
import pstats
from typing import Final

from aiohttp import web

__all__ = ["Profiling"]

_SECONDS: Final = 30.0
_LONGEST_S: Final = 300.0
_SHOWN: Final = 100
"""Functions of a profile that are listed."""


class Profiling:
    """Answers requests for profiles, one at a time."""

    def __init__(self) -> None:
        """Start idle."""
        self._busy = asyncio.Lock()

    async def answer(self, request: web.Request) -> web.Response:
        """Answer `/debug/pprof/profile?seconds=N` and `/debug/pprof/tasks` in plain text."""
        name = request.match_info["profile"]
        if name == "tasks":
            return web.Response(text=_tasks())
        if name != "profile":
            return web.Response(status=404, text="profiles: profile, tasks\n")
        try:
            seconds = float(request.query.get("seconds", _SECONDS))
        except ValueError:
            seconds = -1.0
        if not 0 < seconds <= _LONGEST_S:
            return web.Response(status=400, text=f"seconds: give a number up to {_LONGEST_S:g}\n")
        if self._busy.locked():
            return web.Response(status=409, text="a profile is being taken; ask again later\n")
        async with self._busy:
            return web.Response(text=await _profile(seconds))


async def _profile(seconds: float) -> str:
    found = cProfile.Profile()
    found.enable()
    try:
        await asyncio.sleep(seconds)
    finally:
        found.disable()
    text = io.StringIO()
    pstats.Stats(found, stream=text).sort_stats("cumulative").print_stats(_SHOWN)
    return text.getvalue()


def _tasks() -> str:
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda each: each.get_name()):
        task.print_stack(file=text)
    return text.getvalue()

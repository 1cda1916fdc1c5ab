"""The endpoints of one replica: `/metrics`, `/debug/…`, `/healthz`, `/readyz` (core/observability §4).

Started by `charpente run` on every replica, leader or not. Owns two listening sockets; what makes the
process ready is a list of named checks that is passed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

import attrs
import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from controller.observability.metrics import Metrics
from controller.observability.profiling import Profiling
from framework.api import UserError

__all__ = ["Endpoints", "PortTaken", "Ports"]

Checks = Mapping[str, Callable[[], bool]]
Views = Mapping[str, Callable[[], object]]
Handler = Callable[[web.Request], Awaitable[web.Response]]


class PortTaken(UserError):
    """Another process listens where an endpoint should be."""


@attrs.frozen(kw_only=True)
class Ports:
    """Where the endpoints listen; may be one port for both."""

    metrics: int
    probes: int


class Endpoints:
    """The HTTP servers of metrics, probes and views; an async context manager."""

    def __init__(
        self,
        metrics: Metrics,
        *,
        host: str,
        ports: Ports,
        ready: Checks,
        views: Views,
        profiling: bool = False,
    ) -> None:
        """Keep the arguments; an empty host means every interface. Sockets open in `async with`.

        `views` is looked at anew for each request, so that views may be added later.
        """
        self._metrics = metrics
        self._host = host or None
        self._ready = ready
        self._views = views
        self._ports: dict[int, dict[str, Handler]] = {ports.metrics: {}, ports.probes: {}}
        self._ports[ports.metrics] |= {"/metrics": self._render, "/debug/{view}": self._view}
        if profiling:
            self._ports[ports.metrics] |= {"/debug/pprof/{profile}": Profiling().answer}
        self._ports[ports.probes] |= {"/healthz": _alive, "/readyz": self._readiness}
        self._runners: list[web.AppRunner] = []

    async def __aenter__(self) -> Self:
        """Listen. Raises PortTaken, naming the port."""
        for port, routes in self._ports.items():
            app = web.Application()
            for path, answer in routes.items():
                app.router.add_get(path, answer)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            self._runners.append(runner)
            try:
                await web.TCPSite(runner, self._host, port).start()
            except OSError as exc:
                await self._close()
                raise PortTaken(f"port {port} cannot be listened on: {exc.strerror}; choose another") from exc
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        await self._close()

    async def _close(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    async def _render(self, request: web.Request) -> web.Response:  # noqa: ARG002 - aiohttp's signature
        body = await asyncio.to_thread(self._metrics.render)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _view(self, request: web.Request) -> web.Response:
        view = self._views.get(request.match_info["view"])
        if view is None:
            return web.Response(status=404, text=f"views: {', '.join(sorted(self._views)) or 'none yet'}\n")
        body = orjson.dumps(view(), default=str, option=orjson.OPT_INDENT_2)
        return web.Response(body=body, content_type="application/json")

    async def _readiness(self, request: web.Request) -> web.Response:  # noqa: ARG002 - aiohttp's signature
        failing = sorted(name for name, holds in self._ready.items() if not holds())
        if failing:
            return web.Response(status=500, text=f"not ready: {', '.join(failing)}\n")
        return web.Response(text="ok\n")


async def _alive(request: web.Request) -> web.Response:  # noqa: ARG001 - aiohttp's signature
    return web.Response(text="ok\n")

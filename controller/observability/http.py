"""The endpoints of one replica: `/metrics`, `/healthz`, `/readyz` (spec core/observability §4).

Started by `charpente run` on every replica, leader or not. Owns two listening sockets; what makes the
process ready is a list of named checks that is passed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from controller.observability.metrics import Metrics
from framework.api import UserError

__all__ = ["Endpoints", "PortTaken"]

Checks = Mapping[str, Callable[[], bool]]


class PortTaken(UserError):
    """Another process listens where an endpoint should be."""


class Endpoints:
    """The HTTP servers of metrics and probes; an async context manager."""

    def __init__(
        self, metrics: Metrics, *, host: str, metrics_port: int, probe_port: int, ready: Checks
    ) -> None:
        """Keep the arguments; an empty host means every interface. Sockets open in `async with`."""
        self._metrics = metrics
        self._host = host or None
        self._ports = {metrics_port: {"/metrics": self._render}, probe_port: {"/healthz": _alive}}
        self._ports[probe_port]["/readyz"] = self._readiness
        self._ready = ready
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

    async def _readiness(self, request: web.Request) -> web.Response:  # noqa: ARG002 - aiohttp's signature
        failing = sorted(name for name, holds in self._ready.items() if not holds())
        if failing:
            return web.Response(status=500, text=f"not ready: {', '.join(failing)}\n")
        return web.Response(text="ok\n")


async def _alive(request: web.Request) -> web.Response:  # noqa: ARG001 - aiohttp's signature
    return web.Response(text="ok\n")

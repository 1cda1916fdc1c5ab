"""Metrics, probes, views and logs of a replica (spec core/observability §3, §4)."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog

from controller.observability import Endpoints, Metrics, Ports, PortTaken, logs


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def fetch(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


async def test_a_replica_shows_metrics_health_readiness_and_views() -> None:
    ports = Ports(metrics=free_port(), probes=free_port())
    state = {"mirror": False}
    endpoints = Endpoints(
        Metrics(),
        host="127.0.0.1",
        ports=ports,
        ready={"mirror": lambda: state["mirror"]},
        views={"decisions": lambda: [{"at": timedelta(seconds=3)}]},
    )

    async with endpoints:
        metrics = await fetch(ports.metrics, "/metrics")
        alive = await fetch(ports.probes, "/healthz")
        waiting = await fetch(ports.probes, "/readyz")
        state["mirror"] = True
        ready = await fetch(ports.probes, "/readyz")
        view = await fetch(ports.metrics, "/debug/decisions")
        unknown = await fetch(ports.metrics, "/debug/other")

    assert metrics[0] == 200
    assert "karpenter_nodeclaims_created_total" in metrics[1]
    assert (alive[0], waiting, ready[0]) == (200, (500, "not ready: mirror\n"), 200)
    assert json.loads(view[1]) == [{"at": "0:00:03"}]
    assert unknown == (404, "views: decisions\n")


async def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        ports = Ports(metrics=port, probes=free_port())

        with pytest.raises(PortTaken, match=f"port {port} cannot be listened on"):
            await Endpoints(Metrics(), host="127.0.0.1", ports=ports, ready={}, views={}).__aenter__()


@pytest.fixture
def configured() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    yield stream
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_log_line_has_the_fields_that_users_grep(configured: io.StringIO) -> None:
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    logs.configure("info", now=lambda: at, commit="abc", stream=configured)
    log = structlog.get_logger("controller")

    log.info("launched nodeclaim", NodeClaim=logs.ref("web-1"), took=timedelta(seconds=2.5))
    log.debug("not shown")
    log.warning("careful", Pod=logs.ref("a", "shop"))

    assert lines(configured) == [
        {
            "level": "INFO",
            "time": "2026-01-01T12:00:00.000Z",
            "logger": "controller",
            "message": "launched nodeclaim",
            "commit": "abc",
            "NodeClaim": {"name": "web-1"},
            "took": "2.5s",
        },
        {
            "level": "WARN",
            "time": "2026-01-01T12:00:00.000Z",
            "logger": "controller",
            "message": "careful",
            "commit": "abc",
            "Pod": {"namespace": "shop", "name": "a"},
        },
    ]


def test_debug_lines_say_where_they_come_from(configured: io.StringIO) -> None:
    logs.configure("debug", now=lambda: datetime(2026, 1, 1, tzinfo=UTC), stream=configured)

    structlog.get_logger("controller").debug("here")

    assert "test_endpoints.py:" in str(lines(configured)[0]["caller"])


def test_lines_go_to_every_output_and_a_wrong_one_is_named(configured: io.StringIO, tmp_path: Path) -> None:
    outputs = logs.Outputs(f"{tmp_path / 'a.log'}, {tmp_path / 'b.log'}", "stderr")
    logs.configure("info", now=lambda: datetime(2026, 1, 1, tzinfo=UTC), stream=outputs)

    structlog.get_logger("controller").info("here")
    outputs.close()

    assert (tmp_path / "a.log").read_text() == (tmp_path / "b.log").read_text()
    assert '"message":"here"' in (tmp_path / "a.log").read_text()
    with pytest.raises(logs.LogOutput, match="logs cannot be written to /none/x: No such file"):
        logs.Outputs("/none/x", "stderr")


async def test_profiles_are_served_only_when_asked_for() -> None:
    ports = Ports(metrics=free_port(), probes=free_port())
    arguments: dict[str, Any] = {"host": "127.0.0.1", "ports": ports, "ready": {}, "views": {}}

    async with Endpoints(Metrics(), **arguments):
        off = await fetch(ports.metrics, "/debug/pprof/tasks")
    async with Endpoints(Metrics(), profiling=True, **arguments):
        tasks = await fetch(ports.metrics, "/debug/pprof/tasks")
        profile = await fetch(ports.metrics, "/debug/pprof/profile?seconds=0.01")
        wrong = await fetch(ports.metrics, "/debug/pprof/profile?seconds=x")

    assert off[0] == 404
    assert "test_profiles_are_served_only_when_asked_for" in tasks[1]
    assert "function calls" in profile[1]
    assert wrong == (400, "seconds: give a number up to 300\n")

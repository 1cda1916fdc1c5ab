"""One sandbox with the platform up for all end-to-end tests; each test leaves it as it found it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.machine import Sandbox
from sandbox.platform import Platform
from tests.e2e.world import POOLS, World


@pytest.fixture(scope="session")
def platform_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory: Path = tmp_path_factory.mktemp("sandbox")
    with Sandbox(directory) as sandbox:
        Platform(sandbox).up()
        yield sandbox


@pytest.fixture
def world(platform_sandbox: Sandbox) -> Iterator[World]:
    pools = platform_sandbox.api.list(POOLS)[0]
    running = World(platform_sandbox, frozenset(pool["metadata"]["name"] for pool in pools))
    yield running
    running.settle()

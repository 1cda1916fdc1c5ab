"""`pulumi destroy` with live nodes leaves nothing of ours in AWS or in the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.api import labels
from sandbox.aws.control import Control
from sandbox.machine import Sandbox
from sandbox.platform import Platform
from sandbox.workloads import Workload
from tests.e2e.world import World

pytestmark = pytest.mark.e2e


def test_destroy_with_live_nodes_leaves_nothing(tmp_path: Path) -> None:
    with Sandbox(tmp_path / "sandbox") as sandbox:
        control = Control(sandbox.aws_endpoint)
        before = control.inventory()
        platform = Platform(sandbox)
        platform.up()
        world = World(sandbox, frozenset())
        web = Workload(name="web", replicas=6, spread_over=labels.ZONE)
        world.deploy(web)
        world.wait_running(web)

        platform.destroy()

        assert control.inventory() == before
        assert world.nodes() == []

"""`pulumi destroy` with live nodes leaves nothing of ours in AWS or in the cluster, whatever forbids it."""

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

NODES = 30
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def test_destroy_ends_nodes_whose_pods_may_not_be_evicted(tmp_path: Path) -> None:
    with Sandbox(tmp_path / "sandbox") as sandbox:
        control = Control(sandbox.aws_endpoint)
        before = control.inventory()
        platform = Platform(sandbox, {"charpente:drainTimeout": "10s"})
        platform.up()
        world = World(sandbox, frozenset())
        web = Workload(name="web", replicas=NODES, spread_over=labels.HOSTNAME)
        world.api.create(
            BUDGETS,
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "web"},
                "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
            },
        )
        world.deploy(web)
        world.wait_running(web, 180)
        assert len(world.nodes()) == NODES

        platform.destroy()

        assert control.inventory() == before
        assert world.nodes() == []

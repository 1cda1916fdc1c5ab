"""The split stacks on what exists: a network by its tag, a cluster by another stack or by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from framework.components import (
    Cluster,
    ClusterArgs,
    FirstCapacity,
    FirstCapacityArgs,
    NatMode,
    Network,
    NetworkArgs,
)
from sandbox.aws.control import Control
from sandbox.machine import REGION, Sandbox
from sandbox.pulumi_aws.engine import Action, Engine, Outcome
from stacks.programs.cluster import cluster_program
from stacks.programs.karpenter import karpenter_program
from tests.e2e.world import POOLS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ZONES = (f"{REGION}a", f"{REGION}b")
Run = Callable[..., Outcome]


def a_network(cluster: str) -> Network:
    args = NetworkArgs(cluster_name=cluster, region=REGION, zones=ZONES, nat=NatMode.NONE)
    return Network("network", args)


def a_cluster(name: str) -> None:
    """A cluster as something else would have made it: no role, queue or access entry of ours."""
    network = a_network(name)
    args = ClusterArgs(
        cluster_name=name,
        partition="aws",
        kubernetes_version="1.34",
        subnet_ids=network.private_subnet_ids,
        secrets_key="create",
    )
    cluster = Cluster("cluster", args)
    FirstCapacity(
        "first",
        FirstCapacityArgs(cluster=cluster.name, partition="aws", subnet_ids=network.private_subnet_ids),
    )


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with Sandbox(tmp_path_factory.mktemp("stacks")) as running:
        yield running


@pytest.fixture(scope="module")
def run(sandbox: Sandbox) -> Run:
    engine = Engine(root=sandbox.directory / "pulumi", aws_endpoint=sandbox.aws_endpoint, region=REGION)
    shared = {"aws:region": REGION, "charpente:tokenCommand": "charpente", "charpente:drainTimeout": "10s"}

    def carry_out(
        action: Action, program: Callable[[], object], project: str, config: Mapping[str, str] | None = None
    ) -> Outcome:
        return engine.run(
            action,
            lambda: program() and None,
            project=project,
            stack="test",
            config={**shared, **(config or {})},
        )

    return carry_out


@pytest.fixture
def pools(tmp_path: Path) -> Path:
    """A folder of pools for any cluster."""
    for path in Path("stacks/karpenter/nodepools").glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text().replace("my-cluster", "${CLUSTER_NAME}"))
    return tmp_path


def test_split_stacks_in_a_network_that_exists(sandbox: Sandbox, run: Run, pools: Path) -> None:
    control = Control(sandbox.aws_endpoint)
    run(Action.UP, lambda: a_network("split"), "network")
    before = control.inventory()
    config = {"charpente:clusterName": "split", "charpente:nodePools": str(pools)}
    cluster = {**config, "charpente:vpc": "Name=split"}
    karpenter = {**config, "charpente:clusterStack": "organization/cluster/test"}

    previewed = run(Action.PREVIEW, cluster_program, "cluster", cluster)
    made = run(Action.UP, cluster_program, "cluster", cluster)
    run(Action.UP, karpenter_program, "karpenter", karpenter)
    again = run(Action.UP, karpenter_program, "karpenter", karpenter)
    refreshed = run(Action.REFRESH, karpenter_program, "karpenter", karpenter)
    pool = pools / "nodepool-default.yaml"
    pool.write_text(pool.read_text().replace("spec:\n  template:", "spec:\n  weight: 7\n  template:", 1))
    edited = run(Action.UP, karpenter_program, "karpenter", karpenter)

    assert previewed.changes == made.changed
    assert (again.changed, refreshed.changed, edited.changed) == ({}, {}, {"update": 1})
    assert sandbox.api.get(f"{POOLS}/default")["spec"]["weight"] == 7
    run(Action.DESTROY, karpenter_program, "karpenter", karpenter)
    run(Action.DESTROY, cluster_program, "cluster", cluster)
    assert control.inventory() == before
    assert [
        each for each in sandbox.api.list(DEFINITIONS)[0] if "karpenter" in each["metadata"]["name"]
    ] == []


def test_the_controller_on_a_cluster_that_something_else_made(
    sandbox: Sandbox, run: Run, pools: Path
) -> None:
    control = Control(sandbox.aws_endpoint)
    run(Action.UP, lambda: a_cluster("foreign"), "foreign")
    before = control.inventory()
    config = {"charpente:clusterName": "foreign", "charpente:nodePools": str(pools)}

    previewed = run(Action.PREVIEW, karpenter_program, "karpenter", config)
    made = run(Action.UP, karpenter_program, "karpenter", config)
    again = run(Action.UP, karpenter_program, "karpenter", config)
    run(Action.DESTROY, karpenter_program, "karpenter", config)

    assert (previewed.changes, again.changed) == (made.changed, {})
    assert control.inventory() == before

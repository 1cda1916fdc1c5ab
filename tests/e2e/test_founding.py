"""The manifests of the founding document, applied with kubectl as they are, provision nodes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from framework.api import labels
from sandbox import tools
from sandbox.kubernetes import Object
from sandbox.workloads import Workload
from tests.e2e.world import CLAIMS, World

pytestmark = pytest.mark.e2e

MANIFESTS = Path(__file__).parent / "founding.yaml"


def _kubectl(world: World, *words: str, text: str | None = None) -> str:
    done = subprocess.run(
        [str(tools.find("kubectl")), "--kubeconfig", str(world.sandbox.kubeconfig), *words],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _documents() -> list[Object]:
    return list(yaml.safe_load_all(MANIFESTS.read_text()))


def test_the_founding_manifests_provision_a_node(world: World) -> None:
    _kubectl(world, "apply", "-f", "-", text=MANIFESTS.read_text())
    claim = next(d["metadata"]["name"] for d in _documents() if d["kind"] == "NodeClaim")

    world.wait(
        "the claim made by hand becomes a node",
        lambda: _ready(world.api.find(f"{CLAIMS}/{claim}")),
        120,
    )
    pinned = world.api.get(f"{CLAIMS}/{claim}")["metadata"]["labels"]
    assert (pinned[labels.INSTANCE_TYPE], pinned[labels.ZONE]) == ("t3.medium", "eu-west-2a")

    web = Workload(name="web", replicas=30)
    world.deploy(web)
    world.wait_running(web, 120)
    arches = {node["metadata"]["labels"][labels.ARCH] for node in world.nodes()}
    assert arches == {"amd64"}


def _ready(claim: Object | None) -> bool:
    conditions = (claim or {}).get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

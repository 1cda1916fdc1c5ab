"""`charpente run` runs the controllers of spec aws/iam-and-bootstrap §11, and those whose gates are on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

from controller.cli.operator import Operator, controllers
from controller.cli.settings import FeatureGates, Settings
from tests.controller.cloud.aws.builders import CLUSTER
from tests.controller.cloud.aws.conftest import Running
from tests.controller.fakes.world import World as Cluster

pytestmark = pytest.mark.sandbox

ALWAYS = {
    *("nodeclass", "nodeclass.hash", "instance.garbagecollection", "nodeclaim.tagging"),
    *("instanceprofile.garbagecollection", "providers.pricing", "providers.instancetype"),
    *("providers.instancetype.capacity", "providers.ssm.invalidation", "cloudprovider.metrics"),
    *("capacityreservation.capacitytype", "capacityreservation.expiration", "interruption"),
    *("provisioner", "provisioner.trigger.claim", "nodeclaim.lifecycle", "disruption"),
}


async def names(settings: Settings) -> set[str]:
    """Return the names of the controllers that would run."""
    cluster = Cluster()

    async def server_version() -> str:
        return "v1.34.4"

    cluster.api.server_version = server_version  # type: ignore[attr-defined]  # the client's own method
    with ThreadPoolExecutor(1) as executor:
        operated = await controllers(Operator(settings=settings, shell=cluster.shell, executor=executor))
    return {spec.reconciler.name for spec in operated.specs}


async def test_everything_runs_that_the_settings_ask_for(running: Running) -> None:
    settings = Settings(cluster_name=CLUSTER, interruption_queue="demo")
    gates = FeatureGates(static_capacity=True, node_repair=True, instance_status=True)

    found = await names(settings)
    with_gates = await names(attrs.evolve(settings, feature_gates=gates, interruption_queue=""))

    assert sorted(ALWAYS - found) == []
    assert "interruption.instancestatus" not in found
    assert {"interruption.instancestatus", "node.health", "static.provisioning"} <= with_gates
    assert "interruption" not in with_gates

"""Static pools: replicas up and down (spec core/scheduling §17)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.disruption.costs import disruption_cost
from controller.kube import Key, Requeue, kinds
from controller.provisioning import ClaimWriter, build_static
from controller.provisioning.claims import RequirementsExclude
from framework.api import labels
from tests.controller.fakes.objects import CLASS, a_claim, a_node, a_pod, a_pool
from tests.controller.fakes.world import World, ago


class Pool:
    def __init__(self, replicas: int, **spec: Any) -> None:
        self.world = World()
        self.world.api.remove(kinds.NODEPOOL, "default")
        self.world.api.put(kinds.NODEPOOL, a_pool(replicas=replicas, **spec))
        writer = ClaimWriter(
            self.world.shell.client,
            self.world.mirror,
            metrics=self.world.metrics,
            random=self.world.shell.random,
        )
        specs = build_static(self.world.shell, writer, disruption_cost)
        self.reconcilers = {spec.reconciler.name: spec.reconciler for spec in specs}

    async def grow(self) -> Requeue:
        return await self.reconcilers["static.provisioning"].reconcile(Key(name="default"))

    async def shrink(self) -> Requeue:
        return await self.reconcilers["static.deprovisioning"].reconcile(Key(name="default"))

    def resize(self, replicas: int) -> None:
        self.world.api.change(kinds.NODEPOOL, "default", {"spec": {"replicas": replicas}})

    @property
    def claims(self) -> list[str]:
        return self.world.api.names(kinds.NODECLAIM)

    @property
    def alive(self) -> list[str]:
        return [name for name in self.claims if "deletionTimestamp" not in self.world.claim(name)["metadata"]]


async def test_a_pool_grows_to_its_replicas_once() -> None:
    pool = Pool(3)

    await pool.grow()
    await pool.grow()

    assert len(pool.claims) == 3
    assert pool.world.claim(pool.claims[0])["spec"]["requirements"] == []


async def test_the_node_limit_is_never_exceeded() -> None:
    pool = Pool(3, limits={"nodes": "2"})

    await pool.grow()
    wait = await pool.grow()

    assert len(pool.claims) == 2
    assert wait.after is not None
    assert wait.after.total_seconds() == 30


async def test_a_claim_being_replaced_counts_until_it_goes() -> None:
    pool = Pool(2)
    await pool.grow()
    pool.world.mirror.mark_for_deletion(pool.claims[:1])

    await pool.grow()

    assert len(pool.claims) == 2


@pytest.mark.parametrize("replicas", [0, 1], ids=["to nothing", "to one"])
async def test_a_pool_shrinks_to_its_replicas(replicas: int) -> None:
    pool = Pool(3)
    await pool.grow()
    pool.resize(replicas)

    await pool.shrink()
    await pool.shrink()

    assert len(pool.alive) == replicas


async def test_empty_nodes_go_before_used_ones_and_protected_ones_last() -> None:
    pool = Pool(3)
    await pool.grow()
    names = pool.claims
    for number, name in enumerate(names):
        await pool.world.lifecycle(name)
        provider_id = pool.world.claim(name)["status"]["providerID"]
        pool.world.api.put(kinds.NODE, a_node(f"node-{number}", provider_id))
    protected = {"annotations": {labels.DO_NOT_DISRUPT: "true"}}
    pool.world.api.put(kinds.POD, a_pod("job", node="node-0", metadata=protected))
    pool.world.api.put(kinds.POD, a_pod("web", node="node-1"))

    left = []
    for replicas in (2, 1, 0):
        pool.resize(replicas)
        await pool.shrink()
        left.append(pool.alive)

    assert left == [names[:2], names[:1], []]


async def test_a_paused_pool_tries_one_node_after_the_pause() -> None:
    pool = Pool(3)
    paused = {"type": "RegistrationPaused", "status": "True", "reason": "RegistrationFailed", "message": "m"}
    paused |= {"observedGeneration": 1, "lastTransitionTime": ago(0)}
    conditions = pool.world.api.read(kinds.NODEPOOL, "default")["status"]["conditions"]
    pool.world.api.change(kinds.NODEPOOL, "default", {"status": {"conditions": [*conditions, paused]}})

    await pool.grow()
    during = len(pool.claims)
    await pool.world.clock.advance(600)
    await pool.grow()
    await pool.grow()

    assert (during, len(pool.claims)) == (0, 1)


def a_config(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "c"}, "spec": {"nodeClassRef": CLASS, **spec}}


async def test_claims_follow_the_requirements_of_the_config_too() -> None:
    pool = Pool(1)
    arm = {"key": labels.ARCH, "operator": "In", "values": ["arm64"]}
    pool.world.api.put(kinds.SCHEDULINGCONFIG, a_config(requirements=[arm]))

    await pool.grow()

    assert pool.world.claim(pool.claims[0])["spec"]["requirements"] == [arm]


async def test_a_config_that_excludes_the_pool_is_named() -> None:
    amd = {"key": labels.ARCH, "operator": "In", "values": ["amd64"]}
    pool = Pool(1, template={"requirements": [amd]})
    arm = {"key": labels.ARCH, "operator": "In", "values": ["arm64"]}
    pool.world.api.put(kinds.SCHEDULINGCONFIG, a_config(requirements=[arm]))

    with pytest.raises(RequirementsExclude, match="NodePool/default: its requirements and those of"):
        await pool.grow()

    assert pool.claims == []


async def test_the_node_limit_that_pools_share_is_never_exceeded() -> None:
    pool = Pool(3)
    pool.world.api.put(kinds.NODEPOOL, a_pool("other"))
    pool.world.api.put(kinds.SCHEDULINGCONFIG, a_config(limits={"nodes": "2"}))
    pool.world.api.put(kinds.NODECLAIM, a_claim("other-a", metadata={"labels": {labels.NODEPOOL: "other"}}))

    await pool.grow()

    assert len(pool.claims) == 2

"""What the controller would decide about a cluster on file, and what that costs.

Called by `charpente simulate` and `explain`. Asks the engine and disruption exactly as the controller does;
the clock only bounds the search for a cheaper plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

import attrs

from controller.clock import Clock
from controller.cluster import Mirror
from controller.disruption import World, methods
from controller.disruption.candidates import pod_block
from controller.disruption.costs import node_price
from controller.disruption.dryrun import Decided, decide
from controller.disruption.policy import policies
from controller.provisioning import pods_to_place, usable
from controller.scheduling import (
    InstanceType,
    Plan,
    Problem,
    Reason,
    ReservedMode,
    Snapshot,
    StateNode,
    is_terminal,
    search_limit,
    solve,
)
from controller.whatif.changes import Impossible
from controller.whatif.clusterfile import ClusterFile
from controller.whatif.taking import advance, mirror_of
from framework.api import NodeClaim, labels

__all__ = ["HOURS_PER_MONTH", "Fleet", "Forecast", "Picture", "forecast", "planned"]

HOURS_PER_MONTH: Final = 730
_LOOK_S: Final = 1.0
"""How long nodes that could go next are looked for."""


@attrs.frozen(kw_only=True)
class Fleet:
    """How many nodes of pools there are, and what they cost."""

    nodes: int
    usd_per_hour: float
    unpriced: int = 0
    """Nodes whose price nobody knows, which the sum leaves out."""


@attrs.frozen(kw_only=True, slots=False)
class Picture:
    """A cluster on file as the controller would see it."""

    snapshot: Snapshot
    claims: Mapping[str, NodeClaim]
    problem: Problem

    @classmethod
    def of(cls, cluster: ClusterFile, mirror: Mirror | None = None) -> Picture:
        """Read a cluster, or take what a mirror of its objects holds already.

        Raises Impossible when a pool's instance types are not on file.
        """
        if mirror is None:
            mirror = mirror_of(cluster.objects, overlays=cluster.overlays)
        snapshot = mirror.snapshot(cluster.taken)
        types = {
            pool.name: _types(cluster, pool.spec.template.spec.node_class_ref.name)
            for pool in usable(snapshot.pools)
        }
        problem = Problem(
            snapshot=snapshot, pods=pods_to_place(snapshot), instance_types=types, options=cluster.options
        )
        return cls(snapshot=snapshot, claims=dict(mirror.claims), problem=problem)

    @cached_property
    def world(self) -> World:
        """What disruption would decide from."""
        snapshot = self.snapshot
        return World(
            snapshot=snapshot,
            claims=self.claims,
            instance_types={name: tuple(types) for name, types in self.problem.instance_types.items()},
            options=attrs.evolve(self.problem.options, reserved_mode=ReservedMode.FALLBACK),
            policies=policies(snapshot.pools, snapshot.scheduling_configs),
        )

    @property
    def nodes(self) -> tuple[StateNode, ...]:
        """Return the nodes of pools."""
        return tuple(each for each in self.snapshot.nodes if each.managed)

    @cached_property
    def fleet(self) -> Fleet:
        """What the nodes of pools cost now."""
        prices = [self.price(node) for node in self.nodes]
        known = [price for price in prices if price is not None]
        return Fleet(nodes=len(prices), usd_per_hour=sum(known), unpriced=len(prices) - len(known))

    def price(self, node: StateNode) -> float | None:
        """Return USD per hour of a node, None when nobody knows."""
        found = self.world.types_by_name.get(node.pool or "", {}).get(
            node.labels.get(labels.INSTANCE_TYPE, "")
        )
        return node_price(found, node.labels) if found is not None else None


@attrs.frozen(kw_only=True)
class Forecast:
    """What follows from changes."""

    before: Picture
    after: Picture
    plan: Plan
    gone: tuple[StateNode, ...]
    """Nodes that the changes themselves remove."""
    moved: int
    """Pods that ran before and are placed anew."""
    fleet: Fleet
    """Once the plan is carried out."""
    risks: tuple[Reason, ...]
    """What stands against removing these nodes."""
    then: Decided
    """What disruption would do next; nothing while pods still wait for their nodes."""


def forecast(before: ClusterFile, after: ClusterFile, clock: Clock) -> Forecast:
    """Return what the controller would do about `after`, beside what there was before. Raises Impossible."""
    mirror = mirror_of(before.objects, overlays=before.overlays)
    was = Picture.of(before, mirror)
    advance(mirror, before.objects, after.objects)
    now = Picture.of(after, mirror)
    plan = planned(now.problem, clock)
    left = {node.name for node in now.snapshot.nodes}
    gone = tuple(node for node in was.nodes if node.name not in left)
    running = {pod.uid for node in was.snapshot.nodes for pod in node.pods if not is_terminal(pod)}
    placed = [uid for claim in plan.claims for uid in claim.pods]
    placed += [each.pod_uid for each in plan.placements]
    return Forecast(
        before=was,
        after=now,
        plan=plan,
        gone=gone,
        moved=sum(uid in running for uid in placed),
        fleet=attrs.evolve(
            now.fleet,
            nodes=now.fleet.nodes + len(plan.claims),
            usd_per_hour=now.fleet.usd_per_hour + plan.hourly_price,
        ),
        risks=tuple(_risks(was, gone)),
        then=Decided() if placed else _then(now.world, clock),
    )


def planned(problem: Problem, clock: Clock) -> Plan:
    """Return the controller's plan; the clock bounds the search for a cheaper one as it does there."""
    end = clock.monotonic() + search_limit(problem).total_seconds()
    return solve(problem, searched=lambda: clock.monotonic() > end)


def _then(world: World, clock: Clock) -> Decided:
    end = clock.monotonic() + _LOOK_S
    return decide(world, methods(), deadline=lambda _: lambda: clock.monotonic() > end)


def _risks(was: Picture, gone: Iterable[StateNode]) -> Iterable[Reason]:
    for node in gone:
        reason = pod_block(was.world, node)
        if reason is not None:
            yield reason


def _types(cluster: ClusterFile, node_class: str) -> tuple[InstanceType, ...]:
    if node_class not in cluster.instance_types:
        known = ", ".join(sorted(cluster.instance_types)) or "none"
        raise Impossible(
            f"the instance types of EC2NodeClass {node_class} are not on file (there are those of: {known}); "
            "use a class that the snapshot holds"
        )
    return cluster.instance_types[node_class]

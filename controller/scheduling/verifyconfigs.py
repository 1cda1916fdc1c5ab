"""The verifier's checks of what SchedulingConfigs forbid. Plain on purpose; used by `verify` alone."""

from __future__ import annotations

from collections.abc import Iterator

from controller.scheduling.instancetypes import CapacityType, InstanceType
from controller.scheduling.plan import Plan, PlannedClaim, Problem
from controller.scheduling.requirements import Requirements
from controller.scheduling.snapshot import StateNode
from framework.api import labels
from framework.api.nodepool import NodePool
from framework.api.quantity import parse_resources
from framework.api.schedulingconfig import SchedulingConfig

__all__ = ["check_configs"]


def check_configs(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield what breaks a config's requirements, shared limits or share of spot."""
    for config in problem.snapshot.scheduling_configs:
        pools = {pool.name for pool in problem.snapshot.pools if _governor(pool, problem) is config}
        claims = [claim for claim in plan.claims if claim.pool in pools]
        nodes = [node for node in problem.snapshot.nodes if node.pool in pools]
        where = f"SchedulingConfig {config.name}"
        yield from _requirements(config, claims, where)
        yield from _limits(problem, config, claims, nodes)
        yield from _spot_share(problem, config, claims, nodes)


def _governor(pool: NodePool, problem: Problem) -> SchedulingConfig | None:
    """The oldest config of the pool's class whose selector picks the pool."""
    fitting = [
        config
        for config in problem.snapshot.scheduling_configs
        if config.spec.node_class_ref == pool.spec.template.spec.node_class_ref
        and (
            config.spec.node_pool_selector is None
            or config.spec.node_pool_selector.matches(pool.metadata.labels)
        )
    ]
    ages = [config.metadata.creation_timestamp for config in fitting]
    if None in ages:
        fitting = [config for config in fitting if config.metadata.creation_timestamp is None]
    return min(fitting, key=lambda c: (str(c.metadata.creation_timestamp), c.name), default=None)


def _requirements(config: SchedulingConfig, claims: list[PlannedClaim], where: str) -> Iterator[str]:
    wanted = Requirements.from_specs(config.spec.requirements)
    for claim in claims:
        for key, requirement in wanted.items():
            own = claim.requirements.get(key)
            broken = own is None or (not own.complement and not all(map(requirement.has, own.values)))
            if broken:
                yield f"{where}: a claim of pool {claim.pool} may break its requirement {requirement}"


def _limits(
    problem: Problem, config: SchedulingConfig, claims: list[PlannedClaim], nodes: list[StateNode]
) -> Iterator[str]:
    for resource, limit in parse_resources(config.spec.limits).items():
        staying = [node for node in nodes if node.name not in problem.options.excluded]
        used = sum(1 if resource == "nodes" else node.capacity.get(resource, 0) for node in staying)
        added = sum(
            1 if resource == "nodes" else max(t.capacity.get(resource, 0) for t in _types(problem, claim))
            for claim in claims
        )
        if added and used + added > limit:
            yield f"SchedulingConfig {config.name}: {used + added} {resource} would be over its limit {limit}"


def _spot_share(
    problem: Problem, config: SchedulingConfig, claims: list[PlannedClaim], nodes: list[StateNode]
) -> Iterator[str]:
    """Check the share for the worst that may be launched: large spot nodes beside small other ones."""
    percent = int(config.spec.spot.max_share.removesuffix("%"))
    spot = total = 0
    for node in nodes:
        if not (node.marked_for_deletion or node.deleting or node.name in problem.options.excluded):
            total += node.capacity.get("cpu", 0)
            if node.labels.get(labels.CAPACITY_TYPE) == "spot":
                spot += node.capacity.get("cpu", 0)
    added = 0
    for claim in claims:
        sizes = [each.capacity.get("cpu", 0) for each in _types(problem, claim)]
        if any(_may_be_spot(each, claim) for each in _types(problem, claim)):
            added += max(sizes)
            total += max(sizes)
        else:
            total += min(sizes)
    if added and 100 * (spot + added) > percent * total:
        yield f"SchedulingConfig {config.name}: {spot + added} of {total} milli-vCPUs might be spot"


def _types(problem: Problem, claim: PlannedClaim) -> list[InstanceType]:
    return [t for t in problem.instance_types[claim.pool] if t.name in claim.instance_types]


def _may_be_spot(instance_type: InstanceType, claim: PlannedClaim) -> bool:
    return any(
        offering.capacity_type == CapacityType.SPOT
        for offering in instance_type.allowed_offerings(claim.requirements)
    )

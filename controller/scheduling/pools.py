"""Which pools take part in a run, in which order and under which config (spec core/scheduling §4, §7).

Private to the engine except `governing_config`, which disruption and the config's controller use too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Final

import attrs
import numpy as np

from controller.scheduling.breaker import launch_slots
from controller.scheduling.catalog import TypeTable
from controller.scheduling.instancetypes import InstanceType
from controller.scheduling.limits import Ledger
from controller.scheduling.memo import IdentityMemo
from controller.scheduling.overlays import overlaid_types
from controller.scheduling.plan import Problem
from controller.scheduling.reasons import Reason, ReasonCode
from controller.scheduling.requirements import Requirements
from controller.scheduling.resources import Resources, add
from controller.scheduling.selectors import LabelSelector
from controller.scheduling.snapshot import StateNode
from controller.scheduling.steering import Steering
from controller.scheduling.taints import Taint
from controller.scheduling.templates import DaemonLoad, Template, template_requirements
from framework.api import labels
from framework.api.nodeoverlay import NodeOverlay
from framework.api.nodepool import NodePool
from framework.api.quantity import parse_resources
from framework.api.schedulingconfig import Objective, PreferencePolicy, SchedulingConfig

__all__ = [
    "PoolSet",
    "governing_config",
    "governs",
    "make_templates",
    "objective_of",
    "preference_policy_of",
    "search_limit",
]

_SEARCH_LIMIT = timedelta(seconds=2)
_WHOLE = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - 3.11


def governing_config(pool: NodePool, configs: Iterable[SchedulingConfig]) -> SchedulingConfig | None:
    """Return the config that governs the pool: of several the oldest, then the first by name."""
    fitting = [config for config in configs if governs(config, pool)]
    return min(fitting, key=lambda c: (c.metadata.creation_timestamp or _EPOCH, c.name), default=None)


def governs(config: SchedulingConfig, pool: NodePool) -> bool:
    """Tell whether the config is meant for the pool, unless an older one is."""
    if config.spec.node_class_ref != pool.spec.template.spec.node_class_ref:
        return False
    selector = config.spec.node_pool_selector
    if selector is None:
        return True
    chosen = LabelSelector.from_wire(selector.to_wire())
    return chosen is not None and chosen.matches(pool.metadata.labels)


def objective_of(problem: Problem) -> Objective:
    """Return Cost when some governing config, or else the options, ask for it."""
    configs = problem.snapshot.scheduling_configs
    governing = [governing_config(pool, configs) for pool in problem.snapshot.pools]
    wanted = [
        (None if config is None else config.spec.packing.objective) or problem.options.objective
        for config in governing
    ]
    return Objective.COST if Objective.COST in wanted else Objective.FIRST_FIT


def preference_policy_of(problem: Problem) -> PreferencePolicy:
    """Return Ignore when every pool's config, or else the options, ignores preferences.

    A run has one ladder per pod, so pools that differ all respect them.
    """
    configs = problem.snapshot.scheduling_configs
    governing = [governing_config(pool, configs) for pool in problem.snapshot.pools]
    default = problem.options.preference_policy
    policies = {(None if c is None else c.spec.preference_policy) or default for c in governing} or {default}
    ignored = policies == {PreferencePolicy.IGNORE}
    return PreferencePolicy.IGNORE if ignored else PreferencePolicy.RESPECT


def search_limit(problem: Problem) -> timedelta:
    """Return how long Cost may search: the longest that a governing config allows, else 2 s."""
    configs = problem.snapshot.scheduling_configs
    governing = [governing_config(pool, configs) for pool in problem.snapshot.pools]
    limits = [config.spec.packing.time_limit for config in governing if config is not None]
    return max(limits, default=_SEARCH_LIMIT)


class PoolSet:
    """The usable templates in order of trial, and why other pools are not used."""

    def __init__(self) -> None:
        """Start empty."""
        self.templates: list[Template] = []
        self.problems: dict[str, Reason] = {}

    @property
    def has_soft_taints(self) -> bool:
        """Whether some pool has a PreferNoSchedule taint (§4.11)."""
        return any(taint.effect == "PreferNoSchedule" for t in self.templates for taint in t.taints)

    def refuse(self, pool: NodePool, text: str) -> None:
        """Note why a pool is not used."""
        self.problems[pool.name] = Reason(
            code=ReasonCode.POOL_UNUSABLE, text=text, obj=f"NodePool/{pool.name}"
        )


@attrs.define
class _Shared:
    """What the templates of one config have in common, by config."""

    ledgers: dict[str, Ledger] = attrs.field(factory=dict)
    steerings: dict[str, Steering] = attrs.field(factory=dict)


def make_templates(problem: Problem, resources: Sequence[str]) -> PoolSet:
    """Return the templates of every usable pool: by weight descending, then name descending."""
    result = PoolSet()
    shared = _Shared()
    usable = [pool for pool in problem.snapshot.pools if _is_usable(pool, problem, result)]
    for pool in sorted(
        sorted(usable, key=lambda p: p.name, reverse=True), key=lambda p: -(p.spec.weight or 0)
    ):
        try:
            template = _template(len(result.templates), pool, problem, resources, shared)
        except ValueError as exc:
            result.refuse(pool, f"its requirements cannot be read: {exc}")
            continue
        if template.sound.any() and _has_types(template):
            result.templates.append(template)
        else:
            result.refuse(pool, _excluded(template) or _why_empty(template))
    return result


def _is_usable(pool: NodePool, problem: Problem, result: PoolSet) -> bool:
    if pool.spec.replicas is not None or pool.metadata.deletion_timestamp is not None:
        return False
    ready = next((c for c in pool.status.conditions if c.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        result.refuse(pool, f"it is not ready: {ready.message or ready.reason}")
        return False
    if not problem.instance_types.get(pool.name):
        result.refuse(pool, "its node class has no instance types")
        return False
    return True


_TABLES: Final[IdentityMemo[TypeTable]] = IdentityMemo()
"""Tables of types: simulations of one picture, and rounds between two price updates, share them."""


def _table(
    pool: NodePool, types: Sequence[InstanceType], overlays: Sequence[NodeOverlay], *, reserved: bool
) -> TypeTable:
    """Return the pool's types as columns; made once from the same objects."""
    inputs = (types, *((pool, *overlays) if overlays else ()), reserved)
    return _TABLES.get(inputs, lambda: TypeTable(overlaid_types(pool, types, overlays), reserved=reserved))


def _template(
    index: int, pool: NodePool, problem: Problem, resources: Sequence[str], shared: _Shared
) -> Template:
    options, snapshot = problem.options, problem.snapshot
    config = governing_config(pool, snapshot.scheduling_configs)
    requirements = template_requirements(pool)
    if config is not None:
        requirements = requirements.union(Requirements.from_specs(config.spec.requirements))
    types: Sequence[InstanceType] = problem.instance_types[pool.name]
    table = _table(pool, types, snapshot.node_overlays, reserved=options.reserved_capacity)
    taints = tuple(Taint.from_spec(taint) for taint in pool.spec.template.spec.taints)
    daemons = DaemonLoad.of(snapshot.daemonsets, (requirements, taints), table, resources, options.well_known)
    room = table.allocatable(resources) - daemons.overhead
    return Template(
        index=index,
        pool=pool,
        config=config,
        requirements=requirements,
        taints=taints,
        startup_taints=tuple(Taint.from_spec(t) for t in pool.spec.template.spec.startup_taints),
        table=table,
        daemons=daemons,
        room=room,
        sound=np.logical_and(table.sound, (room >= 0).all(axis=1)),
        ledgers=_ledgers(pool, config, problem, shared.ledgers),
        steering=_steering(config, problem, shared.steerings) if config else None,
        min_values_policy=(config.spec.min_values_policy if config else None) or options.min_values_policy,
        node_cost=float(config.spec.node_cost) if config else 0.0,
    )


def _ledgers(
    pool: NodePool, config: SchedulingConfig | None, problem: Problem, known: dict[str, Ledger]
) -> tuple[Ledger, ...]:
    ledgers = [*_breaker(pool, problem)]
    if pool.spec.limits:
        used = _usage({pool.name}, problem)
        ledgers.append(Ledger(f"NodePool/{pool.name}", parse_resources(pool.spec.limits), used))
    if config is not None and config.spec.limits:
        owner = f"SchedulingConfig/{config.name}"
        if owner not in known:
            used = _usage(_governed(config, problem), problem)
            known[owner] = Ledger(owner, parse_resources(config.spec.limits), used)
        ledgers.append(known[owner])
    return tuple(ledgers)


def _governed(config: SchedulingConfig, problem: Problem) -> set[str]:
    configs = problem.snapshot.scheduling_configs
    return {pool.name for pool in problem.snapshot.pools if governing_config(pool, configs) is config}


def _steering(config: SchedulingConfig, problem: Problem, known: dict[str, Steering]) -> Steering | None:
    """Return what the config says about where capacity goes, one for all its pools."""
    share, balance = int(config.spec.spot.max_share.rstrip("%")), config.spec.zone_balance
    if share == _WHOLE and balance is None:
        return None
    if config.name not in known:
        governed = _governed(config, problem)
        staying = (
            node for node in problem.snapshot.nodes if node.pool in governed and not _leaves(node, problem)
        )
        skew = None if balance is None else balance.max_skew_percent
        known[config.name] = Steering(
            f"SchedulingConfig/{config.name}", max_share=share, max_skew=skew, nodes=staying
        )
    return known[config.name]


def _leaves(node: StateNode, problem: Problem) -> bool:
    return node.marked_for_deletion or node.deleting or node.name in problem.options.excluded


def _breaker(pool: NodePool, problem: Problem) -> Iterator[Ledger]:
    """What a pool whose launches do not register may still have on its way."""
    slots = launch_slots(pool, problem.snapshot.now)
    if slots is not None:
        on_their_way = sum(node.pool == pool.name and node.is_in_flight for node in problem.snapshot.nodes)
        so = "one node at a time is tried until one does" if slots else "it is paused"
        text, used = f"its launches did not register, so {so}", {"nodes": on_their_way}
        yield Ledger(f"NodePool/{pool.name}", {"nodes": slots}, used, paused=text)


def _usage(pools: set[str], problem: Problem) -> Resources:
    """What nodes of the pools use until they are gone, those being deleted included (§7)."""
    by_name = {t.name: t for types in problem.instance_types.values() for t in types}
    counted = [
        node
        for node in problem.snapshot.nodes
        if node.pool in pools and node.name not in problem.options.excluded
    ]
    return add(*({"nodes": 1, **_capacity(node, by_name)} for node in counted))


def _capacity(node: StateNode, types: Mapping[str, InstanceType]) -> Resources:
    """A claim whose machine is not known yet may become the largest of its types."""
    if node.capacity:
        return node.capacity
    wanted = node.requirements.get(labels.INSTANCE_TYPE)
    names = sorted(wanted.values) if wanted is not None and not wanted.complement else []
    worst: dict[str, int] = {}
    for name in names:
        for resource, amount in types[name].capacity.items() if name in types else ():
            worst[resource] = max(worst.get(resource, 0), amount)
    return worst


def _has_types(template: Template) -> bool:
    offered, _ = template.table.offered(template.requirements)
    return bool((template.table.matching(template.requirements) & offered & template.sound).any())


def _excluded(template: Template) -> str | None:
    """Why the pool and its SchedulingConfig allow nothing together, None when they do."""
    own, config = template_requirements(template.pool), template.config
    if config is None:
        return None
    for key, requirement in sorted(Requirements.from_specs(config.spec.requirements).items()):
        if key in own and not own[key].overlaps(requirement):
            return f"SchedulingConfig {config.name} demands {requirement}, it has {own[key]} itself"
    return None


def _why_empty(template: Template) -> str:
    table, requirements = template.table, template.requirements
    for key in sorted(requirements):
        if not table.matching(Requirements.of(requirements[key])).any():
            return f"no instance type satisfies its requirement {requirements[key]}"
    matching = table.matching(requirements)
    if not matching.any():
        return f"no instance type satisfies all its requirements together: {requirements}"
    if not (matching & template.sound).any():
        return "its DaemonSets do not fit on any of its instance types"
    return f"no instance type that satisfies its requirements is on offer: {requirements}"

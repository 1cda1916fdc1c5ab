"""What keeps nodes from ever being disrupted or launched: budgets, limits, PodDisruptionBudgets.

Called by `framework.api.linting.lint`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from framework.api.cron import Cron, InvalidCron
from framework.api.errors import InvalidField
from framework.api.linting.crosschecks import Known, of_kind
from framework.api.linting.findings import Finding, Severity
from framework.api.linting.manifests import Manifest
from framework.api.nodepool import DisruptionReason, NodePool
from framework.api.schedulingconfig import SchedulingConfig
from framework.api.selector import LabelSelector

__all__ = ["disruption_findings"]

_WORKLOADS: Final = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
_BUDGETS: Final = "spec.disruption.budgets"


def disruption_findings(known: Sequence[Known], manifests: Sequence[Manifest]) -> Iterator[Finding]:
    """Give what can never be disrupted, and pools that can never launch."""
    for manifest, pool in of_kind(known, NodePool):
        yield from _blocking_budgets(manifest, pool)
        yield from _zero_limits(manifest, pool)
        for index, budget in enumerate(pool.spec.disruption.budgets):
            yield from _schedule(manifest, f"{_BUDGETS}[{index}]", budget.schedule)
    for manifest, config in of_kind(known, SchedulingConfig):
        for index, headroom in enumerate(config.spec.headroom):
            yield from _schedule(manifest, f"spec.headroom[{index}]", headroom.schedule)
    yield from _pod_budgets(manifests)


def _schedule(manifest: Manifest, path: str, schedule: str | None) -> Iterator[Finding]:
    if schedule is None:
        return
    try:
        Cron.parse(schedule)
    except InvalidCron as exc:
        remedy = "write minute hour day month weekday, or a macro such as @daily"
        yield manifest.finding(f"{path}.schedule", f"cannot be read: {exc}", remedy, rule="budget-schedule")


def _blocking_budgets(manifest: Manifest, pool: NodePool) -> Iterator[Finding]:
    """Name each budget of nothing that is always on, for the reasons it covers."""
    for index, budget in enumerate(pool.spec.disruption.budgets):
        if budget.schedule is None and budget.nodes.rstrip("%").lstrip("0") == "":
            reasons = ", ".join(budget.reasons or tuple(DisruptionReason))
            problem = f"is {budget.nodes}, at all times, for {reasons}"
            remedy = "raise it, give it a schedule, or keep it if no node may ever be disrupted for that"
            yield manifest.finding(
                f"{_BUDGETS}[{index}].nodes",
                problem,
                remedy,
                rule="budget-blocks",
                severity=Severity.WARNING,
            )


def _zero_limits(manifest: Manifest, pool: NodePool) -> Iterator[Finding]:
    for name in sorted(pool.spec.limits):
        if pool.spec.limits[name].nano <= 0 and name in ("cpu", "memory", "nodes", "pods"):
            remedy = "raise it, or keep it to switch the pool off"
            yield manifest.finding(
                f"spec.limits.{name}",
                f"is {pool.spec.limits[name]}, so no node fits in",
                remedy,
                rule="limit-zero",
                severity=Severity.WARNING,
            )


def _pod_budgets(manifests: Sequence[Manifest]) -> Iterator[Finding]:
    workloads = [each for each in manifests if each.kind in _WORKLOADS]
    budgets = [each for each in manifests if each.kind == "PodDisruptionBudget"]
    covered: dict[str, Manifest] = {}
    for budget in budgets:
        chosen = [each for each in workloads if _selects(budget, each)]
        yield from _impossible(budget, chosen)
        for workload in chosen:
            key = f"{workload.namespace}/{workload.kind}/{workload.name}"
            other = covered.setdefault(key, budget)
            if other is not budget:
                problem = f"picks the pods of {workload.kind}/{workload.name} like {other.name}"
                remedy = "keep one: eviction refuses pods with two budgets"
                yield budget.finding("spec.selector", problem, remedy, rule="pdb-blocks")


def _impossible(budget: Manifest, chosen: Sequence[Manifest]) -> Iterator[Finding]:
    spec = _map(budget.raw.get("spec"))
    most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    if _is_share(most, 0):
        remedy = "allow at least 1, or nodes with these pods can never be drained"
        yield budget.finding("spec.maxUnavailable", f"is {most}", remedy, rule="pdb-blocks")
    elif _is_share(least, 100):
        remedy = "lower it, or use maxUnavailable: 1"
        yield budget.finding("spec.minAvailable", f"is {least}", remedy, rule="pdb-blocks")
    elif isinstance(least, int) and not isinstance(least, bool):
        for workload in chosen:
            replicas = _map(workload.raw.get("spec")).get("replicas", 1)
            if isinstance(replicas, int) and 0 < replicas <= least:
                problem = f"is {least}, as many as the {replicas} replicas of {workload.kind}/{workload.name}"
                remedy = "lower it, use maxUnavailable: 1, or add replicas"
                yield budget.finding("spec.minAvailable", problem, remedy, rule="pdb-blocks")


def _is_share(value: Any, percent: int) -> bool:
    """Return whether a PDB's value is that many percent; 0 is 0 %."""
    return value == f"{percent}%" or (percent == 0 and value == 0 and not isinstance(value, bool))


def _selects(budget: Manifest, workload: Manifest) -> bool:
    if budget.namespace != workload.namespace:
        return False
    template = _map(_map(workload.raw.get("spec")).get("template"))
    labels = _map(_map(template.get("metadata")).get("labels"))
    selector = _map(budget.raw.get("spec")).get("selector")
    if not isinstance(selector, Mapping):
        return False
    try:
        return LabelSelector.from_wire(selector).matches(labels)
    except InvalidField:
        return False


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

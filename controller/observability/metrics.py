"""Every metric of the core, in one registry that is passed around (spec core/observability §1).

Made once by `charpente run` and given to whoever counts; tests make their own. Names, labels and buckets
are those that users' dashboards know. The provider adds its own to `Metrics.registry`. Nothing here
decides anything.

The groups: `claims`, `nodes`, `pools`, `disruption`, `scheduler`, `pods`, `cloud`, `runtime`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from controller.observability.podtimes import PodTimes
from controller.observability.quantiles import QuantileSummary

__all__ = [
    "DURATION_BUCKETS",
    "ClaimMetrics",
    "CloudMetrics",
    "DisruptionMetrics",
    "Metrics",
    "NodeMetrics",
    "PodMetrics",
    "PoolMetrics",
    "RuntimeMetrics",
    "SchedulerMetrics",
]

DURATION_BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
    *(120, 150, 300, 450, 600),
)
"""Seconds; the buckets that the spec calls *duration buckets*."""
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
_LIFETIME_BUCKETS: Final = (
    *(minutes * _MINUTE for minutes in (15, 30, 45)),
    *(hours * _HOUR for hours in (1, 2, 4, 6, 8, 10, 12, 16, 20)),
    *(days * _DAY for days in (1, 2, 3, 5, 10, 15, 20, 25, 30)),
)
_CLIENT_BUCKETS: Final = tuple(0.001 * 1.5**power for power in range(20))

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class _Group:
    """Makes metrics of one subject in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self._registry)

    def _summary(self, name: str, text: str, *labels: str) -> QuantileSummary:
        return QuantileSummary(name, text, labels, registry=self._registry)

    def _histogram(
        self, name: str, text: str, *labels: str, buckets: Sequence[float] = DURATION_BUCKETS
    ) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self._registry)


class ClaimMetrics(_Group):
    """NodeClaims from plan to end."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        super().__init__(registry)
        prefix = "karpenter_nodeclaims_"
        self.created = self._counter(
            f"{prefix}created", "NodeClaims created", "reason", "nodepool", "min_values_relaxed"
        )
        self.terminated = self._counter(f"{prefix}terminated", "NodeClaims gone", "nodepool", "capacity_type")
        self.disrupted = self._counter(
            f"{prefix}disrupted",
            "NodeClaims whose deletion we started",
            "reason",
            "nodepool",
            "capacity_type",
        )
        self.unhealthy_disrupted = self._counter(
            f"{prefix}unhealthy_disrupted",
            "NodeClaims deleted by node repair",
            *("condition", "nodepool", "capacity_type", "image_id"),
        )
        self.instance_termination = self._histogram(
            f"{prefix}instance_termination_duration_seconds",
            "From the call that ends the instance to its end",
            "nodepool",
            buckets=tuple(float(2**power) for power in range(11)),
        )
        self.termination = self._histogram(
            f"{prefix}termination_duration_seconds",
            "From the deletion request to the end of the NodeClaim",
            "nodepool",
            buckets=tuple(float(2**power) for power in range(12)),
        )


class NodeMetrics(_Group):
    """Nodes from registration to end."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        super().__init__(registry)
        prefix = "karpenter_nodes_"
        self.created = self._counter(f"{prefix}created", "Nodes registered", "nodepool")
        self.terminated = self._counter(f"{prefix}terminated", "Nodes gone", "nodepool")
        self.drained = self._counter(f"{prefix}drained", "Nodes drained", "nodepool")
        self.termination = self._summary(
            f"{prefix}termination_duration_seconds", "From the deletion request to the end", "nodepool"
        )
        self.lifetime = self._histogram(
            f"{prefix}lifetime_duration_seconds",
            "From creation to removal",
            "nodepool",
            buckets=_LIFETIME_BUCKETS,
        )


class PoolMetrics(_Group):
    """NodePools."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        super().__init__(registry)
        prefix = "karpenter_nodepools_"
        self.limit = self._gauge(f"{prefix}limit", "Limit of the pool", "resource_type", "nodepool")
        self.usage = self._gauge(f"{prefix}usage", "Capacity the pool has now", "resource_type", "nodepool")
        self.allowed_disruptions = self._gauge(
            f"{prefix}allowed_disruptions", "Nodes the budgets allow to disrupt", "nodepool", "reason"
        )
        self.nodes_consuming_budgets = self._gauge(
            f"{prefix}nodes_consuming_budgets", "Nodes not ready or in disruption", "nodepool", "reason"
        )


class DisruptionMetrics(_Group):
    """Voluntary disruption."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics; the timeout counter starts with its two series at zero."""
        super().__init__(registry)
        prefix = "karpenter_voluntary_disruption_"
        self.evaluation = self._histogram(
            f"{prefix}decision_evaluation_duration_seconds",
            "Time to evaluate a method",
            *("reason", "consolidation_type"),
        )
        self.decisions = self._counter(
            f"{prefix}decisions", "Commands started", "decision", "reason", "consolidation_type"
        )
        self.decisions_by_nodepool = self._counter(
            f"{prefix}decisions_by_nodepool",
            "Commands started, by pool",
            *("nodepool", "decision", "reason", "consolidation_type"),
        )
        self.eligible = self._gauge(f"{prefix}eligible_nodes", "Nodes a method may disrupt", "reason")
        self.timeouts = self._counter(
            f"{prefix}consolidation_timeouts", "Searches cut short", "consolidation_type"
        )
        for consolidation in ("multi", "single"):
            self.timeouts.labels(consolidation_type=consolidation)
        self.failed_validations = self._counter(
            f"{prefix}failed_validations", "Commands that no longer held", "consolidation_type"
        )
        self.queue_failures = self._counter(
            f"{prefix}queue_failures", "Commands rolled back", "decision", "reason", "consolidation_type"
        )


class SchedulerMetrics(_Group):
    """Planning, and the mirror it reads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        super().__init__(registry)
        prefix = "karpenter_scheduler_"
        self.duration = self._histogram(
            f"{prefix}scheduling_duration_seconds", "Time of a planning run", "controller"
        )
        self.queue_depth = self._gauge(
            f"{prefix}queue_depth", "Pods still to place", "controller", "scheduling_id"
        )
        self.unfinished = self._gauge(
            f"{prefix}unfinished_work_seconds", "Age of the planning run", "controller", "scheduling_id"
        )
        self.ignored = self._gauge(f"{prefix}ignored_pods_count", "Pods that failed validation")
        self.unschedulable = self._gauge(
            f"{prefix}unschedulable_pods_count", "Pods that no node can hold", "controller"
        )
        state = "karpenter_cluster_state_"
        self.node_count = self._gauge(f"{state}node_count", "Nodes in the mirror")
        self.synced = self._gauge(f"{state}synced", "1 when the mirror may be acted on")
        self.unsynced_time = self._gauge(f"{state}unsynced_time_seconds", "How long it has not been")


class PodMetrics(_Group):
    """Pods, evictions included."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        super().__init__(registry)
        prefix = "karpenter_pods_"
        self.startup = self._summary(f"{prefix}startup_duration_seconds", "Creation to Ready")
        self.bound = self._histogram(f"{prefix}bound_duration_seconds", "Creation to PodScheduled")
        self.decision = self._histogram(
            f"{prefix}scheduling_decision_duration_seconds", "First trigger to first decision"
        )
        self.provisioning_bound = self._histogram(
            f"{prefix}provisioning_bound_duration_seconds", "First plan that places the pod to PodScheduled"
        )
        self.provisioning_startup = self._histogram(
            f"{prefix}provisioning_startup_duration_seconds", "First plan that places the pod to Ready"
        )
        self.evictions = self._counter(f"{prefix}eviction_requests", "Answers of the eviction API", "code")
        self.drained = self._counter(f"{prefix}drained", "Pods evicted", "reason")


class CloudMetrics(_Group):
    """Calls of the core to the provider."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        super().__init__(registry)
        prefix = "karpenter_cloudprovider_"
        self.duration = self._histogram(
            f"{prefix}duration_seconds",
            "Time of a provider method",
            *("controller", "method", "provider"),
            buckets=Histogram.DEFAULT_BUCKETS,
        )
        self.errors = self._counter(
            f"{prefix}errors", "Errors of a provider method", "controller", "method", "provider", "error"
        )


class RuntimeMetrics(_Group):
    """The loops, the queues and the API client."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        super().__init__(registry)
        self._reconciles = self._counter(
            "controller_runtime_reconcile", "Reconciles by result", "controller", "result"
        )
        self._reconcile_errors = self._counter(
            "controller_runtime_reconcile_errors", "Reconciles that failed", "controller"
        )
        self._reconcile_time = self._histogram(
            "controller_runtime_reconcile_time_seconds", "Time of a reconcile", "controller"
        )
        self._requests = self._counter("client_go_request", "Requests to the API server", "code", "method")
        self._request_time = self._histogram(
            "client_go_request_duration_seconds",
            "Time of a request to the API server",
            *("verb", "group", "version", "kind", "subresource"),
            buckets=_CLIENT_BUCKETS,
        )
        self.queue_depth = self._gauge("workqueue_depth", "Keys in line", "name")
        self.leader = self._gauge("leader_election_master_status", "1 when this replica leads", "name")
        self.loop_lag = self._histogram("charpente_loop_lag_seconds", "How late the event loop runs")
        self.build = self._gauge(
            "karpenter_build_info", "Build of this program", "version", "goversion", "goarch", "commit"
        )

    def observe_reconcile(self, controller: str, result: str, seconds: float) -> None:
        """Count one reconcile of a controller; `result` is success, requeue, requeue_after or error."""
        self._reconciles.labels(controller=controller, result=result).inc()
        self._reconcile_time.labels(controller=controller).observe(seconds)
        if result == "error":
            self._reconcile_errors.labels(controller=controller).inc()

    def observe_request(
        self, method: str, group: str, version: str, kind: str, *, code: str, seconds: float
    ) -> None:
        """Count one request to the API server; `code` is the HTTP status, or `<error>` without an answer."""
        self._requests.labels(code=code, method=method).inc()
        self._request_time.labels(
            verb=method, group=group, version=version, kind=kind, subresource=""
        ).observe(seconds)


class Metrics:
    """All metrics of the core, by subject."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register everything in the given registry, or a fresh one."""
        self.registry = registry or CollectorRegistry()
        self.claims = ClaimMetrics(self.registry)
        self.nodes = NodeMetrics(self.registry)
        self.pools = PoolMetrics(self.registry)
        self.disruption = DisruptionMetrics(self.registry)
        self.scheduler = SchedulerMetrics(self.registry)
        self.pods = PodMetrics(self.registry)
        self.cloud = CloudMetrics(self.registry)
        self.runtime = RuntimeMetrics(self.registry)
        ProcessCollector(registry=self.registry)
        self.pod_times = PodTimes(
            decision=self.pods.decision,
            bound=self.pods.provisioning_bound,
            startup=self.pods.provisioning_startup,
        )

    def render(self) -> bytes:
        """Return the text that `/metrics` serves."""
        return prometheus_client.generate_latest(self.registry)

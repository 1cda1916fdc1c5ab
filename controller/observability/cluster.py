"""Nodes, pods and the mirror as metrics (spec core/observability §1.1, §1.3).

Started by `charpente run` on the leader. What exists is read at each scrape; how long pods took to be
bound and to start is observed when it is seen, for pods that were first seen pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller.clock import Clock
from controller.cluster import Mirror, Node
from controller.kube import Change, kinds
from controller.observability.metrics import Metrics
from controller.scheduling import Pod, Resources, StateNode, is_daemonset, is_provisionable, is_terminal
from controller.scheduling.resources import add
from framework.api import ClaimCondition, labels
from framework.api.conditions import ConditionStatus, get

__all__ = ["ClusterObserver"]

_WELL_KNOWN: Final = tuple(sorted(labels.WELL_KNOWN | labels.AWS_WELL_KNOWN))
_NODE_LABELS: Final = tuple(key.rpartition("/")[2].replace("-", "_") for key in _WELL_KNOWN)
_POD_NODE_LABELS: Final = (
    labels.NODEPOOL,
    labels.ZONE,
    labels.ARCH,
    labels.CAPACITY_TYPE,
    labels.INSTANCE_TYPE,
)
_POD_LABELS: Final = (
    *("name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch"),
    *("capacity_type", "instance_type", "phase", "ready"),
)


_WAITING: Final = (
    ("unbound", "Age while not bound"),
    ("unstarted", "Age while not ready"),
    ("provisioning_unbound", "Time since a plan first placed the pod, while not bound"),
    ("provisioning_unstarted", "Time since a plan first placed the pod, while not ready"),
    ("provisioning_scheduling_undecided", "Time since the pod was seen, while no plan decided on it"),
)


class ClusterObserver(Collector):
    """A collector over the mirror, and a listener to pods."""

    def __init__(self, mirror: Mirror, metrics: Metrics, clock: Clock) -> None:
        """Register with the metrics; `follow` starts listening."""
        self._mirror = mirror
        self._metrics = metrics
        self._clock = clock
        self._times = metrics.pod_times
        self._unbound: set[str] = set()
        self._unstarted: set[str] = set()
        self._unsynced_since: float | None = None
        metrics.registry.register(self)

    def follow(self) -> None:
        """Listen to pods from now on."""
        self._mirror.subscribe(kinds.POD, self._pod_changed)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: names depend on no object, yet need no check."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges of nodes, pods and the mirror."""
        nodes = self._mirror.state_nodes()
        yield from self._state(nodes)
        yield from _nodes(nodes, self._clock.now().timestamp())
        yield from self._pods()
        yield self._draining()

    def _draining(self) -> Metric:
        family = GaugeMetricFamily(
            "karpenter_nodeclaims_draining_seconds",
            "How long the drain of the claim's node has gone on",
            labels=("name", "nodepool"),
        )
        now = self._clock.now()
        for claim in tuple(self._mirror.claims.values()):
            drained = get(claim.status.conditions, ClaimCondition.DRAINED)
            if drained is None or drained.status is not ConditionStatus.UNKNOWN:
                continue
            if claim.deleting and drained.last_transition_time is not None:
                pool = claim.metadata.labels.get(labels.NODEPOOL, "")
                seconds = (now - drained.last_transition_time).total_seconds()
                family.add_metric((claim.name, pool), max(0.0, seconds))
        return family

    def _state(self, nodes: tuple[StateNode, ...]) -> Iterator[Metric]:
        synced, now = self._mirror.is_synced(), self._clock.monotonic()
        if synced:
            self._unsynced_since = None
        elif self._unsynced_since is None:
            self._unsynced_since = now
        since = self._unsynced_since
        scheduler = self._metrics.scheduler
        scheduler.node_count.set(len(nodes))
        scheduler.synced.set(1 if synced else 0)
        scheduler.unsynced_time.set(0.0 if since is None else now - since)
        utilization = GaugeMetricFamily(
            "karpenter_cluster_utilization_percent", "Requests of allocatable", labels=("resource_type",)
        )
        asked = add(*(_requests(node) for node in nodes))
        there = add(*(node.allocatable for node in nodes))
        for resource, amount in sorted(there.items()):
            if amount:
                utilization.add_metric((_resource(resource),), 100 * asked.get(resource, 0) / amount)
        yield utilization

    def _pods(self) -> Iterator[Metric]:
        family = GaugeMetricFamily("karpenter_pods_state", "1 per pod", labels=_POD_LABELS)
        waiting = {
            name: GaugeMetricFamily(f"karpenter_pods_{name}_time_seconds", text, labels=("name", "namespace"))
            for name, text in _WAITING
        }
        nodes, now, at = self._mirror.nodes, self._clock.now(), self._clock.monotonic()
        for pod in tuple(self._mirror.pods):
            family.add_metric(_pod_values(pod, nodes.get(pod.node_name or "")), 1)
            for name, seconds in self._times.waiting(pod.uid, at):
                waiting[name].add_metric((pod.name, pod.namespace), seconds)
            if pod.created is None:
                continue
            age = (now - pod.created).total_seconds()
            for name, uids in (("unbound", self._unbound), ("unstarted", self._unstarted)):
                if pod.uid in uids:
                    waiting[name].add_metric((pod.name, pod.namespace), age)
        yield from (family, *waiting.values())

    def _pod_changed(self, change: Change) -> None:
        pod: Pod = change.current
        if change.new is None or is_terminal(pod):
            self._unbound.discard(pod.uid)
            self._unstarted.discard(pod.uid)
            self._times.forget(pod.uid)
            return
        if change.old is None and not pod.node_name:
            self._unbound.add(pod.uid)
            self._unstarted.add(pod.uid)
        else:
            self._progress(pod)
        if is_provisionable(pod):
            self._times.saw(pod.uid, self._clock.monotonic())

    def _progress(self, pod: Pod) -> None:
        at = self._clock.monotonic()
        if pod.node_name:
            self._times.bound(pod.uid, at)
        if pod.ready:
            self._times.started(pod.uid, at)
        if pod.created is None:
            return
        age = (self._clock.now() - pod.created).total_seconds()
        if pod.node_name and pod.uid in self._unbound:
            self._unbound.discard(pod.uid)
            self._metrics.pods.bound.observe(age)
        if pod.ready and pod.uid in self._unstarted:
            self._unstarted.discard(pod.uid)
            self._metrics.pods.startup.observe(age)


def _nodes(nodes: Iterable[StateNode], now_s: float) -> Iterator[Metric]:
    names = ("node_name", "phase", *_NODE_LABELS)
    families = {
        name: GaugeMetricFamily(f"karpenter_nodes_{name}", text, labels=(*names, "resource_type"))
        for name, text in (
            ("allocatable", "What pods may use"),
            ("total_pod_requests", "Requests of pods other than DaemonSets'"),
            ("total_pod_limits", "Limits of pods other than DaemonSets'"),
            ("total_daemon_requests", "Requests of DaemonSets' pods"),
            ("total_daemon_limits", "Limits of DaemonSets' pods"),
            ("system_overhead", "Capacity that pods may not use"),
        )
    }
    lifetime = GaugeMetricFamily("karpenter_nodes_current_lifetime_seconds", "Age", labels=names)
    for node in nodes:
        if node.node_name is None:
            continue
        values = _node_values(node)
        for name, amounts in _amounts(node).items():
            for resource, amount in sorted(amounts.items()):
                families[name].add_metric((*values, _resource(resource)), _plain(resource, amount))
        if node.created is not None:
            lifetime.add_metric(values, now_s - node.created.timestamp())
    yield from (*families.values(), lifetime)


def _amounts(node: StateNode) -> dict[str, Resources]:
    alive = [pod for pod in node.pods if not is_terminal(pod)]
    daemons = [pod for pod in alive if is_daemonset(pod)]
    others = [pod for pod in alive if not is_daemonset(pod)]
    kept = {name: amount - node.allocatable.get(name, 0) for name, amount in node.capacity.items()}
    return {
        "allocatable": node.allocatable,
        "total_pod_requests": add(*(pod.requests for pod in others)),
        "total_pod_limits": add(*(pod.limits for pod in others)),
        "total_daemon_requests": add(*(pod.requests for pod in daemons)),
        "total_daemon_limits": add(*(pod.limits for pod in daemons)),
        "system_overhead": kept,
    }


def _node_values(node: StateNode) -> tuple[str, ...]:
    return (node.node_name or "", "", *(node.labels.get(key, "") for key in _WELL_KNOWN))


def _pod_values(pod: Pod, node: Node | None) -> tuple[str, ...]:
    owner = next(iter(pod.owners), None)
    path = ""
    if owner is not None:
        path = f"/apis/{owner.api_version}/namespaces/{pod.namespace}/{owner.kind.lower()}s/{owner.name}"
    found = node.labels if node is not None else {}
    own = tuple(found.get(key, "") for key in _POD_NODE_LABELS)
    scheduled, ready = str(bool(pod.node_name)).lower(), str(pod.ready).lower()
    return (pod.name, pod.namespace, path, pod.node_name or "", scheduled, *own, pod.phase, ready)


def _requests(node: StateNode) -> Resources:
    return add(*(pod.requests for pod in node.pods if not is_terminal(pod)))


def _resource(name: str) -> str:
    return name.lower().replace("-", "_")


def _plain(resource: str, amount: int) -> float:
    """Return cores for cpu, plain units for everything else."""
    return amount / 1000 if resource == "cpu" else float(amount)

"""Every metric of the specification's tables is exposed by a replica, under its name, type and labels.

The table below is the specification's (core/observability §1, v1.9), a line per metric: name, type (C
counter, G gauge, H histogram, S summary), labels. Series that need an object appear once there is one.
"""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.core import Metric

from controller.kube import kinds
from controller.observability.cluster import ClusterObserver
from controller.observability.conditions import ConditionObserver
from controller.observability.metrics import DURATION_BUCKETS
from tests.controller.fakes.objects import a_claim, a_node, a_pod
from tests.controller.fakes.world import World

TABLE = """
karpenter_nodeclaims_created_total C reason nodepool min_values_relaxed
karpenter_nodeclaims_terminated_total C nodepool capacity_type
karpenter_nodeclaims_disrupted_total C reason nodepool capacity_type
karpenter_nodeclaims_unhealthy_disrupted_total C condition nodepool capacity_type image_id
karpenter_nodeclaims_instance_termination_duration_seconds H nodepool
karpenter_nodeclaims_termination_duration_seconds H nodepool
karpenter_nodes_created_total C nodepool
karpenter_nodes_terminated_total C nodepool
karpenter_nodes_drained_total C nodepool
karpenter_nodes_termination_duration_seconds S nodepool
karpenter_nodes_lifetime_duration_seconds H nodepool
karpenter_nodes_allocatable G node_name phase nodepool zone region instance_type arch os \
  capacity_type resource_type
karpenter_nodes_total_pod_requests G node_name phase nodepool resource_type
karpenter_nodes_total_pod_limits G node_name phase nodepool resource_type
karpenter_nodes_total_daemon_requests G node_name phase nodepool resource_type
karpenter_nodes_total_daemon_limits G node_name phase nodepool resource_type
karpenter_nodes_system_overhead G node_name phase nodepool resource_type
karpenter_nodes_current_lifetime_seconds G node_name phase nodepool
karpenter_cluster_utilization_percent G resource_type
karpenter_nodepools_limit G resource_type nodepool
karpenter_nodepools_usage G resource_type nodepool
karpenter_nodepools_allowed_disruptions G nodepool reason
karpenter_nodepools_nodes_consuming_budgets G nodepool reason
karpenter_voluntary_disruption_decision_evaluation_duration_seconds H reason consolidation_type
karpenter_voluntary_disruption_decisions_total C decision reason consolidation_type
karpenter_voluntary_disruption_decisions_by_nodepool_total C nodepool decision reason consolidation_type
karpenter_voluntary_disruption_eligible_nodes G reason
karpenter_voluntary_disruption_consolidation_timeouts_total C consolidation_type
karpenter_voluntary_disruption_failed_validations_total C consolidation_type
karpenter_voluntary_disruption_queue_failures_total C decision reason consolidation_type
karpenter_scheduler_scheduling_duration_seconds H controller
karpenter_scheduler_queue_depth G controller scheduling_id
karpenter_scheduler_unfinished_work_seconds G controller scheduling_id
karpenter_scheduler_ignored_pods_count G
karpenter_scheduler_unschedulable_pods_count G controller
karpenter_cluster_state_node_count G
karpenter_cluster_state_synced G
karpenter_cluster_state_unsynced_time_seconds G
karpenter_pods_state G name namespace owner node scheduled nodepool zone arch capacity_type \
  instance_type phase ready
karpenter_pods_startup_duration_seconds S
karpenter_pods_unstarted_time_seconds G name namespace
karpenter_pods_bound_duration_seconds H
karpenter_pods_unbound_time_seconds G name namespace
karpenter_pods_provisioning_bound_duration_seconds H
karpenter_pods_provisioning_unbound_time_seconds G name namespace
karpenter_pods_provisioning_startup_duration_seconds H
karpenter_pods_provisioning_unstarted_time_seconds G name namespace
karpenter_pods_provisioning_scheduling_undecided_time_seconds G name namespace
karpenter_pods_scheduling_decision_duration_seconds H
karpenter_pods_eviction_requests_total C code
karpenter_pods_drained_total C reason
karpenter_cloudprovider_duration_seconds H controller method provider
karpenter_cloudprovider_errors_total C controller method provider error
karpenter_build_info G version goversion goarch commit
client_go_request_duration_seconds H verb group version kind subresource
client_go_request_total C code method
controller_runtime_reconcile_total C controller result
controller_runtime_reconcile_errors_total C controller
controller_runtime_reconcile_time_seconds H controller
workqueue_depth G name
leader_election_master_status G name
process_resident_memory_bytes G
process_cpu_seconds_total C
operator_nodeclaim_status_condition_transition_seconds H type status karpenter_sh_nodepool
operator_nodeclaim_status_condition_transitions_total C type status reason karpenter_sh_nodepool
operator_nodeclaim_status_condition_count G namespace name type status reason karpenter_sh_nodepool
operator_nodeclaim_status_condition_current_status_seconds G namespace name type status reason \
  karpenter_sh_nodepool
operator_nodeclaim_termination_current_time_seconds G namespace name karpenter_sh_nodepool
operator_nodeclaim_termination_duration_seconds H karpenter_sh_nodepool
operator_nodepool_status_condition_count G namespace name type status reason
operator_node_status_condition_count G namespace name type status reason karpenter_sh_nodepool \
  karpenter_sh_initialized
operator_ec2nodeclass_status_condition_count G namespace name type status reason
operator_status_condition_transition_seconds H group kind type status
operator_status_condition_transitions_total C group kind type status reason
operator_status_condition_count G group kind namespace name type status reason
operator_status_condition_current_status_seconds G group kind namespace name type status reason
operator_termination_current_time_seconds G group kind namespace name
operator_termination_duration_seconds H group kind
"""
TYPES = {"C": "counter", "G": "gauge", "H": "histogram", "S": "summary"}
ROWS = [line.split() for line in TABLE.split("\n") if line]
DURATIONS = [
    *("karpenter_scheduler_scheduling_duration_seconds", "karpenter_pods_bound_duration_seconds"),
    "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
]


@pytest.fixture(scope="module")
def replica() -> World:
    """A cluster with a node, a pending pod and a claim that ends, watched as a leader does."""
    world = World()
    recorder: Any = world.events
    ClusterObserver(world.mirror, world.metrics, world.clock).follow()
    ConditionObserver(world.mirror, world.metrics, recorder, world.clock).follow()
    world.api.put(kinds.NODECLAIM, a_claim(metadata={"finalizers": ["example.com/hold"]}))
    world.api.change(kinds.NODECLAIM, "default-abcde", {"metadata": {"deletionTimestamp": ago()}})
    world.api.put(kinds.NODE, a_node())
    world.api.put(kinds.POD, a_pod())
    return world


def ago() -> str:
    return "2026-01-01T11:00:00Z"


def families(world: World) -> dict[str, Metric]:
    return {family.name: family for family in world.metrics.registry.collect()}


def declared_labels(world: World, family: Metric, name: str) -> set[str]:
    """Return the labels that a metric was made with, or those of its series."""
    made = world.metrics.registry._names_to_collectors.get(name)
    own = set(getattr(made, "_labelnames", ()))
    return own | {label for sample in family.samples for label in sample.labels}


@pytest.mark.parametrize(
    ("name", "type", "labels"), [(row[0], row[1], row[2:]) for row in ROWS], ids=lambda x: str(x)
)
def test_a_metric_of_the_specification_is_exposed(
    replica: World, name: str, type: str, labels: list[str]
) -> None:
    family = families(replica).get(name.removesuffix("_total") if type == "C" else name)

    assert family is not None, f"{name} is not exposed"
    assert family.type == TYPES[type]
    assert family.documentation
    if family.samples or hasattr(replica.metrics.registry._names_to_collectors.get(name), "_labelnames"):
        assert set(labels) <= declared_labels(replica, family, name)


@pytest.mark.parametrize("name", DURATIONS)
def test_durations_have_the_buckets_of_the_specification(replica: World, name: str) -> None:
    made: Any = replica.metrics.registry._names_to_collectors[name]

    assert tuple(made._upper_bounds[:-1]) == DURATION_BUCKETS


def test_summaries_have_quantiles(replica: World) -> None:
    summary = replica.metrics.nodes.termination.labels(nodepool="default")
    for seconds in range(100):
        summary.observe(seconds)

    found = families(replica)["karpenter_nodes_termination_duration_seconds"].samples
    quantiles = {each.labels["quantile"]: each.value for each in found if "quantile" in each.labels}

    assert quantiles == {"0": 0, "0.5": 50, "0.9": 90, "0.99": 99, "1": 99}
    assert {each.name for each in found if "quantile" not in each.labels} == {
        "karpenter_nodes_termination_duration_seconds_count",
        "karpenter_nodes_termination_duration_seconds_sum",
    }


async def test_a_pod_is_timed_from_seen_over_planned_to_ready() -> None:
    world = World()
    ClusterObserver(world.mirror, world.metrics, world.clock).follow()
    world.api.put(kinds.POD, a_pod())
    (pod,) = world.mirror.pods
    await world.clock.advance(2)
    undecided = value(world, "karpenter_pods_provisioning_scheduling_undecided_time_seconds")
    world.metrics.pod_times.decided(pod.uid, world.clock.monotonic(), placed=True)
    await world.clock.advance(3)
    unbound = value(world, "karpenter_pods_provisioning_unbound_time_seconds")
    world.api.change(kinds.POD, "web-0", {"spec": {"nodeName": "n"}}, "default")
    await world.clock.advance(4)
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    world.api.change(kinds.POD, "web-0", ready, "default")

    assert (undecided, unbound) == (2, 3)
    assert value(world, "karpenter_pods_scheduling_decision_duration_seconds_sum") == 2
    assert value(world, "karpenter_pods_provisioning_bound_duration_seconds_sum") == 3
    assert value(world, "karpenter_pods_provisioning_startup_duration_seconds_sum") == 7
    assert value(world, "karpenter_pods_provisioning_unstarted_time_seconds") is None


def value(world: World, series: str) -> float | None:
    found = [
        each.value for family in families(world).values() for each in family.samples if each.name == series
    ]
    return found[0] if found else None

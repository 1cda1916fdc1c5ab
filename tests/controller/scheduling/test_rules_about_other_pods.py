"""Affinity, anti-affinity and spread as kube-scheduler will judge them once the nodes are there."""

from __future__ import annotations

import pytest

from controller.scheduling import Taint
from framework.api import labels
from tests.controller.scheduling.builders import (
    SIZES,
    ZONES,
    a_node,
    a_pod,
    a_problem,
    a_type,
    by_claim,
    near,
    pods,
    solved,
    spread,
)


def test_anti_affinity_keeps_away_from_claims_that_may_come_up_in_any_zone() -> None:
    """The two pods may get a node in any zone: no zone is free of them until it is known."""
    plain = pods(2, app="web", cpu="3", memory="11Gi")
    choosy = a_pod("db-0", app="db", cpu="1", **near("podAntiAffinity", labels.ZONE, app="web"))

    plan = solved(a_problem([*plain, choosy]))

    assert by_claim(plan) == [["web-000", "web-001"]]
    assert [unplaced.pod_key for unplaced in plan.unplaced] == ["default/db-0"]


def test_a_claim_that_gets_narrowed_frees_the_zones_it_leaves() -> None:
    plain = a_pod("web-0", app="web", cpu="3")
    here = a_pod("job-0", app="job", cpu="2", nodeSelector={labels.ZONE: "z-a"})
    choosy = a_pod("db-0", app="db", cpu="1", **near("podAntiAffinity", labels.ZONE, app="web"))

    plan = solved(a_problem([plain, here, choosy]))

    assert by_claim(plan) == [["db-0"], ["job-0", "web-0"]]
    assert plan.claims[1].zones == ("z-b", "z-c")


def test_a_group_that_runs_elsewhere_is_not_started_again() -> None:
    """kube-scheduler lets a pod be the first of its group only while the group has no pod anywhere."""
    running = a_pod("web-0", node="n1")
    tied = a_pod("web-1", **near("podAffinity", labels.ZONE), nodeSelector={labels.ZONE: "z-b"})

    plan = solved(a_problem([tied], nodes=[a_node(zone="z-a", pods=(running,))]))

    assert [unplaced.pod_key for unplaced in plan.unplaced] == ["default/web-1"]


def test_spread_that_ignores_node_affinity_counts_zones_the_pod_cannot_be_in() -> None:
    rules = spread(labels.ZONE, skew=2, nodeAffinityPolicy="Ignore")
    nodes = [a_node(f"n-{zone}", cpu=1, zone=zone) for zone in ZONES]

    plan = solved(a_problem(pods(3, cpu="1500m", nodeSelector={labels.ZONE: "z-b"}, **rules), nodes=nodes))

    assert sum(len(claim.pods) for claim in plan.claims) == 2
    assert [unplaced.pod_key for unplaced in plan.unplaced] == ["default/web-002"]


def test_a_group_starts_where_pods_go_that_need_not_follow_it() -> None:
    """The plain pod fits the node in z-b alone; were it bound first, nothing could start in z-a."""
    first = a_pod("web-0", cpu="3", **near("podAffinity", labels.ZONE))
    plain = a_pod("web-1", cpu="700m")
    second = a_pod("web-2", cpu="600m", **near("podAffinity", labels.ZONE))
    nodes = [a_node("n0", cpu=4, zone="z-a", taints=(Taint("team", "a"),)), a_node("n1", cpu=1, zone="z-b")]

    plan = solved(a_problem([first, plain, second], nodes=nodes))

    assert [(p.pod_key, p.node) for p in plan.placements] == [("default/web-1", "n1")]
    assert [claim.zones for claim in plan.claims] == [("z-b",)]
    assert by_claim(plan) == [["web-0", "web-2"]]


def test_a_group_on_one_host_starts_where_pods_go_that_need_not_follow_it() -> None:
    tied = pods(2, cpu="3", memory="1Gi", **near("podAffinity", labels.HOSTNAME))
    plain = a_pod("plain", cpu="100m", memory="20Gi")

    plan = solved(a_problem([*tied, plain]))

    assert by_claim(plan) == [["plain", "web-000", "web-001"]]


def test_groups_that_wait_for_each_other_start_all_the_same() -> None:
    both = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
    term = {**both, "topologyKey": labels.ZONE}
    tied_to_all = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    web = a_pod("web-0", cpu="1", app="web", **near("podAffinity", labels.ZONE))
    db = a_pod("db-0", cpu="2", app="db", affinity=tied_to_all)

    assert solved(a_problem([web, db])).unplaced == ()


def test_a_group_starts_where_its_pods_on_open_claims_can_come_up() -> None:
    """The plain pod's only type is sold in z-b: started in z-a, the group would be torn apart."""
    types = (a_type("g.large", 2, 8, 0.1, zones=("z-b", "z-c")), *SIZES)
    plain = a_pod("plain", cpu="1500m", nodeSelector={labels.INSTANCE_TYPE: "g.large"})
    tied = a_pod("tied", cpu="1", **near("podAffinity", labels.ZONE))

    plan = solved(a_problem([plain, tied], types=types))

    assert {claim.zones for claim in plan.claims} == {("z-b",)}
    assert plan.unplaced == ()


@pytest.mark.parametrize(("others", "on_node"), [(0, 3), (1, 0)])
def test_host_skew_is_measured_from_a_node_that_joins(others: int, on_node: int) -> None:
    """Alone, the node that is fullest is the emptiest too; next to a new one it is not."""
    rules = spread(labels.HOSTNAME, skew=1, nodeTaintsPolicy="Honor")
    node = a_node(cpu=4, pods=tuple(pods(1, node="n1")))
    big = pods(others, app="big", cpu="6")

    plan = solved(a_problem([*(a_pod(f"new-{n}", **rules) for n in range(3)), *big], nodes=[node]))

    assert len(plan.placements) == on_node
    assert plan.unplaced == ()

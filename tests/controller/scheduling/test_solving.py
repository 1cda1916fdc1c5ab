"""The engine's answers, one rule of core/scheduling each; every plan passes the verifier."""

from __future__ import annotations

import attrs
import pytest

from controller.scheduling import (
    MinValuesPolicy,
    Options,
    PersistentVolume,
    PreferencePolicy,
    ReservedMode,
    StorageClass,
    Taint,
    VolumeClaim,
    VolumeIndex,
    queue_order,
)
from framework.api import NodeOverlay, SchedulingConfig, labels
from tests.controller.scheduling.builders import (
    CLASS_REF,
    GIB,
    SIZES,
    ZONES,
    a_node,
    a_pod,
    a_pool,
    a_problem,
    a_type,
    by_claim,
    near,
    pods,
    solved,
    spread,
)

SPOT_OR_DEMAND = [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"]}]
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


def test_pods_are_tried_by_cpu_then_memory_then_age() -> None:
    listed = [
        a_pod("a", cpu="2", memory="1Gi", number=2),
        a_pod("b", cpu="2", memory="4Gi", number=3),
        a_pod("c", cpu="4", memory="1Gi", number=9),
        a_pod("d", cpu="2", memory="1Gi", number=1),
    ]

    assert [pod.name for pod in queue_order(listed)] == ["c", "b", "d", "a"]


def test_a_claim_keeps_every_type_that_holds_its_pods_cheapest_first() -> None:
    plan = solved(a_problem(pods(3, cpu="1")))

    (claim,) = plan.claims
    assert claim.instance_types == ("m.xlarge", "m.2xlarge")
    assert claim.price == 0.2
    assert claim.requests == {"cpu": 3000, "memory": 3 * 128 * 2**20, "pods": 3}


def test_existing_nodes_come_first_then_new_claims_by_weight() -> None:
    pools = (a_pool("low", weight=1), a_pool("high", weight=50))
    plan = solved(a_problem(pods(5, cpu="1"), pools=pools, nodes=[a_node(pool="low")]))

    assert len(plan.placements) == 4
    assert [claim.pool for claim in plan.claims] == ["high"]


def test_nodes_are_tried_initialized_first_then_by_name() -> None:
    nodes = [a_node("n-a", initialized=False), a_node("n-c"), a_node("n-b")]
    plan = solved(a_problem([a_pod()], nodes=nodes))

    assert [placement.node for placement in plan.placements] == ["n-b"]


def test_bound_pods_and_daemonsets_to_come_take_room() -> None:
    daemon = a_pod("agent", cpu="1", owner="DaemonSet", app="agent")
    node = a_node(cpu=2, pods=(a_pod("old", cpu="500m", node="n1"),))
    plan = solved(a_problem([a_pod("big", cpu="600m")], nodes=[node], daemonsets=(daemon,)))

    assert plan.placements == ()
    assert plan.claims[0].requests["cpu"] == 1600


@pytest.mark.parametrize(("tolerated", "placed"), [(True, 1), (False, 0)])
def test_taints_of_the_pool_must_be_tolerated(tolerated: bool, placed: int) -> None:
    tolerations = [{"key": "team", "operator": "Equal", "value": "a"}] if tolerated else []
    plan = solved(a_problem([a_pod(tolerations=tolerations)], pools=[a_pool(taints=[TAINT])]))

    assert len(plan.claims) == placed
    assert all("team=a:NoSchedule" in unplaced.reason.render() for unplaced in plan.unplaced)


def test_limits_count_planned_claims_and_are_never_overshot() -> None:
    pool = a_pool(limits={"cpu": "20"})
    types = [a_type("x.4", 4, 16, 0.2), a_type("x.8", 8, 32, 0.4), a_type("x.16", 16, 64, 0.8)]
    plan = solved(a_problem(pods(9, cpu="3500m"), pools=[pool], types=types, nodes=[a_node(cpu=8)]))

    assert sum(4 if "x.4" in c.instance_types[0] else 8 for c in plan.claims) <= 12
    assert plan.unplaced
    assert "limit" in plan.unplaced[0].reason.render()


def test_the_limit_on_nodes_holds_within_a_round() -> None:
    pool = a_pool(limits={"nodes": "3"})
    plan = solved(a_problem(pods(5, cpu="7"), pools=[pool], nodes=[a_node(cpu=4)]))

    assert (len(plan.claims), len(plan.unplaced)) == (2, 3)


def test_static_pools_and_pools_being_deleted_open_nothing() -> None:
    plan = solved(a_problem([a_pod()], pools=[a_pool("static", replicas=2)]))

    assert plan.claims == ()


def test_zone_spread_alternates_zones() -> None:
    plan = solved(a_problem(pods(6, cpu="1500m", **spread(labels.ZONE))))

    zones = sorted(zone for claim in plan.claims for zone in claim.zones for _ in claim.pods)
    assert zones == sorted(ZONES * 2)


def test_min_domains_asks_for_as_many_zones() -> None:
    rule = spread(labels.ZONE, minDomains=4)
    plan = solved(a_problem(pods(4, **rule)))

    assert len(plan.unplaced) == 1
    assert "topology spread" in plan.unplaced[0].reason.render()


def test_host_spread_opens_a_node_per_pod() -> None:
    plan = solved(a_problem(pods(3, **spread(labels.HOSTNAME))))

    assert by_claim(plan) == [["web-000"], ["web-001"], ["web-002"]]


def test_host_anti_affinity_is_kept_from_both_sides() -> None:
    loners = pods(2, app="loner", cpu="200m", **near("podAntiAffinity", labels.HOSTNAME, app="web"))
    plan = solved(a_problem([*loners, *pods(2)]))

    assert by_claim(plan) == [["loner-000", "loner-001"], ["web-000", "web-001"]]


def test_zone_anti_affinity_blocks_every_zone_the_first_pod_may_land_in() -> None:
    plan = solved(a_problem(pods(2, **near("podAntiAffinity", labels.ZONE))))

    assert (len(plan.claims), len(plan.unplaced)) == (1, 1)


def test_affinity_follows_running_pods() -> None:
    node = a_node("full", cpu=1, zone="z-b", pods=(a_pod("db", app="db", node="full", cpu="900m"),))
    plan = solved(a_problem([a_pod(cpu="1", **near("podAffinity", labels.ZONE, app="db"))], nodes=[node]))

    assert plan.claims[0].zones == ("z-b",)


def test_affinity_to_itself_starts_in_one_place() -> None:
    plan = solved(a_problem(pods(3, cpu="5", **near("podAffinity", labels.ZONE))))

    assert {claim.zones for claim in plan.claims} == {("z-a",)}


def test_preferences_are_kept_while_they_can_be() -> None:
    preferred = {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [_zone_in("z-b")]}},
                    {"weight": 9, "preference": {"matchExpressions": [_zone_in("z-nowhere")]}},
                ]
            }
        }
    }
    respected = solved(a_problem([a_pod(**preferred)]))
    ignored = solved(
        a_problem([a_pod(**preferred)], options=Options(preference_policy=PreferencePolicy.IGNORE))
    )

    assert respected.claims[0].zones == ("z-b",)
    assert ignored.claims[0].zones == ()


def test_required_terms_are_alternatives() -> None:
    terms = [{"matchExpressions": [_zone_in("z-nowhere")]}, {"matchExpressions": [_zone_in("z-c")]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    plan = solved(a_problem([a_pod(affinity={"nodeAffinity": required})]))

    assert plan.claims[0].zones == ("z-c",)


def _zone_in(*zones: str) -> dict[str, object]:
    return {"key": labels.ZONE, "operator": "In", "values": list(zones)}


def test_host_ports_are_exclusive_per_node() -> None:
    ports = {"container": {"ports": [{"hostPort": 8080}]}}
    plan = solved(a_problem(pods(3, **ports)))

    assert len(plan.claims) == 3


@pytest.mark.parametrize(
    ("policy", "claims"), [(MinValuesPolicy.STRICT, 0), (MinValuesPolicy.BEST_EFFORT, 1)]
)
def test_min_values(policy: MinValuesPolicy, claims: int) -> None:
    families = {"key": labels.INSTANCE_FAMILY, "operator": "Exists", "minValues": 2}
    plan = solved(
        a_problem(
            [a_pod()], pools=[a_pool(requirements=[families])], options=Options(min_values_policy=policy)
        )
    )

    assert len(plan.claims) == claims
    if claims:
        assert plan.claims[0].min_values_relaxed
        assert plan.claims[0].requirements[labels.INSTANCE_FAMILY].min_values == 1
    else:
        assert "minValues" in plan.unplaced[0].reason.render()


@pytest.mark.parametrize(("mode", "waiting"), [(ReservedMode.STRICT, 1), (ReservedMode.FALLBACK, 0)])
def test_reserved_capacity_is_held_by_one_claim_each(mode: ReservedMode, waiting: int) -> None:
    types = [a_type("m.large", 2, 8, reserved={"cr-1": 1})]
    plan = solved(a_problem(pods(2, cpu="1500m"), types=types, options=Options(reserved_mode=mode)))

    pinned = [c for c in plan.claims if c.requirements[labels.CAPACITY_TYPE].values == {"reserved"}]
    assert len(pinned) == 1
    assert pinned[0].requirements[labels.CAPACITY_RESERVATION_ID].values == {"cr-1"}
    assert len(plan.unplaced) == waiting
    assert all(unplaced.retryable for unplaced in plan.unplaced)


def test_spot_is_chosen_by_price_alone() -> None:
    types = [a_type("m.large", 2, 8, 0.1, spot=0.04)]
    plan = solved(a_problem([a_pod()], pools=[a_pool(requirements=SPOT_OR_DEMAND)], types=types))

    assert plan.claims[0].price == 0.04
    assert plan.claims[0].requirements[labels.CAPACITY_TYPE].values == {"spot", "on-demand"}


def test_a_volume_pins_the_zone_and_its_alternatives_are_all_used() -> None:
    volume = PersistentVolume(
        name="pv",
        terms=tuple(
            PersistentVolume.from_wire(
                {
                    "spec": {
                        "nodeAffinity": {
                            "required": {"nodeSelectorTerms": [{"matchExpressions": [_zone_in(zone)]}]}
                        }
                    }
                }
            ).terms[0]
            for zone in ("z-gone", "z-b")
        ),
    )
    claim = VolumeClaim(namespace="default", name="data", volume_name="pv", bind_completed=True)
    volumes = VolumeIndex(claims={claim.key: claim}, volumes={"pv": volume})
    mount = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
    plan = solved(a_problem([a_pod(**mount)], volumes=volumes))

    assert plan.claims[0].zones == ("z-b",)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (None, "not found"),
        (VolumeClaim(namespace="default", name="data"), "storage class"),
        (VolumeClaim(namespace="default", name="data", volume_name="pv"), "not found"),
        (VolumeClaim(namespace="default", name="data", storage_class="now"), "Immediate"),
        (VolumeClaim(namespace="default", name="data", storage_class="now", deleting=True), "deleted"),
    ],
)
def test_a_volume_that_cannot_be_used_is_told_and_stops_nobody_else(
    claim: VolumeClaim | None, words: str
) -> None:
    volumes = VolumeIndex(
        claims={claim.key: claim} if claim else {}, classes={"now": StorageClass(name="now", provisioner="p")}
    )
    mount = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
    plan = solved(a_problem([a_pod("stuck", **mount), a_pod("fine")], volumes=volumes))

    assert by_claim(plan) == [["fine"]]
    assert words in plan.unplaced[0].reason.render()


def test_attach_slots_of_existing_nodes_run_out() -> None:
    claims = {
        f"default/d{n}": VolumeClaim(namespace="default", name=f"d{n}", storage_class="gp3") for n in range(2)
    }
    volumes = VolumeIndex(
        claims=claims,
        classes={"gp3": StorageClass(name="gp3", provisioner="ebs", waits_for_consumer=True)},
        attach_limits={"n1": {"ebs": 1}},
    )
    mounts = [{"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": f"d{n}"}}]} for n in range(2)]
    pending = [a_pod(f"p{n}", **mount) for n, mount in enumerate(mounts)]
    plan = solved(a_problem(pending, nodes=[a_node("n1")], volumes=volumes))

    assert (len(plan.placements), len(plan.claims)) == (1, 1)


def test_resource_claims_are_refused_clearly() -> None:
    plan = solved(a_problem([a_pod(resourceClaims=[{"name": "gpu"}])]))

    assert "dynamic resource allocation" in plan.unplaced[0].reason.short()


def test_one_bad_pod_does_not_stop_the_round() -> None:
    bad = a_pod(
        "bad", affinity={"nodeAffinity": _required({"key": "k", "operator": "Like", "values": ["x"]})}
    )
    plan = solved(a_problem([bad, a_pod("good")]))

    assert by_claim(plan) == [["good"]]
    assert "Like" in plan.unplaced[0].reason.render()


def _required(expression: dict[str, object]) -> dict[str, object]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def test_custom_labels_of_the_pool_get_a_value() -> None:
    team = {"key": "team", "operator": "In", "values": ["x", "y"]}
    plan = solved(a_problem([a_pod(nodeSelector={"team": "y"})], pools=[a_pool(requirements=[team])]))

    assert plan.claims[0].labels["team"] == "y"


def test_an_overlay_changes_which_type_is_cheapest() -> None:
    overlay = NodeOverlay.from_wire(
        {
            "metadata": {"name": "o"},
            "spec": {
                "requirements": [{"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["m.2xlarge"]}],
                "priceAdjustment": "-90%",
            },
        }
    )
    plan = solved(a_problem([a_pod()], node_overlays=(overlay,)))

    assert plan.claims[0].instance_types[0] == "m.2xlarge"
    assert plan.claims[0].annotations[labels.PRICE_OVERLAY_APPLIED] == "true"


def test_a_config_narrows_and_limits_all_pools_of_its_class() -> None:
    config = SchedulingConfig.from_wire(
        {
            "metadata": {"name": "shared"},
            "spec": {
                "nodeClassRef": CLASS_REF,
                "requirements": [{"key": labels.ZONE, "operator": "In", "values": ["z-a"]}],
                "limits": {"nodes": 2},
            },
        }
    )
    pools = [a_pool("one", weight=2), a_pool("two", weight=1)]
    plan = solved(a_problem(pods(4, cpu="7"), pools=pools, scheduling_configs=(config,)))

    assert (len(plan.claims), len(plan.unplaced)) == (2, 2)
    assert {claim.zones for claim in plan.claims} == {("z-a",)}


def test_daemon_overhead_is_taken_per_type() -> None:
    only_big = {"nodeSelector": {labels.INSTANCE_TYPE: "m.2xlarge"}}
    daemon = a_pod("agent", cpu="6", owner="DaemonSet", app="agent", **only_big)
    plan = solved(a_problem([a_pod(cpu="3")], daemonsets=(daemon,)))

    assert plan.claims[0].instance_types == ("m.xlarge",)


def test_excluded_and_marked_nodes_take_nothing_but_their_staying_pods_count() -> None:
    running = a_pod("web-9", node="n1")
    node = a_node("n1", zone="z-a", pods=(running,), marked_for_deletion=True)
    plan = solved(a_problem(pods(2, **spread(labels.ZONE)), nodes=[node]))

    assert {claim.zones for claim in plan.claims} == {("z-b",), ("z-c",)}


def test_startup_taints_are_not_checked_but_carried() -> None:
    pool = a_pool()
    template = attrs.evolve(
        pool.spec.template.spec, startup_taints=a_pool(taints=[TAINT]).spec.template.spec.taints
    )
    pool = attrs.evolve(
        pool, spec=attrs.evolve(pool.spec, template=attrs.evolve(pool.spec.template, spec=template))
    )
    plan = solved(a_problem([a_pod()], pools=[pool]))

    assert plan.claims[0].startup_taints == (Taint("team", "a", "NoSchedule"),)


def test_the_reason_names_the_nearest_miss() -> None:
    plan = solved(a_problem([a_pod(cpu="9")]))

    text = plan.unplaced[0].reason.render()
    assert "9000m cpu" in text
    assert "m.2xlarge, leaves 8000m cpu" in text
    assert plan.unplaced[0].reason.to_json()["code"] == "Unplaced"


def test_time_running_out_leaves_the_rest_for_the_next_round() -> None:
    from controller.scheduling import solve

    answers = iter([False, True, True])
    plan = solve(a_problem([a_pod("a", cpu="2"), a_pod("b", cpu="1")]), expired=lambda: next(answers))

    assert plan.stats.timed_out
    assert [(u.pod_key, u.retryable) for u in plan.unplaced] == [("default/b", True)]


def test_memory_is_counted_exactly() -> None:
    exact = a_pod("exact", cpu="1", memory=str(32 * GIB))
    over = a_pod("over", cpu="1", memory=str(32 * GIB + 1))
    plan = solved(a_problem([exact, over], types=SIZES))

    assert by_claim(plan) == [["exact"]]

"""What pods may ask for, one small hostile problem for each way of asking."""

from __future__ import annotations

from typing import Any

import pytest

from controller.scheduling import (
    PersistentVolume,
    Pod,
    PreferencePolicy,
    StorageClass,
    Taint,
    VolumeClaim,
    VolumeIndex,
)
from controller.scheduling.plan import Options
from framework.api import labels
from framework.api.errors import InvalidField
from tests.controller.scheduling.builders import (
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

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _left_out(plan: Any) -> list[str]:
    return [unplaced.pod_key.partition("/")[2] for unplaced in plan.unplaced]


def _wire(name: str = "p", status: Any = None, **spec: Any) -> Pod:
    metadata = {"name": name, "namespace": "default", "uid": name}
    return Pod.from_wire({"metadata": metadata, "spec": spec, "status": status or {}})


def _container(cpu: str, name: str = "c", **fields: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **fields}


def _node_terms(*terms: tuple[str, str, list[str]]) -> dict[str, Any]:
    listed = [{"matchExpressions": [{"key": k, "operator": op, "values": v}]} for k, op, v in terms]
    return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": listed}}}}


# Resources


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [_container("1"), _container("2", "d")]}, 3000),
        ({"containers": [_container("1")], "initContainers": [_container("3")]}, 3000),
        (
            {
                "containers": [_container("1")],
                "initContainers": [_container("2", "side", restartPolicy="Always"), _container("2", "i")],
            },
            4000,
        ),
        (
            {
                "containers": [_container("1")],
                "initContainers": [_container("2", "i"), _container("2", "side", restartPolicy="Always")],
            },
            3000,
        ),
        ({"containers": [_container("1")], "resources": {"requests": {"cpu": "5"}}}, 5000),
        ({"containers": [_container("1")], "overhead": {"cpu": "250m"}}, 1250),
        (
            {
                "containers": [_container("1")],
                "resources": {"requests": {"cpu": "5"}},
                "overhead": {"cpu": "1"},
            },
            6000,
        ),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}, 2000),
    ],
)
def test_requests_are_summed_as_kube_scheduler_does(spec: dict[str, Any], cpu: int) -> None:
    assert _wire(**spec).requests == {"cpu": cpu, "pods": 1}


@pytest.mark.parametrize(("reason", "cpu"), [(None, 4000), ("Deferred", 4000), ("Infeasible", 3000)], ids=str)
def test_a_pod_that_is_resized_counts_with_what_it_asks_and_has(reason: str | None, cpu: int) -> None:
    running = {
        "name": "c",
        "allocatedResources": {"cpu": "2"},
        "resources": {"requests": {"cpu": "3"}},
    }
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    status = {"containerStatuses": [running], "conditions": conditions}

    assert _wire(status=status, containers=[_container("4")]).requests["cpu"] == cpu


def test_a_pod_made_smaller_keeps_its_room_until_it_is() -> None:
    has = {"name": "c", "allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "3"}}}

    assert _wire(status={"containerStatuses": [has]}, containers=[_container("1")]).requests["cpu"] == 3000


@pytest.mark.parametrize(
    ("spec", "status", "field"),
    [
        ({"containers": [_container("-1")]}, {}, "spec.containers[c].resources.requests"),
        ({"containers": [], "overhead": {"cpu": "much"}}, {}, "spec.overhead"),
        (
            {"containers": [_container("1")]},
            {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "x"}}}]},
            "status.containerStatuses[c].resources.requests",
        ),
    ],
)
def test_amounts_that_are_none_name_their_field(
    spec: dict[str, Any], status: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidField, match=field.replace("[", r"\[").replace("]", r"\]")):
        _wire(status=status, **spec)


# Node affinity


@pytest.mark.parametrize(
    ("operator", "value", "sizes"),
    [
        ("Gt", "4", ["m.2xlarge"]),
        ("Lt", "4", ["m.large"]),
        ("Gte", "4", ["m.xlarge", "m.2xlarge"]),
        ("Lte", "4", ["m.large", "m.xlarge"]),
    ],
)
def test_bounds_on_numbers(operator: str, value: str, sizes: list[str]) -> None:
    plan = solved(a_problem([a_pod(**_node_terms((labels.INSTANCE_CPU, operator, [value])))]))

    assert list(plan.claims[0].instance_types) == sizes


def test_a_bound_that_no_number_passes_leaves_the_pod_out() -> None:
    huge = a_pod("huge", **_node_terms((labels.INSTANCE_CPU, "Gt", [str(2**63 - 1)])))

    assert _left_out(solved(a_problem([huge, a_pod("fine")]))) == ["huge"]


def test_terms_are_tried_in_order_before_preferences_are_dropped() -> None:
    """The second term is reached although the first cannot hold; the wish then still counts (§6)."""
    affinity = _node_terms((labels.ZONE, "In", ["nowhere"]), (labels.ZONE, "In", ["z-a", "z-b"]))["affinity"]
    wish = {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": ["z-b"]}]}
    affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = [
        {"weight": 1, "preference": wish}
    ]

    assert solved(a_problem([a_pod(affinity=affinity)])).claims[0].zones == ("z-b",)


def test_a_wish_for_a_node_by_name_is_not_held_against_the_pod() -> None:
    wish = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n9"]}]}
    preferred = [{"weight": 1, "preference": wish}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}

    assert solved(a_problem([a_pod(affinity=affinity)])).unplaced == ()


# Spread


def test_min_domains_counts_only_domains_the_pod_may_be_in() -> None:
    rules = spread(labels.ZONE, minDomains=3)
    plan = solved(a_problem(pods(3, nodeSelector={labels.ARCH: "amd64"}, **rules)))
    narrow = solved(a_problem(pods(3, **_node_terms((labels.ZONE, "In", ["z-a", "z-b"])), **rules)))

    assert (len(plan.claims), plan.unplaced) == (3, ())
    assert sum(len(claim.pods) for claim in narrow.claims) == 2


@pytest.mark.parametrize(("policy", "placed"), [("Ignore", 1), ("Honor", 2)])
def test_spread_may_leave_out_nodes_whose_taints_repel_the_pod(policy: str, placed: int) -> None:
    """One more in z-a is one too many next to the tainted node in z-b, unless that is left out."""
    pool = a_pool(requirements=[{"key": labels.ZONE, "operator": "In", "values": ["z-a"]}])
    nodes = [a_node("n0", zone="z-a"), a_node("n1", zone="z-b", taints=(Taint("team", "a"),))]

    plan = solved(
        a_problem(pods(2, **spread(labels.ZONE, nodeTaintsPolicy=policy)), pools=[pool], nodes=nodes)
    )

    assert len(plan.placements) == placed


def test_spread_by_match_label_keys_counts_each_version_by_itself() -> None:
    rules = spread(labels.HOSTNAME, matchLabelKeys=["version"])
    old = [a_pod(f"old-{n}", labels={"version": "1"}, **rules) for n in range(2)]
    new = [a_pod(f"new-{n}", labels={"version": "2"}, **rules) for n in range(2)]

    assert by_claim(solved(a_problem([*old, *new]))) == [["new-0", "old-0"], ["new-1", "old-1"]]


def test_a_soft_spread_is_kept_while_it_can_be_and_ignored_by_policy() -> None:
    rules = spread(labels.HOSTNAME, whenUnsatisfiable="ScheduleAnyway")
    pending = pods(2, **rules)

    assert len(solved(a_problem(pending)).claims) == 2
    assert len(solved(a_problem(pending, pools=[a_pool(limits={"nodes": "1"})])).claims) == 1
    ignored = Options(preference_policy=PreferencePolicy.IGNORE)
    assert len(solved(a_problem(pending, options=ignored)).claims) == 1


# Rules about other pods


def _term(kind: str, **term: Any) -> dict[str, Any]:
    chosen = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": labels.HOSTNAME, **term}
    return {"affinity": {kind: {_REQUIRED: [chosen]}}}


@pytest.mark.parametrize(
    ("term", "apart"),
    [
        ({}, True),
        ({"matchLabelKeys": ["version"]}, False),
        ({"mismatchLabelKeys": ["version"]}, True),
        ({"namespaces": ["elsewhere"]}, False),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}, "namespaces": ["default"]}, True),
        ({"labelSelector": None}, False),
        ({"labelSelector": {}}, True),
    ],
)
@pytest.mark.parametrize("runs", [False, True])
def test_whom_anti_affinity_means(term: dict[str, Any], apart: bool, runs: bool) -> None:
    """From both sides: the pod that carries the term may be the one that runs already."""
    away = _term("podAntiAffinity", **term)
    owner = a_pod("owner", node="n1" if runs else None, labels={"version": "2"}, cpu="200m", **away)
    other = a_pod("other", labels={"version": "1"})
    node = a_node(pods=(owner,) if runs else ())

    plan = solved(
        a_problem(
            [other] if runs else [owner, other],
            nodes=[node],
            namespaces={"default": {"team": "a"}, "elsewhere": {"team": "b"}},
        )
    )

    assert bool(plan.claims) == apart


def test_several_affinity_terms_mean_the_pods_that_all_of_them_mean() -> None:
    """kube-scheduler counts a pod only if every term picks it: two pods with one label each do not do."""
    terms = [
        {"labelSelector": {"matchLabels": {key: value}}, "topologyKey": labels.ZONE}
        for key, value in (("app", "web"), ("tier", "front"))
    ]
    tied = a_pod("tied", app="x", affinity={"podAffinity": {_REQUIRED: terms}})
    apart = (a_pod("web", node="n1"), a_pod("front", node="n1", app="y", labels={"tier": "front"}))
    both = a_pod("both", node="n1", labels={"tier": "front"})

    assert _left_out(solved(a_problem([tied], nodes=[a_node(pods=apart)]))) == ["tied"]
    assert len(solved(a_problem([tied], nodes=[a_node(pods=(both,))])).placements) == 1


def test_pods_on_nodes_that_lack_the_label_do_not_start_a_group() -> None:
    """Neither on a node that stays nor on one that goes away."""
    tied = a_pod("tied", **near("podAffinity", labels.ZONE))
    running = (a_pod("web", node="n1"),)

    for going in (False, True):
        node = a_node(labels={labels.NODEPOOL: "default"}, pods=running, marked_for_deletion=going)
        assert solved(a_problem([tied], nodes=[node])).unplaced == ()


# Host ports


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "::"}, False),
        ({"containerPort": 80}, {"containerPort": 80}, True),
    ],
)
def test_which_host_ports_conflict(first: dict[str, Any], second: dict[str, Any], together: bool) -> None:
    pending = [a_pod(f"p{n}", container={"ports": [port]}) for n, port in enumerate((first, second))]

    assert len(solved(a_problem(pending)).claims) == (1 if together else 2)


def test_ports_of_daemonsets_are_taken_on_new_nodes() -> None:
    daemon = a_pod("agent", owner="DaemonSet", container={"ports": [{"hostPort": 80}]})

    plan = solved(a_problem([a_pod(container={"ports": [{"hostPort": 80}]})], daemonsets=(daemon,)))

    assert _left_out(plan) == ["web-0"]


# Volumes


def _volumes(**fields: Any) -> VolumeIndex:
    claims = [
        VolumeClaim(namespace="default", name="late", storage_class="late"),
        VolumeClaim(namespace="default", name="web-0-scratch", storage_class="late"),
        VolumeClaim(namespace="default", name="old", volume_name="pv", bind_completed=True),
    ]
    topologies = [
        {"matchLabelExpressions": [{"key": labels.ZONE, "values": [zone]}]} for zone in ("z-b", "z-c")
    ]
    late = {
        "metadata": {"name": "late"},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": topologies,
    }
    csi = {"csi": {"driver": "ebs.csi.aws.com"}}
    terms = [{"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": ["z-c"]}]}]
    where = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    return VolumeIndex(
        claims={claim.key: claim for claim in claims},
        volumes={"pv": PersistentVolume.from_wire({"metadata": {"name": "pv"}, "spec": {**csi, **where}})},
        classes={"late": StorageClass.from_wire(late)},
        **fields,
    )


def _mounts(*names: str) -> dict[str, Any]:
    return {"volumes": [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names]}


def test_the_zones_of_all_volumes_must_agree() -> None:
    plan = solved(a_problem([a_pod(**_mounts("late", "old"))], volumes=_volumes()))

    assert [claim.zones for claim in plan.claims] == [("z-c",)]


def test_an_ephemeral_volume_is_looked_up_by_the_names_of_pod_and_volume() -> None:
    scratch: dict[str, Any] = {"volumes": [{"name": "scratch", "ephemeral": {}}]}

    plan = solved(a_problem([a_pod("web-0", **scratch), a_pod("web-1", **scratch)], volumes=_volumes()))

    assert [claim.zones[0] for claim in plan.claims] == ["z-b"]
    assert _left_out(plan) == ["web-1"]


def test_volume_zones_do_not_narrow_what_spread_counts() -> None:
    """Two already run in z-c, none in z-a: kube-scheduler refuses a third there, volume or not (§12.3)."""
    running = tuple(pods(2, node="n-z-c"))
    nodes = [a_node(f"n-{zone}", zone=zone, pods=running if zone == "z-c" else ()) for zone in ZONES]

    plan = solved(
        a_problem([a_pod("tied", **_mounts("old"), **spread(labels.ZONE))], nodes=nodes, volumes=_volumes())
    )

    assert _left_out(plan) == ["tied"]


def test_a_volume_that_is_on_the_node_already_takes_no_other_slot() -> None:
    limits = {"n1": {"ebs.csi.aws.com": 1}}
    sharer = a_pod("sharer", node="n1", **_mounts("old"))
    node = a_node(zone="z-c", pods=(sharer,))

    same = solved(a_problem([a_pod(**_mounts("old"))], nodes=[node], volumes=_volumes(attach_limits=limits)))
    more = solved(a_problem([a_pod(**_mounts("late"))], nodes=[node], volumes=_volumes(attach_limits=limits)))

    assert (len(same.placements), len(more.placements), len(more.claims)) == (1, 0, 1)


# Limits and reservations


def test_a_limit_on_what_types_lack_takes_out_only_those_that_have_it() -> None:
    types = [a_type("m.large", 2, 8, 0.1), a_type("g.large", 2, 8, 0.05, gpus=1)]
    plan = solved(a_problem([a_pod()], pools=[a_pool(limits={"gpus": "0"})], types=types))

    assert plan.claims[0].instance_types == ("m.large",)


def test_nodes_on_their_way_and_going_count_against_the_limit_on_nodes() -> None:
    nodes = [a_node("going", marked_for_deletion=True), a_node("coming", cpu=1, initialized=False)]

    plan = solved(a_problem([a_pod(cpu="3")], pools=[a_pool(limits={"nodes": "2"})], nodes=nodes))

    assert _left_out(plan) == ["web-0"]

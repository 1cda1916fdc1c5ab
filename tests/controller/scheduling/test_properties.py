"""Laws of the engine on random clusters."""

from __future__ import annotations

import random
from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.scheduling import InstanceType, Pod, Problem, Toleration, solve
from controller.scheduling.verify import verify
from framework.api import labels
from tests.controller.scheduling.builders import (
    SIZES,
    ZONES,
    a_node,
    a_pod,
    a_pool,
    a_problem,
    a_type,
    near,
    spread,
)

_RULES: tuple[dict[str, Any], ...] = (
    {},
    {},
    spread(labels.ZONE),
    spread(labels.HOSTNAME, skew=2),
    near("podAntiAffinity", labels.HOSTNAME),
    near("podAffinity", labels.ZONE),
    {"nodeSelector": {labels.ZONE: "z-b"}},
    {"tolerations": [{"key": "team", "operator": "Exists"}]},
    {"container": {"ports": [{"hostPort": 80}]}},
)
_DEPLOYMENTS = st.tuples(
    st.integers(1, 4),
    st.sampled_from(["100m", "700m", "3"]),
    st.sampled_from(["128Mi", "2Gi", "9Gi"]),
    st.sampled_from(["web", "db"]),
    st.integers(0, len(_RULES) - 1),
)
_TYPES = (*SIZES, a_type("r.large", 2, 16, 0.13, spot=0.05, zones=("z-a", "z-b")))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    drawn = draw(st.lists(_DEPLOYMENTS, min_size=1, max_size=6))
    pending = [
        a_pod(f"p{n}{replica}", cpu=cpu, memory=memory, app=app, number=n, **_RULES[rule])
        for n, (replicas, cpu, memory, app, rule) in enumerate(drawn)
        for replica in range(replicas)
    ]
    nodes = [
        a_node(f"n{n}", cpu=draw(st.integers(1, 8)), zone=draw(st.sampled_from(ZONES)))
        for n in range(draw(st.integers(0, 3)))
    ]
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    pools = [a_pool("open"), a_pool("tainted", taints=[taint], weight=draw(st.integers(1, 5)))]
    limit = draw(st.sampled_from([None, {"cpu": "12"}, {"nodes": "2"}]))
    if limit is not None:
        pools[0] = a_pool("open", limits=limit)
    return a_problem(pending, pools=pools, nodes=nodes, types=_TYPES)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_every_plan_passes_the_verifier(problem: Problem) -> None:
    assert verify(problem, solve(problem)) == ()


@settings(max_examples=30, deadline=None)
@given(problems(), st.integers(0, 2**16))
def test_the_order_of_the_input_changes_nothing(problem: Problem, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a shuffle, not a secret

    def mixed(values: Any) -> tuple[Any, ...]:
        return tuple(rng.sample(list(values), len(values)))

    snapshot = attrs.evolve(
        problem.snapshot, pools=mixed(problem.snapshot.pools), nodes=mixed(problem.snapshot.nodes)
    )
    other = attrs.evolve(
        problem,
        snapshot=snapshot,
        pods=mixed(problem.pods),
        instance_types={name: mixed(types) for name, types in problem.instance_types.items()},
    )

    assert solve(other) == solve(problem)


@settings(max_examples=30, deadline=None)
@given(problems())
def test_runs_on_one_picture_do_not_see_each_other(problem: Problem) -> None:
    names = [frozenset[str](), *(frozenset({node.name}) for node in problem.snapshot.nodes), frozenset[str]()]

    for without in names:
        asked = attrs.evolve(problem, options=attrs.evolve(problem.options, excluded=without))
        left = tuple(node for node in problem.snapshot.nodes if node.name not in without)
        afresh = attrs.evolve(problem, snapshot=attrs.evolve(problem.snapshot, nodes=left))

        assert solve(asked) == solve(afresh)


@settings(max_examples=40, deadline=None)
@given(problems())
def test_a_pod_that_fits_a_type_alone_is_always_placed(problem: Problem) -> None:
    free = tuple(pod for pod in problem.pods if not pod.shape.constraints.has_pod_rules)
    pools = tuple(attrs.evolve(p, spec=attrs.evolve(p.spec, limits={})) for p in problem.snapshot.pools)
    snapshot = attrs.evolve(problem.snapshot, pools=pools)

    plan = solve(attrs.evolve(problem, snapshot=snapshot, pods=free))

    assert {unplaced.pod_uid for unplaced in plan.unplaced} == {
        pod.uid for pod in free if not any(_fits(pod, each) for each in _TYPES)
    }


def _fits(pod: Pod, instance_type: InstanceType) -> bool:
    """By the plainest sums: the pools take any type, and one of them has no taint."""
    allocatable = instance_type.allocatable
    zone = pod.node_selector.get(labels.ZONE)
    return all(amount <= allocatable.get(name, 0) for name, amount in pod.requests.items()) and any(
        zone is None or zone.has(offering.zone) for offering in instance_type.offerings
    )


@settings(max_examples=30, deadline=None)
@given(problems())
def test_by_class_and_pod_by_pod_place_the_same_pods(problem: Problem) -> None:
    alone = attrs.evolve(problem, pods=tuple(_unlike(pod, n) for n, pod in enumerate(problem.pods)))

    together, apart = solve(problem), solve(alone)

    assert {u.pod_key for u in together.unplaced} == {u.pod_key for u in apart.unplaced}
    assert together.hourly_price <= apart.hourly_price + 1e-9


def _unlike(pod: Pod, number: int) -> Pod:
    """The same pod with a toleration that nobody else has and nothing needs: a class of its own."""
    own = Toleration(key=f"only-{number}", operator="Exists")
    return attrs.evolve(pod, tolerations=(*pod.tolerations, own))


def test_a_plan_of_many_like_pods_is_that_of_one_by_one() -> None:
    pending = [a_pod(f"p{n:03d}", cpu="300m", memory="1Gi", number=n) for n in range(120)]
    together = solve(a_problem(pending))
    apart = solve(a_problem([_unlike(pod, n) for n, pod in enumerate(pending)]))

    assert [sorted(c.pods) for c in together.claims] == [sorted(c.pods) for c in apart.claims]

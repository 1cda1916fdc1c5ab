"""What users ask for with several pools and spreads at once (spec aws/docs-catalogue, C, D and H)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from controller.scheduling import Plan
from framework.api import labels
from tests.controller.scheduling.builders import SIZES, ZONES, a_pool, a_problem, a_type, pods, solved, spread

RATIO = "capacity-spread"


def rule(key: str, skew: int = 1) -> dict[str, Any]:
    (found,) = spread(key, skew)["topologySpreadConstraints"]
    return dict(found)


def counts(plan: Plan, key: str) -> Counter[str]:
    """Return how many pods landed on nodes of each value of a label that claims are pinned to."""
    found: Counter[str] = Counter()
    for claim in plan.claims:
        (value,) = claim.requirements[key].values
        found[value] += len(claim.pods)
    return found


def test_a_ratio_of_on_demand_to_spot_comes_from_a_label_with_as_many_values() -> None:
    def pool(name: str, capacity_type: str, *values: str) -> Any:
        return a_pool(
            name,
            requirements=[
                {"key": labels.CAPACITY_TYPE, "operator": "In", "values": [capacity_type]},
                {"key": RATIO, "operator": "In", "values": list(values)},
            ],
        )

    pools = [pool("od", "on-demand", "1"), pool("spot", "spot", "2", "3", "4", "5")]
    types = [a_type("m.large", 2, 8, 0.1, spot=0.04)]

    plan = solved(a_problem(pods(20, cpu="900m", **spread(RATIO)), pools=pools, types=types))

    assert counts(plan, RATIO) == Counter(dict.fromkeys("12345", 4))
    assert sum(len(claim.pods) for claim in plan.claims if claim.pool == "od") == 4


def test_pods_spread_over_capacity_types() -> None:
    types = [a_type("m.large", 2, 8, 0.1, spot=0.04)]

    plan = solved(a_problem(pods(6, cpu="900m", **spread(labels.CAPACITY_TYPE)), types=types))

    assert counts(plan, labels.CAPACITY_TYPE) == Counter({"on-demand": 3, "spot": 3})


def test_spreads_over_hosts_and_zones_hold_together() -> None:
    rules = [rule(labels.HOSTNAME, 2), rule(labels.ZONE, 5)]

    plan = solved(a_problem(pods(50, topologySpreadConstraints=rules)))

    assert plan.unplaced == ()
    assert max(len(claim.pods) for claim in plan.claims) <= 2
    zones = counts(plan, labels.ZONE)
    assert set(zones) == set(ZONES)
    assert max(zones.values()) - min(zones.values()) <= 5


def test_bought_capacity_is_filled_before_the_rest() -> None:
    bought = a_pool(
        "bought",
        weight=50,
        limits={"cpu": "4"},
        requirements=[{"key": labels.INSTANCE_TYPE, "operator": "In", "values": ["m.large"]}],
    )

    plan = solved(a_problem(pods(4, cpu="1900m"), pools=[a_pool("rest"), bought]))

    assert Counter(claim.pool for claim in plan.claims)["bought"] == 2
    assert sum(len(claim.pods) for claim in plan.claims if claim.pool == "rest") == 2


def test_a_preferred_architecture_is_taken_while_it_can_be_had() -> None:
    def prefers(weight: int, architecture: str) -> dict[str, Any]:
        term = {"key": labels.ARCH, "operator": "In", "values": [architecture]}
        return {"weight": weight, "preference": {"matchExpressions": [term]}}

    affinity = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [prefers(1, "amd64"), prefers(50, "arm64")]
        }
    }
    arm = a_type("g.large", 2, 8, 0.3, more={labels.ARCH: ["arm64"]})

    with_arm = solved(a_problem(pods(1, affinity=affinity), types=[*SIZES, arm]))
    without = solved(a_problem(pods(1, affinity=affinity)))

    assert with_arm.claims[0].instance_types == ("g.large",)
    assert without.claims[0].instance_types[0] == "m.large"


def test_old_names_of_labels_mean_the_new_ones() -> None:
    arm = a_type("g.large", 2, 8, 0.05, more={labels.ARCH: ["arm64"]})
    old = {"beta.kubernetes.io/arch": "amd64", "failure-domain.beta.kubernetes.io/zone": "z-b"}

    plan = solved(a_problem(pods(1, nodeSelector=old), types=[*SIZES, arm]))

    (claim,) = plan.claims
    assert claim.zones == ("z-b",)
    assert "g.large" not in claim.instance_types

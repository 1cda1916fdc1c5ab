"""What cannot be right: a reason on that pod or pool, and the round goes on for all others."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from controller.scheduling import (
    InstanceType,
    PersistentVolume,
    Pod,
    ReasonCode,
    StorageClass,
    VolumeClaim,
    VolumeIndex,
)
from framework.api import InvalidField
from tests.controller.scheduling.builders import SIZES, a_pod, a_pool, a_problem, solved

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
UNKNOWN = {"key": "a", "operator": "Almost", "values": ["b"]}


def beside_a_sound_pod(bad: Pod, **problem: Any) -> tuple[str, str]:
    """Return code and text of the bad pod's reason, having seen that the sound pod gets its node."""
    plan = solved(a_problem([bad, a_pod("sound", app="sound")], **problem))

    assert [claim.pod_keys for claim in plan.claims] == [("default/sound",)]
    (unplaced,) = plan.unplaced
    assert unplaced.pod_key == bad.key
    return str(unplaced.reason.code), unplaced.reason.render()


@pytest.mark.parametrize("amount", ["-1", "-100m", "much", "1e", ""])
def test_an_amount_that_cannot_be_is_named_with_its_field(amount: str) -> None:
    with pytest.raises(InvalidField) as refused:
        a_pod("bad", cpu=amount)

    assert refused.value.obj == "Pod/default/bad"
    assert refused.value.field.startswith("spec.containers[c].resources")
    assert "cpu" in refused.value.problem


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [UNKNOWN]}]}}}},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [UNKNOWN]}]}}}},
        {
            "affinity": {
                "podAffinity": {
                    REQUIRED: [{"topologyKey": "z", "labelSelector": {"matchExpressions": [UNKNOWN]}}]
                }
            }
        },
        {
            "affinity": {
                "podAntiAffinity": {
                    REQUIRED: [{"topologyKey": "z", "namespaceSelector": {"matchExpressions": [UNKNOWN]}}]
                }
            }
        },
        {
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "z",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]},
                }
            ]
        },
    ],
    ids=["node affinity", "field", "pod affinity", "namespace selector", "spread selector"],
)
def test_a_rule_that_cannot_be_read_is_the_pods_own_trouble(spec: dict[str, Any]) -> None:
    code, text = beside_a_sound_pod(a_pod("bad", **spec))

    assert code == ReasonCode.INVALID_POD
    assert any(word in text for word in ("Almost", "a In has 0 values", "matchFields is not supported"))


def with_claim(name: str) -> Pod:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": name}}
    return a_pod("bad", volumes=[volume])


@pytest.mark.parametrize(
    ("claims", "volumes", "classes", "words"),
    [
        ([], [], [], "not found"),
        (["data->pv-1"], [], [], "PersistentVolume pv-1 not found"),
        (["data->pv-1"], ["pv-1->other"], [], "not yet bound to PersistentVolume pv-1"),
        (["data->pv-1", "other->pv-2"], ["pv-1->other", "pv-2->data"], [], "not yet bound"),
        (["data"], [], [], "unbound and without a storage class"),
        (["data@data"], [], ["data@data"], "binding mode Immediate of StorageClass data"),
    ],
    ids=["no claim", "no volume", "volume of another", "a ring", "no class", "a class of its own name"],
)
def test_volumes_that_lead_nowhere_are_named(
    claims: list[str], volumes: list[str], classes: list[str], words: str
) -> None:
    index = VolumeIndex(
        claims={f"default/{each.name}": each for each in map(_claim, claims)},
        volumes={name: PersistentVolume(name=name) for name, _, _ in (v.partition("->") for v in volumes)},
        classes={name: StorageClass(name=name, provisioner=by) for name, _, by in _split(classes)},
    )

    code, text = beside_a_sound_pod(with_claim("data"), volumes=index)

    assert code == ReasonCode.VOLUME
    assert words in text


def _claim(text: str) -> VolumeClaim:
    head, _, volume = text.partition("->")
    name, _, storage_class = head.partition("@")
    return VolumeClaim(
        namespace="default", name=name, volume_name=volume or None, storage_class=storage_class or None
    )


def _split(texts: list[str]) -> list[tuple[str, str, str]]:
    return [each.partition("@") for each in texts]


def sold_out(found: InstanceType) -> InstanceType:
    return attrs.evolve(found, offerings=[attrs.evolve(each, available=False) for each in found.offerings])


@pytest.mark.parametrize(
    "types",
    [
        (),
        tuple(attrs.evolve(each, offerings=()) for each in SIZES),
        tuple(sold_out(each) for each in SIZES),
    ],
    ids=["no types", "no offerings", "sold out"],
)
def test_a_pool_without_offerings_says_so_and_is_passed_over(types: tuple[InstanceType, ...]) -> None:
    empty, good = a_pool("empty", weight=100), a_pool("good")
    problem = a_problem([a_pod("one")], pools=(empty, good))
    problem = attrs.evolve(problem, instance_types={"empty": types, "good": SIZES})

    plan = solved(problem)

    assert [claim.pool for claim in plan.claims] == ["good"]


def test_nothing_but_pools_without_offerings_is_a_reason_per_pool() -> None:
    problem = a_problem([a_pod("one")], pools=(a_pool("empty"),), types=tuple(map(sold_out, SIZES)))

    (unplaced,) = solved(problem).unplaced

    assert "NodePool/empty" in unplaced.reason.render()

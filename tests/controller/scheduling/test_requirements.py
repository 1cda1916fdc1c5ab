"""The requirement algebra: golden examples of the specification (§22.1, §22.2) and laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.scheduling import Requirement, Requirements
from framework.api import labels

VALUES = ("a", "b", "1", "5", "9", "05")


def req(operator: str, *values: str, key: str = "k", least: int | None = None) -> Requirement:
    return Requirement.new(key, operator, values, least)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (req("In", "a", "b"), req("In", "b", "c"), req("In", "b")),
        (req("In", "a"), req("In", "b"), req("DoesNotExist")),
        (req("In", "a", "b"), req("NotIn", "b"), req("In", "a")),
        (req("NotIn", "a"), req("NotIn", "b"), req("NotIn", "a", "b")),
        (req("NotIn", "a"), req("Exists"), req("NotIn", "a")),
        (req("Exists"), req("Exists"), req("Exists")),
        (req("In", "a"), req("DoesNotExist"), req("DoesNotExist")),
        (req("Exists"), req("DoesNotExist"), req("DoesNotExist")),
        (req("In", "1", "5", "9", "x"), req("Gt", "4"), req("In", "5", "9")),
        (req("Gt", "8"), req("Lt", "9"), req("DoesNotExist")),
        (req("In", "a", "b", least=2), req("Exists", least=3), req("In", "a", "b", least=3)),
    ],
)
def test_intersection(a: Requirement, b: Requirement, expected: Requirement) -> None:
    assert a.intersect(b) == expected
    assert b.intersect(a) == expected


def test_bounds_become_two_entries_and_lose_what_they_exclude() -> None:
    both = req("Gt", "4").intersect(req("Lt", "9"))
    excluding = req("NotIn", "3", "7").intersect(req("Gt", "4"))

    assert [(str(s.operator), s.values) for s in both.to_specs()] == [("Gte", ("5",)), ("Lte", ("8",))]
    assert (excluding.values, excluding.gte) == (frozenset({"7"}), 5)
    assert [(str(s.operator), s.values) for s in excluding.to_specs()] == [("Gte", ("5",))]


def test_a_bounded_requirement_reads_values_as_whole_numbers() -> None:
    five = req("Gte", "5").intersect(req("Lte", "5"))

    assert (five.has("5"), five.has("05"), five.has("a")) == (True, True, False)


@pytest.mark.parametrize(
    ("node", "pod", "undefined", "fine"),
    [
        ((), req("In", "z1", key=labels.ZONE), labels.WELL_KNOWN, True),
        ((), req("In", "z1", key=labels.ZONE), frozenset(), False),
        ((), req("In", "x", key="team"), labels.WELL_KNOWN, False),
        ((), req("NotIn", "x", key="team"), frozenset(), True),
        ((), req("DoesNotExist", key="team"), frozenset(), True),
        ((), req("Exists", key="team"), frozenset(), False),
        ((req("In", "x", key="team"),), req("DoesNotExist", key="team"), frozenset(), False),
        ((req("DoesNotExist", key="team"),), req("NotIn", "x", key="team"), frozenset(), True),
        ((req("In", "x", key="team"),), req("NotIn", "x", key="team"), frozenset(), False),
        (
            (req("In", "z1", "z2", key=labels.ZONE),),
            req("In", "z2", key="failure-domain.beta.kubernetes.io/zone"),
            frozenset(),
            True,
        ),
    ],
)
def test_compatibility(
    node: tuple[Requirement, ...], pod: Requirement, undefined: frozenset[str], fine: bool
) -> None:
    described, wanted = Requirements.of(*node), Requirements.of(pod)

    assert described.compatible(wanted, undefined) is fine
    assert (described.why_not(wanted, undefined) is None) is fine


@pytest.mark.parametrize(
    ("operator", "values"), [("Like", ("a",)), ("Gt", ("x",)), ("Gt", ()), ("Lt", ("1", "2"))]
)
def test_what_is_no_requirement_is_refused(operator: str, values: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"."):
        req(operator, *values)


_REQUIREMENTS = st.one_of(
    st.builds(lambda op, v: req(op, *v), st.sampled_from(["In", "NotIn"]), st.sets(st.sampled_from(VALUES))),
    st.builds(req, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(lambda op, n: req(op, str(n)), st.sampled_from(["Gt", "Lt", "Gte", "Lte"]), st.integers(0, 10)),
)


@given(_REQUIREMENTS, _REQUIREMENTS, _REQUIREMENTS, st.sampled_from(VALUES))
def test_intersection_is_a_set_intersection(
    a: Requirement, b: Requirement, c: Requirement, value: str
) -> None:
    assert a.intersect(b) == b.intersect(a)
    assert a.intersect(a) == a
    assert a.intersect(b).has(value) == (a.has(value) and b.has(value))
    assert a.intersect(b).intersect(c).has(value) == a.intersect(b.intersect(c)).has(value)


@given(_REQUIREMENTS, _REQUIREMENTS, st.sampled_from(VALUES))
def test_overlaps_is_true_when_a_value_satisfies_both(a: Requirement, b: Requirement, value: str) -> None:
    if a.has(value) and b.has(value):
        assert a.overlaps(b)

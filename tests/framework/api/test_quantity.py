from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.api import format_resources, parse_quantity, parse_resources

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "e3": Fraction(10**3),
    "E-2": Fraction(1, 100),
}

decimals = st.builds(
    lambda whole, part: f"{whole}.{part}" if part else str(whole),
    st.integers(0, 10**6),
    st.text("0123456789", max_size=3),
)


@given(number=decimals, suffix=st.sampled_from(sorted(SUFFIXES)))
def test_amounts_follow_the_definition_exactly(number: str, suffix: str) -> None:
    exact = Fraction(number) * SUFFIXES[suffix]

    quantity = parse_quantity(number + suffix)

    assert quantity.nano == -((-exact * 10**9) // 1)
    assert quantity.milli() == -((-Fraction(quantity.nano, 10**6)) // 1)
    assert quantity.value() == -((-Fraction(quantity.nano, 10**9)) // 1)
    assert str(quantity) == number + suffix


@given(st.integers(0, 2**62))
def test_canonical_spelling_keeps_the_amount(nano: int) -> None:
    quantity = parse_quantity(f"{nano}n")

    assert parse_quantity(quantity.canonical()) == quantity


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 2**50)))
def test_resources_survive_formatting(units: dict[str, int]) -> None:
    assert parse_resources(format_resources(units)) == units


@pytest.mark.parametrize("text", ["", "x", "1 ", "1.5.2", "--1", "1Kb", ".", "1e", "Gi", "1_000", "٣"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize("raw", [True, 1.5, None])
def test_other_types_are_refused(raw: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(raw)  # type: ignore[arg-type]


def test_spellings_of_one_amount_are_equal_but_keep_their_text() -> None:
    assert parse_quantity("1000m") == parse_quantity("1") == parse_quantity(1)
    assert [str(parse_quantity(raw)) for raw in ("1000m", "1", 1)] == ["1000m", "1", "1"]
    assert parse_quantity("1").wire == "1"
    assert parse_quantity(1).wire == 1


def test_engine_units_round_up() -> None:
    assert parse_resources({"cpu": "1.0001", "memory": "1.5", "pods": 3}) == {
        "cpu": 1001,
        "memory": 2,
        "pods": 3,
    }


def test_wire_spelling_of_engine_units() -> None:
    units = {"cpu": 1930, "memory": 6903 * 2**20, "ephemeral-storage": 20 * 2**30, "pods": 110, "x/y": 2}

    assert format_resources(units) == {
        "cpu": "1930m",
        "ephemeral-storage": "20Gi",
        "memory": "6903Mi",
        "pods": "110",
        "x/y": "2",
    }


def test_enormous_amounts_count_as_the_largest() -> None:
    assert parse_quantity("999999999E").value() == 2**63 - 1


def test_the_resource_is_named_when_its_amount_is_wrong() -> None:
    with pytest.raises(ValueError, match="memory: 'lots' is not a quantity"):
        parse_resources({"cpu": 1, "memory": "lots"})

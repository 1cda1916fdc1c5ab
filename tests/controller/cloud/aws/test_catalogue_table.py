"""`docs/catalogue.md` names every row of the catalogue once, and every proof that it names exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
ROWS = {"A": 7, "B": 19, "C": 15, "D": 17, "E": 11, "F": 7, "G": 7, "H": 11}
"""Rows of each section of spec aws/docs-catalogue that simulation could decide."""
LINE = re.compile(r"^\| ([A-Z]\d+) \| ([^|]+) \| (holds|account|later) \| (.+) \|$", re.MULTILINE)
PROOF = re.compile(r"`([^`]+)`")
TABLE = [match.groups() for match in LINE.finditer((ROOT / "docs/catalogue.md").read_text())]


@cache
def source(path: str) -> str:
    return (ROOT / "tests" / path).read_text()


def test_every_row_is_there_once_and_in_order() -> None:
    expected = [f"{section}{number}" for section, count in ROWS.items() for number in range(1, count + 1)]

    assert [row for row, *_ in TABLE] == expected


@pytest.mark.parametrize(
    ("row", "verdict", "text"), [(row, verdict, text) for row, _, verdict, text in TABLE]
)
def test_what_holds_has_proofs_that_exist_and_the_rest_a_reason(row: str, verdict: str, text: str) -> None:
    proofs = PROOF.findall(text)

    assert bool(proofs) is (verdict == "holds"), row
    for proof in proofs:
        if proof.startswith("case-"):
            assert (ROOT / "tests/cases/inputs" / f"{proof}.yaml").exists(), proof
        else:
            path, _, name = proof.partition("::")
            assert re.search(rf"def {re.escape(name)}\(", source(path)), proof

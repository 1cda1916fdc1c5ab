from __future__ import annotations

from pathlib import Path

import pytest

from framework.api import ClaimCondition, Kind
from framework.api.condition_types import CONDITIONS, BufferCondition, ClassCondition, PoolCondition
from framework.api.crds import KINDS
from framework.api.reference import pages

FOLDER = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_reference_is_fresh(name: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(pages()[name])

    assert pages()[name] == (FOLDER / name).read_text(), "run with --update-golden and look at it"


@pytest.mark.parametrize("kind", KINDS, ids=[kind.INFO.kind for kind in KINDS])
def test_the_dependents_of_a_kind_are_in_the_table(kind: type[Kind]) -> None:
    dependents = set(getattr(kind, "DEPENDENTS"))  # noqa: B009 - not declared on Kind itself

    assert dependents <= {state.type for state in CONDITIONS[kind.INFO.kind]}


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("NodePool", PoolCondition),
        ("NodeClaim", ClaimCondition),
        ("EC2NodeClass", ClassCondition),
        ("CapacityBuffer", BufferCondition),
    ],
)
def test_the_table_holds_every_type(kind: str, types: type) -> None:
    assert {state.type for state in CONDITIONS[kind]} == {str(type) for type in types}

"""Every reason has its meaning, and the page about them is fresh."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from controller.disruption.reasons import BlockCode
from controller.scheduling import Reason, ReasonCode
from controller.whatif.facts import Fact
from controller.whatif.remedies import REMEDIES, page, remedy_of

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "reasons.md"


def test_every_reason_has_its_meaning() -> None:
    codes = {str(code) for kind in (ReasonCode, BlockCode, Fact) for code in kind}

    assert codes == {str(code) for code in REMEDIES}


def test_the_page_is_fresh(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page())

    assert page() == PAGE.read_text(), "run with --update-golden and look at it"


def test_the_nearest_fact_decides_what_to_do() -> None:
    tree: Callable[..., Reason] = lambda code, *children: Reason(code=code, text="t", children=children)  # noqa: E731

    assert remedy_of(tree(ReasonCode.UNPLACED, tree(ReasonCode.TAINT), tree(ReasonCode.LIMITS))) == (
        "Add the toleration to the pod, or offer a NodePool without the taint."
    )
    assert remedy_of(tree(ReasonCode.ON_NEW_CLAIM)) is None

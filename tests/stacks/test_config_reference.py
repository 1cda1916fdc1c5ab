from __future__ import annotations

from pathlib import Path

import pytest

from stacks.programs.config_reference import FILE, page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / FILE


def test_the_reference_is_fresh(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page())

    assert page() == PAGE.read_text(), "run with --update-golden and look at it"

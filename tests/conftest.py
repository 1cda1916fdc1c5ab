"""Fixtures for all tests: golden files, which live beside the test and are rewritten on demand.

Property tests draw anew on a developer's machine and print what reproduces a failure; in CI they draw the
same examples every time, so that a red run is about the change.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, print_blob=True)
settings.register_profile("local", print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare text with the golden file of that name beside the test, or rewrite it."""
    folder = Path(request.path).parent / "golden"

    def check(name: str, text: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert text == path.read_text(), f"{path} is stale: run the test with --update-golden and look at it"

    return check

"""Every command that README and CONTRIBUTING show in a console block runs, in the order of the page."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md")
RUN_BY_CI = frozenset({"make demo", "make test", "make check"})
"""`make test` is what runs this test, and runs the other two itself."""


def _commands(page: str) -> list[str]:
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.strip() and "<this repository>" not in line]


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(page: str, tmp_path: Path) -> None:
    commands = _commands(page)
    assert commands
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}

    for command in commands:
        if command in RUN_BY_CI:
            assert command.removeprefix("make ") in _targets()
            continue
        done = subprocess.run(
            command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"

"""The commands that README and CONTRIBUTING show in console blocks run, in the order of the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "needs 1000000m cpu (the largest allowed type, ",
    "CONTRIBUTING.md": "",
}
"""Each page with what its reader is to see."""
RUN_BY_CI = frozenset({"make demo", "make test", "make check"})
"""`make test` is what runs this test, and runs the other two itself."""


def _commands(page: str) -> list[str]:
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.strip() and "<this repository>" not in line]


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("page", "shown"), PAGES.items())
def test_the_commands_of_a_page_run(page: str, shown: str, tmp_path: Path) -> None:
    commands = _commands(page)
    own = [command for command in commands if command not in RUN_BY_CI]
    assert commands
    assert {command.removeprefix("make ") for command in commands if command in RUN_BY_CI} <= _targets()

    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    try:
        done = subprocess.run(
            ["bash", "-exc", "\n".join(own)],  # one shell for the page, as its reader has
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        subprocess.run([sys.executable, "-m", "sandbox", "down"], cwd=ROOT, env=environment, check=True)

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert shown in done.stdout

"""Where a sandbox lives and what it says about itself: one folder, one small JSON file.

Used by `sandbox.machine` and the command line. The file holds addresses only; processes are in the process
table.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import attrs

__all__ = ["State", "default_directory"]

FILE = "state.json"


def default_directory() -> Path:
    """Return the folder of the sandbox of this user when none is named."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "charpente" / "sandbox"


@attrs.frozen(kw_only=True)
class State:
    """What is known of a sandbox; None for a part that was not started here."""

    kubeconfig: str | None = None
    server: str | None = None
    aws_endpoint: str | None = None
    region: str | None = None

    @classmethod
    def read(cls, directory: Path) -> State:
        """Read the file in `directory`; everything is None when there is none or it is half-written."""
        try:
            return cls(**json.loads((directory / FILE).read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return cls()

    def write(self, directory: Path) -> None:
        """Write the file by rename."""
        directory.mkdir(parents=True, exist_ok=True)
        scratch = directory / f"{FILE}.tmp"
        scratch.write_text(json.dumps(attrs.asdict(self), indent=2) + "\n")
        scratch.replace(directory / FILE)

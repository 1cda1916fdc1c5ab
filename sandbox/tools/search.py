"""Where programs already on this machine are: a named folder, PATH, the user's cache.

Used by `sandbox.tools.provision`. Looks and asks programs for their version; never writes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from sandbox.tools.catalogue import Accepts, Group, group_of

__all__ = ["cache_directory", "cached", "locate"]

TOOLS_VARIABLE = "CHARPENTE_TOOLS"
"""A folder of programs that are taken as they are, whatever their version."""
VERSION_TIMEOUT_S = 20


def cache_directory() -> Path:
    """Return the folder that holds `<group>-<version>/<program>` (it may not exist yet)."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "charpente" / "tools"


def cached(group: Group, program: str) -> Path:
    """Return where the cache keeps a program, whether it is there or not."""
    return cache_directory() / f"{group.name}-{group.version}" / program


def locate(program: str) -> Path | None:
    """Return the program from CHARPENTE_TOOLS, PATH (in a version near the pinned one) or the cache, in
    this order.
    """
    group = group_of(program)
    named = os.environ.get(TOOLS_VARIABLE)
    if named and _is_program(Path(named) / program):
        return Path(named) / program
    on_path = shutil.which(program)
    if on_path is not None and _near_enough(on_path, group):
        return Path(on_path)
    kept = cached(group, program)
    return kept if _is_program(kept) else None


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _near_enough(path: str, group: Group) -> bool:
    if group.accepts is Accepts.NEVER:
        return False
    arguments = ("version", "--client") if Path(path).name == "kubectl" else group.version_arguments
    found = _version(path, arguments)
    parts = 1 if group.accepts is Accepts.SAME_MAJOR else 2
    return found is not None and found[:parts] == tuple(int(n) for n in group.version.split("."))[:parts]


@lru_cache(maxsize=32)
def _version(path: str, arguments: tuple[str, ...]) -> tuple[int, ...] | None:
    try:
        shown = subprocess.run(
            [path, *arguments], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\bv?(\d+)\.(\d+)\.(\d+)", shown.stdout + shown.stderr)
    return None if match is None else tuple(int(n) for n in match.groups())

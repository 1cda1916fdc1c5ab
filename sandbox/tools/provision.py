"""Programs for the sandbox: found, else downloaded, else built; kept in the user's cache.

`find` and `ensure` are what the rest of the sandbox calls. A lock in the cache lets one process of this
user fetch or build at a time; the others wait and then find what they wanted. Programs enter the cache by
rename, so a killed build leaves nothing half-made behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from sandbox.errors import ToolMissing
from sandbox.tools.build import build
from sandbox.tools.catalogue import GROUPS, Group, group_of
from sandbox.tools.progress import say, step
from sandbox.tools.release import ReleaseUnavailable, download
from sandbox.tools.search import cache_directory, cached, locate

__all__ = ["ensure", "find"]

WAIT_USUAL_S = 300


def find(program: str) -> Path:
    """Return the path of one program, fetching or building it first if need be. Raises: ToolMissing."""
    return ensure([program])[program]


def ensure(programs: Iterable[str] | None = None) -> dict[str, Path]:
    """Return the path of each program (all known ones by default), fetching or building what is missing.

    Raises: ToolMissing naming the program and the mend; also for a name that is not in the catalogue.
    """
    wanted = list(programs) if programs is not None else [p for group in GROUPS for p in group.programs]
    for program in wanted:
        try:
            group = group_of(program)
        except KeyError:
            known = ", ".join(p for g in GROUPS for p in g.programs)
            raise ToolMissing(program, "not a program the sandbox knows", f"use one of {known}") from None
        if locate(program) is None:
            _provide(group, program)
    found = {program: locate(program) for program in wanted}
    return {program: path for program, path in found.items() if path is not None}


def _provide(group: Group, program: str) -> None:
    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with _lock(cache / ".lock"):
        if locate(program) is not None:
            return  # another process provided it while this one waited
        scratch = Path(tempfile.mkdtemp(prefix=".work-", dir=cache))
        try:
            made = scratch / "made"
            made.mkdir()
            _make(group, made, scratch)
            for name in group.programs:
                target = cached(group, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                (made / name).replace(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _make(group: Group, made: Path, scratch: Path) -> None:
    try:
        download(group, made)
    except ReleaseUnavailable as exc:
        say(f"{group.name} {group.version}: {exc}; building it from source")
        build(group, made, scratch)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with step("another process provides programs: waiting for it", WAIT_USUAL_S):
                fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

"""Programs built from their Go modules, pinned with checksums in `modules/<group>`.

Used by `sandbox.tools.provision` when neither the machine nor a release has the program. Builds into the
given folder; never touches the cache and never changes the pinned files.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import IO

from sandbox.errors import ToolMissing
from sandbox.tools.catalogue import Group
from sandbox.tools.progress import Step, say, step

__all__ = ["build"]

MODULES = Path(__file__).parent / "modules"
DEFAULT_GO = "/usr/local/go/bin/go"
"""Where Go's own installer puts it, for shells whose PATH does not say so."""
GO_ENVIRONMENT = {"GOTOOLCHAIN": "auto", "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}


def build(group: Group, destination: Path, scratch: Path) -> None:
    """Build every program of the group into `destination`, using the empty folder `scratch`.

    Raises: ToolMissing when Go is not there or the build fails.
    """
    go = shutil.which("go") or DEFAULT_GO
    if not Path(go).exists():
        raise ToolMissing(
            ", ".join(group.programs),
            "no release could be downloaded and Go is not installed to build it",
            f"install Go 1.21 or newer, or set CHARPENTE_TOOLS to a folder with version {group.version}",
        )
    module = scratch / "module"
    shutil.copytree(MODULES / group.name, module)
    title = f"{group.name} {group.version}: building {', '.join(group.programs)} from source"
    with step(title, group.usual_build_s) as shown:
        _embed(group, go, module)
        output = scratch / "out"
        output.mkdir()
        command = [
            go,
            "build",
            "-v",
            "-trimpath",
            "-ldflags",
            group.linker_flags,
            "-o",
            f"{output}/",
            *group.packages,
        ]
        _run(group, command, module, shown)
    for program, package in zip(group.programs, group.packages, strict=True):
        (output / _built_name(package, program)).replace(destination / program)
    say(f"{group.name} {group.version}: built")


def _built_name(package: str, program: str) -> str:
    """Return the name go gives: the last part of the package's path that is not a major version."""
    if package == ".":
        return program
    *_, before, last = package.split("/")
    return before if last.startswith("v") and last[1:].isdigit() else last


def _embed(group: Group, go: str, module: Path) -> None:
    if group.embeds_from is None:
        return
    environment = {**os.environ, **GO_ENVIRONMENT}
    for command in (
        [go, "mod", "download", group.embeds_from],
        [go, "list", "-m", "-f", "{{.Dir}}", group.embeds_from],
    ):
        shown = subprocess.run(
            command, cwd=module, env=environment, capture_output=True, text=True, check=False
        )
        if shown.returncode != 0:
            raise _failed(group, shown.stderr)
    for name, source in group.embeds.items():
        shutil.copyfile(Path(shown.stdout.strip()) / source, module / name)


def _run(group: Group, command: list[str], module: Path, shown: Step) -> None:
    process = subprocess.Popen(
        command,
        cwd=module,
        env={**os.environ, **GO_ENVIRONMENT},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    said: list[str] = []
    assert process.stderr is not None  # noqa: S101 - asked for as a pipe above
    reader = threading.Thread(target=_follow, args=(process.stderr, said, shown), daemon=True)
    reader.start()
    try:
        process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    reader.join()
    if process.returncode != 0:
        raise _failed(group, "\n".join(said))


def _follow(stream: IO[str], said: list[str], shown: Step) -> None:
    for line in stream:
        said.append(line.rstrip())
        shown.detail = said[-1]


def _failed(group: Group, output: str) -> ToolMissing:
    last = output.strip().splitlines()[-1:] or ["no output"]
    return ToolMissing(
        ", ".join(group.programs),
        f"go build failed: {last[0][:200]}",
        "check that the Go module proxy can be reached (GOPROXY) and that the disk has 5 GB free",
    )

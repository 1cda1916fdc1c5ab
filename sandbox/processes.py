"""Processes of one sandbox: started detached, remembered in files, ended by whoever finds the files.

Used by every part of the sandbox that starts a program. A `ProcessTable` owns `<dir>/run` (one JSON file
per process) and `<dir>/logs`. A record holds the process id and the moment the process began, so that a
process id that the system gave to a stranger since is never touched. It never decides what to run.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from sandbox.errors import SandboxError, StartFailed

__all__ = ["ProcessTable", "Program", "Running", "began", "free_port", "port_is_free"]

TERM_GRACE_S = 8.0
"""Seconds between SIGTERM and SIGKILL: kube-apiserver takes one or two to close its watches."""


@attrs.frozen(kw_only=True)
class Program:
    """What to run: `command[0]` is a path, `env` is added to the variables that it inherits."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = attrs.field(factory=dict)
    cwd: Path | None = None
    inherits: tuple[str, ...] | None = None
    """Which of this process's variables it sees; all of them when None."""


@attrs.frozen(kw_only=True)
class Running:
    """A process that was started: `began` tells it from a later process with the same id."""

    name: str
    pid: int
    began: str
    command: tuple[str, ...]

    @property
    def alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        return began(self.pid) == self.began


class ProcessTable:
    """The processes of the sandbox that lives in `directory`."""

    def __init__(self, directory: Path) -> None:
        """Remember the folder; nothing is read or written yet."""
        self._run = directory / "run"
        self._logs = directory / "logs"
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def log_path(self, name: str) -> Path:
        """Return where the output of process `name` goes."""
        return self._logs / f"{name}.log"

    def start(self, program: Program) -> Running:
        """Start a program in its own session and record it.

        Raises: SandboxError when one of that name runs already or the program cannot be executed.
        """
        known = self.get(program.name)
        if known is not None and known.alive:
            raise SandboxError(
                program.name, f"runs already as process {known.pid}", "stop it first: sandbox down"
            )
        for folder in (self._run, self._logs):
            folder.mkdir(parents=True, exist_ok=True)
        with self.log_path(program.name).open("ab") as log:
            try:
                process = subprocess.Popen(
                    program.command,
                    env={**_inherited(program.inherits), **program.env},
                    cwd=program.cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as exc:
                raise StartFailed(
                    program.name, f"cannot run {program.command[0]} ({exc.strerror})", "check the file"
                ) from exc
        self._children[program.name] = process
        threading.Thread(
            target=process.wait, daemon=True
        ).start()  # reaps the child, so that it never is a zombie
        running = Running(
            name=program.name, pid=process.pid, began=began(process.pid) or "", command=program.command
        )
        self._write(running)
        return running

    def _write(self, running: Running) -> None:
        path = self._run / f"{running.name}.json"
        scratch = path.with_suffix(".tmp")
        scratch.write_text(json.dumps(attrs.asdict(running)))
        scratch.replace(path)

    def get(self, name: str) -> Running | None:
        """Return the record of that name, dead or alive; None when there is none or it is half-written."""
        try:
            raw = json.loads((self._run / f"{name}.json").read_text())
            return Running(**{**raw, "command": tuple(raw["command"])})
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    def all(self) -> tuple[Running, ...]:
        """Return every record, dead or alive, in the order they were started."""
        return tuple(self._records())

    def _records(self) -> Iterator[Running]:
        if not self._run.is_dir():
            return
        for path in sorted(self._run.glob("*.json"), key=lambda p: (p.stat().st_mtime_ns, p.name)):
            running = self.get(path.stem)
            if running is not None:
                yield running

    def stop(self, names: Sequence[str] | None = None, *, grace_s: float = TERM_GRACE_S) -> tuple[str, ...]:
        """End the named processes (all of them by default), the youngest asked first, and forget them.

        Returns the names of those that were alive. Processes that ignore SIGTERM for `grace_s` seconds are
        killed.
        """
        chosen = [r for r in reversed(self.all()) if names is None or r.name in names]
        alive = [r for r in chosen if r.alive]
        for running in alive:
            _signal_group(running, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while any(r.alive for r in alive) and time.monotonic() < deadline:
            time.sleep(0.02)
        for running in alive:
            if running.alive:
                _signal_group(running, signal.SIGKILL)
        for running in chosen:
            (self._run / f"{running.name}.json").unlink(missing_ok=True)
        return tuple(r.name for r in alive)

    def wait_until(
        self, ready: Callable[[], bool], *, needs: Sequence[str], what: str, timeout_s: float
    ) -> None:
        """Wait until `ready()` holds, while every process in `needs` lives.

        Raises: StartFailed with the end of the log when one of them ends, or after `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        while not ready():
            for name in needs:
                running = self.get(name)
                if running is None or not running.alive:
                    raise StartFailed(
                        name, f"ended before {what} ({self.tail(name, 2)})", f"read {self.log_path(name)}"
                    )
            if time.monotonic() > deadline:
                raise StartFailed(
                    ", ".join(needs),
                    f"{what}: not within {timeout_s:.0f} s",
                    f"read the logs in {self._logs}",
                )
            time.sleep(0.03)

    def exit_code(self, name: str) -> int | None:
        """Return how a process that this table object started ended; None while it runs or when another
        did.
        """
        child = self._children.get(name)
        return None if child is None else child.poll()

    def tail(self, name: str, lines: int = 5) -> str:
        """Return the last lines of a process's log, for an error message."""
        path = self.log_path(name)
        if not path.is_file():
            return ""
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def began(pid: int) -> str | None:
    """Return when a process began, as an opaque text; None for no such process or a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            # The command may hold spaces and brackets: fields are counted after the last bracket.
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else fields[19]
    shown = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, start = shown.stdout.strip().partition(" ")
    return None if not start or state.startswith("Z") else start.strip()


def _inherited(names: Sequence[str] | None) -> Mapping[str, str]:
    return os.environ if names is None else {n: os.environ[n] for n in names if n in os.environ}


def _signal_group(running: Running, number: signal.Signals) -> None:
    try:
        os.killpg(running.pid, number)
    except (ProcessLookupError, PermissionError):
        return


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listens on at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int) -> bool:
    """Whether a server could listen on that port of the loopback interface now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

"""Processes are found, ended, and never confused with strangers."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from sandbox.errors import SandboxError, StartFailed
from sandbox.processes import ProcessTable, Program, began, free_port, port_is_free

SLEEP = "import time; print('up', flush=True); time.sleep(60)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
SLEEPER = (sys.executable, "-S", "-c", SLEEP)
STUBBORN = (sys.executable, "-S", "-c", f"{DEAF}; {SLEEP}")


def started(table: ProcessTable, name: str, command: tuple[str, ...]) -> int:
    running = table.start(Program(name=name, command=command))
    table.wait_until(lambda: "up" in table.tail(name), needs=(name,), what="it says so", timeout_s=10)
    return running.pid


def test_a_process_is_found_and_ended_by_another_table_of_the_same_folder(tmp_path: Path) -> None:
    pid = started(ProcessTable(tmp_path), "one", SLEEPER)

    stopped = ProcessTable(tmp_path).stop()

    assert stopped == ("one",)
    assert began(pid) is None
    assert ProcessTable(tmp_path).all() == ()


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    pid = started(ProcessTable(tmp_path), "one", STUBBORN)

    table = ProcessTable(tmp_path)
    table.stop(grace_s=0.1)

    table.wait_until(lambda: began(pid) is None, needs=(), what="it is gone", timeout_s=5)


def test_a_stranger_with_the_recorded_process_id_is_left_alone(tmp_path: Path) -> None:
    record = {"name": "one", "pid": os.getpid(), "began": "1", "command": ["long gone"]}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "one.json").write_text(json.dumps(record))

    stopped = ProcessTable(tmp_path).stop()

    assert stopped == ()  # and this test process lives to say so


def test_a_second_process_of_the_same_name_is_refused(tmp_path: Path) -> None:
    table = ProcessTable(tmp_path)
    started(table, "one", SLEEPER)
    try:
        with pytest.raises(SandboxError, match="runs already as process"):
            table.start(Program(name="one", command=SLEEPER))
    finally:
        table.stop()


def test_a_process_that_ends_too_early_is_reported_with_its_last_words(tmp_path: Path) -> None:
    table = ProcessTable(tmp_path)
    table.start(Program(name="one", command=(sys.executable, "-S", "-c", "print('no such luck')")))

    with pytest.raises(StartFailed, match=r"one: ended before it is ready .*no such luck"):
        table.wait_until(lambda: False, needs=("one",), what="it is ready", timeout_s=10)


def test_a_program_sees_only_the_variables_it_inherits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SHELL", "x")
    table = ProcessTable(tmp_path)
    show = (sys.executable, "-S", "-c", "import os; print(sorted(os.environ))")
    table.start(Program(name="one", command=show, env={"GIVEN": "y"}, inherits=("PATH",)))
    table.wait_until(lambda: table.exit_code("one") is not None, needs=(), what="it ended", timeout_s=10)

    shown = table.tail("one")

    assert "GIVEN" in shown
    assert "SECRET_OF_THE_SHELL" not in shown


def test_a_free_port_is_free() -> None:
    assert port_is_free(free_port())

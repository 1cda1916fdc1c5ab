"""What a person sees while a program is fetched or built: a bar on a terminal, plain lines elsewhere.

Used by `sandbox.tools` only. Everything goes to stderr, so that stdout stays the answer of the command.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["Step", "say", "step"]

HEARTBEAT_S = 15.0
"""Seconds between two lines when stderr is not a terminal: a CI that sees silence kills the job."""
NEARLY_DONE = 0.97
"""A bar driven by the usual time stops here and waits for the truth."""


class Step:
    """Something that takes a while; `detail` may be changed while it runs."""

    def __init__(self, title: str, usual_s: float) -> None:
        """Describe the step; `usual_s` is how many seconds it usually takes."""
        self.title = title
        self.usual_s = usual_s
        self.detail = ""


def say(line: str) -> None:
    """Print one line for people."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def step(title: str, usual_s: float) -> Iterator[Step]:
    """Show that a step runs, for as long as the block does."""
    current = Step(title, usual_s)
    done = threading.Event()
    show = _bar if sys.stderr.isatty() else _lines
    shower = threading.Thread(target=show, args=(current, done), daemon=True)
    shower.start()
    try:
        yield current
    finally:
        done.set()
        shower.join()


def _bar(current: Step, done: threading.Event) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        TextColumn(f"of about {_span(current.usual_s)}"),
        TextColumn("[dim]{task.fields[detail]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(current.title, total=current.usual_s, detail="")
        elapsed = 0.0
        while not done.wait(0.2):
            elapsed += 0.2
            shown = min(elapsed, current.usual_s * NEARLY_DONE)
            progress.update(task, completed=shown, detail=current.detail[-40:])


def _lines(current: Step, done: threading.Event) -> None:
    say(f"{current.title} (usually takes {_span(current.usual_s)})")
    elapsed = 0.0
    while not done.wait(HEARTBEAT_S):
        elapsed += HEARTBEAT_S
        detail = f": {current.detail}" if current.detail else ""
        say(f"  … {_span(elapsed)} of about {_span(current.usual_s)}{detail}")


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"

"""What the demo prints: stages with their times, tables, money.

Answers go to stdout; a stage in progress shows on stderr (a spinner on a terminal, else a line at start and a
heartbeat every 20 seconds).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

__all__ = ["Report"]

HEARTBEAT_S = 20


class Report:
    """Prints the demo's progress and remembers each stage's time."""

    def __init__(self) -> None:
        """Write to this process's stdout and stderr."""
        self.out = Console(highlight=False, width=max(100, Console().width))
        self._progress = Console(stderr=True, highlight=False)
        self.seconds: dict[str, float] = {}
        self._detail = ""

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Show a stage while the block runs; print its time when it ends well."""
        began = time.monotonic()
        self._detail = ""
        with self._spinner(title, began):
            yield
        self.seconds[title] = time.monotonic() - began
        self.out.print(f"[green]✓[/] {title} [dim]{self.seconds[title]:.1f} s[/]")

    def detail(self, text: str) -> None:
        """Say what the running stage is waiting for."""
        self._detail = text

    def say(self, text: str) -> None:
        """Print a line of result."""
        self.out.print(f"  {text}")

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table."""
        table = Table(*columns, title=title, title_justify="left", pad_edge=False)
        for row in rows:
            table.add_row(*row)
        self.out.print(table)

    @contextmanager
    def _spinner(self, title: str, began: float) -> Iterator[None]:
        done = threading.Event()

        def beat() -> None:
            with self._progress.status(title) as status:
                pause = 0.5 if self._progress.is_terminal else HEARTBEAT_S
                if not self._progress.is_terminal:
                    self._progress.print(f"… {title}")
                while not done.wait(pause):
                    line = f"{title} {time.monotonic() - began:.0f} s {self._detail}".rstrip()
                    status.update(line)
                    if not self._progress.is_terminal:
                        self._progress.print(f"… {line}")

        thread = threading.Thread(target=beat, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

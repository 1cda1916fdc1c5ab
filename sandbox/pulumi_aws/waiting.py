"""Waiting for an object of AWS to reach a state.

Called by resources whose making takes time. Owns the pace and the deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_PAUSE_S = 0.2
_DEADLINE_S = 600.0


class Overdue(Exception):
    """A state that was not reached in time."""

    def __init__(self, state: str, seconds: float) -> None:
        """Name the state and how long it was waited for."""
        super().__init__(f"waited {seconds:.0f} s in vain: {state}; look at the sandbox's AWS requests")


def wait_until(state: str, reached: Callable[[], bool], *, deadline_s: float = _DEADLINE_S) -> None:
    """Return when `reached` says so. Raises Overdue after the deadline."""
    end = time.monotonic() + deadline_s
    while not reached():
        if time.monotonic() > end:
            raise Overdue(state, deadline_s)
        time.sleep(_PAUSE_S)

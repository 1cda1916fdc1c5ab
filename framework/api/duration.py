"""Spans of time as Kubernetes users write them, with the text kept.

Called by the kinds (`expireAfter`, `consolidateAfter`, budgets). Owns parsing and the patterns that
the CRDs publish; never reads a clock. Spec: core/api §2.1.

`Never` is `None` where a field allows it; a `Duration` is an ordinary `timedelta` that remembers how
it was spelt, so that `720h` never comes back as `720h0m0s`.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache
from typing import Final

__all__ = [
    "BUDGET_DURATION_PATTERN",
    "NEVER",
    "NILLABLE_DURATION_PATTERN",
    "PLAIN_DURATION_PATTERN",
    "Duration",
    "format_duration",
    "parse_duration",
]

NILLABLE_DURATION_PATTERN: Final = r"^(([0-9]+(s|m|h))+|Never)$"
PLAIN_DURATION_PATTERN: Final = r"^([0-9]+(s|m|h))+$"
BUDGET_DURATION_PATTERN: Final = r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"
NEVER: Final = "Never"

_PLAIN: Final = re.compile(PLAIN_DURATION_PATTERN)
_PART: Final = re.compile(r"([0-9]+)([smh])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
_LONGEST_SECONDS: Final = (2**63 - 1) // 10**9


class Duration(timedelta):
    """A span that keeps its spelling in `text`; arithmetic gives plain timedeltas."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Duration:
        """Parse hours, minutes and seconds in any order and number (`1h30m`, `90s`).

        Raises ValueError, with the text, for anything else and for spans over 292 years.
        """
        if not _PLAIN.fullmatch(text):
            raise ValueError(f"{text!r} is not a duration")
        seconds = sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
        if seconds > _LONGEST_SECONDS:
            raise ValueError(f"{text!r} is longer than 292 years")
        self = super().__new__(cls, seconds=seconds)
        self.text = text
        return self

    def __str__(self) -> str:
        """Return the user's spelling."""
        return self.text

    def __repr__(self) -> str:
        """Return a form that names the type."""
        return f"Duration({self.text!r})"

    def __reduce__(self) -> tuple[type[Duration], tuple[str]]:
        """Copy and pickle through the text."""
        return Duration, (self.text,)


@lru_cache(maxsize=1024)
def parse_duration(text: str) -> Duration | None:
    """Return the span, or None for `Never`; raises ValueError for any other text."""
    return None if text == NEVER else Duration(text)


def format_duration(span: timedelta | None) -> str:
    """Return the wire text: the user's own if kept, else hours, minutes and seconds; `Never` for None.

    Fractions of a second are dropped: the wire form has none.
    """
    if span is None:
        return NEVER
    if isinstance(span, Duration):
        return span.text
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (seconds, "s")) if number]
    return "".join(parts) or "0s"

"""Schedules of budgets and headroom: five cron fields or a macro, always in UTC (core/disruption §4).

Called by whoever asks when a window opens. Owns parsing and the search for the next hit; never reads a
clock. The grammar is that of the peer: minute hour day-of-month month day-of-week (0 to 6), lists, ranges,
steps, names of months and days in any case, `?` for `*`; when both day fields are restricted either may
match. No seconds field, no time zone, no `@every`.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from functools import lru_cache
from typing import Final

import attrs
from cronsim import CronSim, CronSimError

__all__ = ["MACROS", "Cron", "InvalidCron"]

MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_NAMES: Final = ("minute", "hour", "day of month", "month", "day of week")
_RANGES: Final = ("0-59", "0-23", "1-31", "1-12", "0-6")
_TERM: Final = re.compile(r"(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?")
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - the name that 3.11 shares with clock.py


class InvalidCron(ValueError):
    """The text is no schedule; the message says which field is wrong."""


@attrs.frozen
class Cron:
    """A schedule that was read."""

    text: str
    """As the user wrote it."""
    fields: str
    """Five fields without macros and `?`, as the search takes them."""

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Return the schedule; raises InvalidCron."""
        return _parsed(text)

    def next_after(self, instant: datetime) -> datetime:
        """Return the first hit strictly later than the instant, both in UTC; raises InvalidCron for none."""
        try:
            return next(CronSim(self.fields, instant))
        except (CronSimError, StopIteration) as exc:
            raise InvalidCron(f"{self.text!r} never hits") from exc


@lru_cache(maxsize=512)
def _parsed(text: str) -> Cron:
    fields = MACROS.get(text.strip(), text).split()
    if len(fields) != len(_NAMES):
        raise InvalidCron(f"{text!r} has {len(fields)} fields instead of 5 and is no macro such as @daily")
    read = [_field(field, index) for index, field in enumerate(fields)]
    cron = Cron(text, " ".join(read))
    cron.next_after(_EPOCH)
    return cron


def _field(text: str, index: int) -> str:
    """Return the field as the search takes it; raises InvalidCron naming it."""
    terms = []
    for term in text.replace("?", "*").split(","):
        if not _TERM.fullmatch(term) or (
            index == _NAMES.index("day of week") and "7" in re.split(r"[-/]", term)[:2]
        ):
            raise InvalidCron(f"{_NAMES[index]} {text!r} cannot be read")
        star, _, step = term.partition("/")
        # A stepped star restricts the field; spelt as a range it does so for the search as well.
        terms.append(
            f"{_RANGES[index]}/{step}"
            if star == "*" and step not in ("", "1")
            else star
            if step == "1"
            else term
        )
    field = ",".join(terms)
    try:
        CronSim(" ".join(field if each == index else "*" for each in range(len(_NAMES))), _EPOCH)
    except CronSimError as exc:
        raise InvalidCron(f"{_NAMES[index]} {text!r} cannot be read") from exc
    return field

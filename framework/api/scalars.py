"""Plain values between JSON and Python: text, numbers, quantities, durations, instants, closed sets.

Called by `framework.api.wire`. Each type has an exact decoder, which explains what is wrong, and a quick
one, which only says that something is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from sys import intern
from typing import Any, Final

from framework.api.duration import Duration, format_duration, parse_duration
from framework.api.quantity import Quantity, cached_quantity, parse_quantity

__all__ = [
    "QUICK_SCALARS",
    "SCALARS",
    "UNFIT",
    "Decoder",
    "Encoder",
    "WrongType",
    "enum_decoder",
    "format_time",
    "parse_time",
    "quick_enum_decoder",
    "scalar_encoder",
    "shown",
]

Decoder = Callable[[Any], Any]
Encoder = Callable[[Any], Any]

_NOT_TEXT: Final = "quote the value"


class WrongType(Exception):
    """A value of the wrong type, with the path to it collected on the way up."""

    def __init__(self, problem: str, remedy: str) -> None:
        """Start with an empty path; whoever passes the error on appends to it."""
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.path: list[str] = []

    def field(self) -> str:
        """Return the path in wire spelling."""
        path = ".".join(reversed(self.path)).replace(".[", "[")
        return path or "the object"


UNFIT: Final = (WrongType, TypeError, ValueError, KeyError, AttributeError)
"""What a quick decoder raises for anything out of the ordinary."""


@lru_cache(maxsize=4096)
def parse_time(text: str) -> datetime:
    """Return the instant an RFC 3339 text names, in UTC; raises ValueError for anything else."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return instant.astimezone(UTC)


def format_time(instant: datetime) -> str:
    """Return RFC 3339 in UTC, whole seconds unless there is a fraction (then microseconds)."""
    utc = instant.astimezone(UTC)
    shape = "%Y-%m-%dT%H:%M:%S.%fZ" if utc.microsecond else "%Y-%m-%dT%H:%M:%SZ"
    return utc.strftime(shape)


def shown(raw: Any) -> str:
    """Return a value as an error shows it, cut to a readable length."""
    text = repr(raw)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _text(raw: Any) -> str:
    if type(raw) is not str:
        raise WrongType(f"is not text ({shown(raw)})", _NOT_TEXT)
    return intern(raw) if len(raw) <= _INTERNED_LENGTH else raw


_INTERNED_LENGTH: Final = 63
"""Label values and shorter: the same few thousand words over and over."""


def _whole(raw: Any) -> int:
    if type(raw) is not int:
        raise WrongType(f"is not a whole number ({shown(raw)})", "write digits without quotes or fraction")
    return raw


def _number(raw: Any) -> float:
    if type(raw) is not int and type(raw) is not float:
        raise WrongType(
            f"is not a number ({shown(raw)})", "write digits without quotes, with a point if need be"
        )
    return raw


def _flag(raw: Any) -> bool:
    if type(raw) is not bool:
        raise WrongType(f"is not true or false ({shown(raw)})", "write true or false without quotes")
    return raw


def _quantity(raw: Any) -> Quantity:
    try:
        return parse_quantity(raw)
    except (ValueError, TypeError) as exc:
        remedy = "write a number with an optional suffix, such as 500m, 2 or 16Gi"
        raise WrongType(f"is not a quantity ({shown(raw)})", remedy) from exc


def _duration(raw: Any) -> Duration | None:
    try:
        return parse_duration(_text(raw))
    except ValueError as exc:
        remedy = "write hours, minutes and seconds, such as 720h, 1h30m or 0s"
        raise WrongType(f"is not a duration ({shown(raw)})", remedy) from exc


def _time(raw: Any) -> datetime:
    try:
        return parse_time(_text(raw))
    except ValueError as exc:
        remedy = "write RFC 3339, such as 2026-01-31T09:30:00Z"
        raise WrongType(f"is not an instant ({shown(raw)})", remedy) from exc


SCALARS: Final[Mapping[Any, Decoder]] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: _flag,
    Quantity: _quantity,
    Duration: _duration,
    datetime: _time,
}
"""The decoder of each plain type; raises WrongType."""

QUICK_SCALARS: Final[Mapping[Any, Decoder]] = {
    **SCALARS,
    str: intern,
    Quantity: cached_quantity,
    Duration: parse_duration,
    datetime: parse_time,
}
"""The same in as few steps as Python allows; anything unusual raises one of UNFIT, without words."""


def enum_decoder(enum: type[StrEnum]) -> Decoder:
    """Return the decoder of a closed set of words."""
    members = {member.value: member for member in enum}
    allowed = ", ".join(members)

    def decode(raw: Any) -> StrEnum:
        member = members.get(raw) if type(raw) is str else None
        if member is None:
            raise WrongType(f"is not one of its values ({shown(raw)})", f"use one of {allowed}")
        return member

    return decode


def quick_enum_decoder(enum: type[StrEnum]) -> Decoder:
    """Return the quick decoder of a closed set of words."""
    return {member.value: member for member in enum}.__getitem__


def scalar_encoder(hint: Any) -> Encoder:
    """Return the function that writes a plain value as JSON."""
    if hint is Quantity:
        return lambda quantity: quantity.wire
    if hint is Duration:
        return format_duration
    if hint is datetime:
        return format_time
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return str
    return lambda value: value

"""Between the API server's JSON and our frozen classes, both ways, without loss.

Called through `from_wire` and `to_wire` of every kind. Owns the translation: camelCase names, strict
types, unknown fields kept, order and spelling kept, so that what is read and written back is what the
user wrote. Never judges values beyond their type; schema, rules and runtime checks do that.

`null` counts as absent, as in the API server.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from sys import intern
from typing import Any, Final, Self

import attrs

from framework.api.duration import Duration, format_duration, parse_duration
from framework.api.errors import InvalidField
from framework.api.quantity import Quantity, parse_quantity
from framework.api.schema import EMPTY, frozen_map, schema_of

__all__ = ["Wire", "WireField", "format_time", "parse_time", "strip_optional", "wire_fields"]

Decoder = Callable[[Any], Any]
Encoder = Callable[[Any], Any]

_NOT_TEXT: Final = "quote the value"


class _Wrong(Exception):
    """A value of the wrong type, with the path to it collected on the way up."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.path: list[str] = []

    def field(self) -> str:
        path = ".".join(reversed(self.path)).replace(".[", "[")
        return path or "the object"


@attrs.frozen(kw_only=True)
class Wire:
    """Base of every object and part of an object that travels as JSON."""

    extra: Mapping[str, Any] = attrs.field(default=EMPTY, repr=False)
    """Fields this version does not know, written back unchanged."""
    wire_keys: tuple[str, ...] = attrs.field(default=(), eq=False, repr=False)
    """The keys as they were read, in order; shared between objects that look alike."""

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Self:
        """Return the object that JSON describes; raises InvalidField for a value of the wrong type."""
        try:
            return typing.cast("Self", _codec(cls).decode(raw))
        except _Wrong as exc:
            raise InvalidField(
                obj=cls.describe(raw), field=exc.field(), problem=exc.problem, remedy=exc.remedy
            ) from exc

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form: keys as read, then what was set since, in the order of the class."""
        return _codec(type(self)).encode(self)

    @classmethod
    def describe(cls, raw: object) -> str:
        """Return what errors call the object."""
        del raw
        return cls.__name__


@attrs.frozen(kw_only=True)
class WireField:
    """One field of a class as the wire sees it."""

    attribute: attrs.Attribute[Any]
    name: str
    type: Any
    """The resolved annotation."""
    optional: bool
    """Whether None is among its values."""

    @property
    def default(self) -> Any:
        """Return the Python default, `attrs.NOTHING` when there is none."""
        return self.attribute.default


def wire_fields(cls: type[Wire]) -> tuple[WireField, ...]:
    """Return the declared fields of a class with their types resolved, in order."""
    attrs.resolve_types(cls)
    found = []
    for attribute in attrs.fields(cls):
        schema = schema_of(attribute)
        if schema is None:
            continue
        hint, optional = strip_optional(attribute.type)
        name = schema.name or _camel(attribute.name)
        found.append(WireField(attribute=attribute, name=name, type=hint, optional=optional))
    return tuple(found)


def strip_optional(hint: Any) -> tuple[Any, bool]:
    """Return a type without `| None`, and whether it had that."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(hint) if member is not type(None)]
        if len(members) == 1:
            return members[0], True
    return hint, False


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


class _Codec:
    """The two directions for one class, compiled once."""

    def __init__(self, cls: type[Wire]) -> None:
        self._cls = cls
        fields = wire_fields(cls)
        self._decoders: dict[str, tuple[str, Decoder]] = {
            f.name: (f.attribute.name, decoder_of(f.type)) for f in fields
        }
        self._required = tuple((f.attribute.name, f.name) for f in fields if f.default is attrs.NOTHING)
        self._encoders = {f.name: (f.attribute.name, encoder_of(f.type), f.default) for f in fields}

    def decode(self, raw: Any) -> Wire:
        if not isinstance(raw, Mapping):
            raise _Wrong(f"is not a map ({_shown(raw)})", "write its fields as key: value pairs")
        decoders = self._decoders
        values: dict[str, Any] = {}
        extra: dict[str, Any] | None = None
        for key, value in raw.items():
            known = decoders.get(key)
            if known is None:
                extra = {} if extra is None else extra
                extra[key] = value
            elif value is not None:
                try:
                    values[known[0]] = known[1](value)
                except _Wrong as exc:
                    exc.path.append(key)
                    raise
        for attribute, name in self._required:
            if attribute not in values:
                missing = _Wrong("is missing", "add it")
                missing.path.append(name)
                raise missing
        if extra is not None:
            values["extra"] = types.MappingProxyType(extra)
        return self._cls(wire_keys=_shared(tuple(raw)), **values)

    def encode(self, source: Wire) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key in source.wire_keys:
            known = self._encoders.get(key)
            if known is not None:
                value = getattr(source, known[0])
                if value is not None or known[2] is not None:
                    found[key] = known[1](value)
            elif key in source.extra:
                found[key] = source.extra[key]
        for name, (attribute, encode, default) in self._encoders.items():
            if name not in found:
                value = getattr(source, attribute)
                if value is not default and value != default:
                    found[name] = encode(value)
        for key, value in source.extra.items():
            found.setdefault(key, value)
        return found


_CODECS: Final[dict[type[Wire], _Codec]] = {}


def _codec(cls: type[Wire]) -> _Codec:
    """Return the codec of a class, compiled at first use."""
    codec = _CODECS.get(cls)
    if codec is None:
        codec = _CODECS[cls] = _Codec(cls)
    return codec


@lru_cache(maxsize=4096)
def _shared(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return one tuple for all objects that have the same keys."""
    return tuple(intern(key) if type(key) is str else key for key in keys)


# --- types to decoders -------------------------------------------------------------------------


def decoder_of(hint: Any) -> Decoder:
    """Return the function that reads a JSON value of that type; raises TypeError for a type not foreseen."""
    hint, _ = strip_optional(hint)
    origin = typing.get_origin(hint)
    if hint is Any or hint is object:
        return _same
    if origin is tuple:
        return _list_decoder(decoder_of(typing.get_args(hint)[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _map_decoder(decoder_of(typing.get_args(hint)[1]))
    if hint in _SCALARS:
        return _SCALARS[hint]
    if issubclass(hint, StrEnum):
        return _enum_decoder(hint)
    if issubclass(hint, Wire):
        return lambda raw: _codec(hint).decode(raw)
    raise TypeError(f"no wire form for {hint!r}")


def _same(raw: Any) -> Any:
    return raw


def _text(raw: Any) -> str:
    if type(raw) is not str:
        raise _Wrong(f"is not text ({_shown(raw)})", _NOT_TEXT)
    return intern(raw) if len(raw) <= _INTERNED_LENGTH else raw


_INTERNED_LENGTH: Final = 63
"""Label values and shorter: the same few thousand words over and over."""


def _whole(raw: Any) -> int:
    if type(raw) is not int:
        raise _Wrong(f"is not a whole number ({_shown(raw)})", "write digits without quotes or fraction")
    return raw


def _number(raw: Any) -> float:
    if type(raw) is not int and type(raw) is not float:
        raise _Wrong(
            f"is not a number ({_shown(raw)})", "write digits without quotes, with a point if need be"
        )
    return raw


def _flag(raw: Any) -> bool:
    if type(raw) is not bool:
        raise _Wrong(f"is not true or false ({_shown(raw)})", "write true or false without quotes")
    return raw


def _quantity(raw: Any) -> Quantity:
    try:
        return parse_quantity(raw)
    except (ValueError, TypeError) as exc:
        remedy = "write a number with an optional suffix, such as 500m, 2 or 16Gi"
        raise _Wrong(f"is not a quantity ({_shown(raw)})", remedy) from exc


def _duration(raw: Any) -> Duration | None:
    try:
        return parse_duration(_text(raw))
    except ValueError as exc:
        remedy = "write hours, minutes and seconds, such as 720h, 1h30m or 0s"
        raise _Wrong(f"is not a duration ({_shown(raw)})", remedy) from exc


def _time(raw: Any) -> datetime:
    try:
        return parse_time(_text(raw))
    except ValueError as exc:
        remedy = "write RFC 3339, such as 2026-01-31T09:30:00Z"
        raise _Wrong(f"is not an instant ({_shown(raw)})", remedy) from exc


_SCALARS: Final[Mapping[Any, Decoder]] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: _flag,
    Quantity: _quantity,
    Duration: _duration,
    datetime: _time,
}


def _enum_decoder(enum: type[StrEnum]) -> Decoder:
    members = {member.value: member for member in enum}
    allowed = ", ".join(members)

    def decode(raw: Any) -> StrEnum:
        member = members.get(raw) if type(raw) is str else None
        if member is None:
            raise _Wrong(f"is not one of its values ({_shown(raw)})", f"use one of {allowed}")
        return member

    return decode


def _list_decoder(item: Decoder) -> Decoder:
    def decode(raw: Any) -> tuple[Any, ...]:
        if not isinstance(raw, (list, tuple)):
            raise _Wrong(f"is not a list ({_shown(raw)})", "write its items as - item lines")
        try:
            return tuple([item(value) for value in raw])
        except _Wrong:
            _blame_entry(item, ((f"[{index}]", value) for index, value in enumerate(raw)))
            raise

    return decode


def _map_decoder(item: Decoder) -> Decoder:
    def decode(raw: Any) -> Mapping[str, Any]:
        if not isinstance(raw, Mapping):
            raise _Wrong(f"is not a map ({_shown(raw)})", "write it as key: value pairs")
        try:
            return frozen_map({intern(key): item(value) for key, value in raw.items() if value is not None})
        except (_Wrong, TypeError):
            _blame_entry(item, ((str(key), value) for key, value in raw.items() if value is not None))
            raise

    return decode


def _blame_entry(item: Decoder, entries: typing.Iterable[tuple[str, Any]]) -> None:
    """Raise again for the first entry that does not decode, with its place in the path."""
    for place, value in entries:
        try:
            item(value)
        except _Wrong as exc:
            exc.path.append(place)
            raise


# --- types to encoders -------------------------------------------------------------------------


def encoder_of(hint: Any) -> Encoder:
    """Return the function that writes a value of that type as JSON."""
    hint, _ = strip_optional(hint)
    origin = typing.get_origin(hint)
    if origin is tuple:
        item = encoder_of(typing.get_args(hint)[0])
        return lambda values: [item(value) for value in values]
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        entry = encoder_of(typing.get_args(hint)[1])
        return lambda values: {key: entry(value) for key, value in values.items()}
    if hint is Quantity:
        return lambda quantity: quantity.wire
    if hint is Duration:
        return format_duration
    if hint is datetime:
        return format_time
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return str
    if isinstance(hint, type) and issubclass(hint, Wire):
        return lambda value: value.to_wire()
    return _same


# --- instants ----------------------------------------------------------------------------------


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


def _shown(raw: Any) -> str:
    """Return a value as an error shows it, cut to a readable length."""
    text = repr(raw)
    return text if len(text) <= 60 else f"{text[:57]}..."

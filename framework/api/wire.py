"""Between the API server's JSON and our frozen classes, both ways, without loss.

Called through `from_wire` and `to_wire` of every kind. Owns the translation: camelCase names, strict
types, unknown fields kept, order and spelling kept, so that what is read and written back is what the
user wrote. Never judges values beyond their type; schema, rules and runtime checks do that.

`null` counts as absent, as in the API server.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from sys import intern
from typing import Any, ClassVar, Final, Self

import attrs

from framework.api.errors import InvalidField
from framework.api.scalars import (
    QUICK_SCALARS,
    SCALARS,
    UNFIT,
    Decoder,
    Encoder,
    WrongType,
    enum_decoder,
    quick_enum_decoder,
    scalar_encoder,
    shown,
)
from framework.api.schema import EMPTY, frozen_map, schema_of

__all__ = ["Wire", "WireField", "decoder_of", "encoder_of", "strip_optional", "wire_fields"]


@attrs.frozen(kw_only=True)
class Wire:
    """Base of every object and part of an object that travels as JSON."""

    SHARED: ClassVar[bool] = False
    """Whether objects that read alike are one object; for small parts that come over and over."""

    extra: Mapping[str, Any] = attrs.field(default=EMPTY, repr=False)
    """Fields this version does not know, written back unchanged."""
    wire_keys: tuple[str, ...] = attrs.field(default=(), eq=False, repr=False)
    """The keys as they were read, in order; shared between objects that look alike."""

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Self:
        """Return the object that JSON describes; raises InvalidField for a value of the wrong type."""
        try:
            return typing.cast("Self", _codec(cls).decode(raw))
        except WrongType as exc:
            raise InvalidField(
                obj=cls.describe(raw), field=exc.field(), problem=exc.problem, remedy=exc.remedy
            ) from exc

    @classmethod
    def implied(cls) -> Mapping[str, Any]:
        """Return attributes that are the same for every object of the class."""
        return EMPTY

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


_MAX_SHARED: Final = 4096
"""Objects kept per class and shape to be given out again."""
_MAX_READERS: Final = 256
"""Shapes remembered per class; objects of further shapes are read the exact way."""


class _Codec:
    """The two directions for one class, compiled once.

    Reading tries the quick way, which gives up at anything unusual; the exact way then finds the words.
    """

    def __init__(self, cls: type[Wire]) -> None:
        self._cls = cls
        self._fields = {member.name: member for member in wire_fields(cls)}
        self._exact = {
            name: (member.attribute.name, decoder_of(member.type)) for name, member in self._fields.items()
        }
        self._encoders = {
            name: (member.attribute.name, encoder_of(member.type), member.default)
            for name, member in self._fields.items()
        }
        self._required = tuple(
            (member.attribute.name, name)
            for name, member in self._fields.items()
            if member.default is attrs.NOTHING
        )
        self._always = frozenset(
            name for name, member in self._fields.items() if _is_required(member.attribute)
        )
        self._readers: dict[tuple[str, ...], Decoder] = {}

    def decode(self, raw: Any) -> Wire:
        """Return the object; raises WrongType."""
        try:
            return self.decode_quickly(raw)
        except UNFIT:
            return self.decode_exactly(raw)

    def decode_quickly(self, raw: Any) -> Wire:
        """Return the object; raises one of UNFIT for anything out of the ordinary."""
        if raw.__class__ is not dict:
            raise TypeError
        keys = tuple(raw)
        read = self._readers.get(keys)
        if read is None:
            read = self._reader(keys)
        return typing.cast("Wire", read(raw))

    def decode_exactly(self, raw: Any) -> Wire:
        """Return the object; raises WrongType with the path to the first value of the wrong type."""
        if not isinstance(raw, Mapping):
            raise WrongType(f"is not a map ({shown(raw)})", "write its fields as key: value pairs")
        values: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, value in raw.items():
            known = self._exact.get(key)
            if known is None:
                extra[key] = value
            elif value is not None:
                try:
                    values[known[0]] = known[1](value)
                except WrongType as exc:
                    exc.path.append(key)
                    raise
        for attribute, name in self._required:
            if attribute not in values:
                missing = WrongType("is missing", "add it")
                missing.path.append(name)
                raise missing
        return self._cls(wire_keys=_shared(tuple(raw)), extra=frozen_map(extra), **values)

    def _reader(self, keys: tuple[str, ...]) -> Decoder:
        """Return what reads objects with exactly these keys, quickly when all of them are known."""
        known = [self._fields[key] for key in keys if key in self._fields]
        given = {member.attribute.name for member in known}
        read: Decoder = self.decode_exactly
        if len(known) == len(keys) and all(attribute in given for attribute, _ in self._required):
            read = _compiled(self._cls, known, _shared(keys))
        if len(self._readers) < _MAX_READERS:
            self._readers[keys] = read
        return read

    def encode(self, source: Wire) -> dict[str, Any]:
        """Return the JSON form."""
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
                made_here = not source.wire_keys and name in self._always and value is not None
                if made_here or (value is not default and value != default):
                    found[name] = encode(value)
        for key, value in source.extra.items():
            found.setdefault(key, value)
        return found


def _is_required(attribute: attrs.Attribute[Any]) -> bool:
    """Tell whether the API server demands the field although it has a default here."""
    schema = schema_of(attribute)
    return schema is not None and bool(schema.required)


def _compiled(cls: type[Wire], given: Sequence[WireField], keys: tuple[str, ...]) -> Decoder:
    """Return a function that reads objects with exactly the given fields, without a loop or a lookup.

    It sets the slots of a new object one by one, as attrs' own frozen `__init__` does. Ten thousand claims
    a second need it: a loop over the fields took three times as long. Objects of a class that is `SHARED`
    are made once for all that read alike, which spares memory and the garbage collector.
    """
    names = [member.attribute.name for member in given]
    values = {"wire_keys": keys, "extra": EMPTY, **cls.implied()}
    for member in wire_fields(cls):
        values.setdefault(member.attribute.name, member.default)
    scope: dict[str, Any] = {"new": object.__new__, "cls": cls, "known": {}}
    raws = "".join(f"raw_{name}, " for name in names)
    lines = ["def read(raw):", f"    {raws}= raw.values()" if names else ""]
    for member in given:
        name = member.attribute.name
        scope[f"decode_{name}"] = quick_decoder_of(member.type)
        lines.append(f"    value_{name} = decode_{name}(raw_{name})")
    if cls.SHARED:
        key = "".join(f"value_{name}, " for name in names)
        lines += [f"    key = ({key})", "    made = known.get(key)", "    if made is not None: return made"]
    lines.append("    made = new(cls)")
    for name, value in values.items():
        scope[f"set_{name}"] = getattr(cls, name).__set__
        scope[f"default_{name}"] = value
        lines.append(f"    set_{name}(made, {'value' if name in names else 'default'}_{name})")
    if cls.SHARED:
        lines.append(f"    if len(known) < {_MAX_SHARED}: known[key] = made")
    lines.append("    return made")
    exec("\n".join(lines), scope)  # noqa: S102 - made of our own attribute names only
    return typing.cast("Decoder", scope["read"])


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


# --- types to decoders and encoders ------------------------------------------------------------


def decoder_of(hint: Any) -> Decoder:
    """Return the exact decoder of a type; raises TypeError for a type not foreseen."""
    hint, _ = strip_optional(hint)
    origin = typing.get_origin(hint)
    if origin is tuple:
        return _list_decoder(decoder_of(typing.get_args(hint)[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _map_decoder(decoder_of(typing.get_args(hint)[1]))
    if hint in SCALARS:
        return SCALARS[hint]
    if issubclass(hint, StrEnum):
        return enum_decoder(hint)
    if issubclass(hint, Wire):
        return lambda raw: _codec(hint).decode_exactly(raw)
    raise TypeError(f"no wire form for {hint!r}")


def quick_decoder_of(hint: Any) -> Decoder:
    """Return the quick decoder of a type."""
    hint, _ = strip_optional(hint)
    origin = typing.get_origin(hint)
    if origin is tuple:
        return _quick_list_decoder(quick_decoder_of(typing.get_args(hint)[0]))
    if origin is not None:
        return _quick_map_decoder(quick_decoder_of(typing.get_args(hint)[1]))
    if hint in QUICK_SCALARS:
        return QUICK_SCALARS[hint]
    if issubclass(hint, StrEnum):
        return quick_enum_decoder(hint)
    return _codec(hint).decode_quickly


def _list_decoder(item: Decoder) -> Decoder:
    def decode(raw: Any) -> tuple[Any, ...]:
        if not isinstance(raw, (list, tuple)):
            raise WrongType(f"is not a list ({shown(raw)})", "write its items as - item lines")
        try:
            return tuple([item(value) for value in raw])
        except WrongType:
            _blame_entry(item, ((f"[{index}]", value) for index, value in enumerate(raw)))
            raise

    return decode


def _map_decoder(item: Decoder) -> Decoder:
    def decode(raw: Any) -> Mapping[str, Any]:
        if not isinstance(raw, Mapping):
            raise WrongType(f"is not a map ({shown(raw)})", "write it as key: value pairs")
        try:
            return frozen_map({intern(key): item(value) for key, value in raw.items() if value is not None})
        except (WrongType, TypeError):
            _blame_entry(item, ((str(key), value) for key, value in raw.items() if value is not None))
            raise

    return decode


def _blame_entry(item: Decoder, entries: Iterable[tuple[str, Any]]) -> None:
    """Raise again for the first entry that does not decode, with its place in the path."""
    for place, value in entries:
        try:
            item(value)
        except WrongType as exc:
            exc.path.append(place)
            raise


def _quick_list_decoder(item: Decoder) -> Decoder:
    def decode(raw: Any) -> tuple[Any, ...]:
        if raw.__class__ is not list:
            raise TypeError
        return tuple(map(item, raw))

    return decode


def _quick_map_decoder(item: Decoder) -> Decoder:
    def decode(raw: Any) -> Mapping[str, Any]:
        if raw.__class__ is not dict:
            raise TypeError
        if not raw:
            return EMPTY
        return types.MappingProxyType(dict(zip(map(intern, raw), map(item, raw.values()), strict=True)))

    return decode


def encoder_of(hint: Any) -> Encoder:
    """Return the function that writes a value of that type as JSON."""
    hint, _ = strip_optional(hint)
    origin = typing.get_origin(hint)
    if origin is tuple:
        item = encoder_of(typing.get_args(hint)[0])
        return lambda values: [item(value) for value in values]
    if origin is not None:
        entry = encoder_of(typing.get_args(hint)[1])
        return lambda values: {key: entry(value) for key, value in values.items()}
    if issubclass(hint, Wire):
        return lambda value: value.to_wire()
    return scalar_encoder(hint)

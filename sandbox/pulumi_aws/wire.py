"""Values on the wire between Pulumi's engine and the provider.

Called by the provider. Owns the conversion of protobuf structs to plain values and
back, unknowns and secrets (spec moto, section E); never interprets a value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from google.protobuf import struct_pb2

Value: TypeAlias = Any
"""A JSON value: what a Pulumi property can hold."""
Properties: TypeAlias = dict[str, Value]

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Stands for a value that is known only after the update."""
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 (a marker of the wire format)
DEFAULTS = "__defaults"
"""Property that holds the names of the properties which the provider filled in."""


def from_value(value: Any) -> Value:
    """A plain value; whole numbers become int, secrets are unwrapped."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        plain = from_struct(value.struct_value)
        return plain.get("value") if plain.get(_SIGNATURE) == _SECRET else plain
    if kind == "list_value":
        return [from_value(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    return getattr(value, kind) if kind in ("string_value", "bool_value") else None


def from_struct(struct: Any) -> Properties:
    """The properties of a protobuf struct."""
    return {key: from_value(value) for key, value in struct.fields.items()}


def to_struct(properties: Mapping[str, Value]) -> Any:
    """A protobuf struct; properties that are None are left out."""
    struct = struct_pb2.Struct()
    struct.update({key: value for key, value in properties.items() if value is not None})
    return struct


def is_unknown(value: Value) -> bool:
    """Whether the value, or any part of it, is not known yet."""
    if isinstance(value, Mapping):
        return any(is_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(is_unknown(item) for item in value)
    return bool(value == UNKNOWN)


def declared(properties: Mapping[str, Value]) -> Properties:
    """The properties without the engine's own (`__defaults` and the like)."""
    return {key: value for key, value in properties.items() if not key.startswith("__")}


def _sort_key(value: Value) -> str:
    return json.dumps(value, sort_keys=True)


def _as_json(value: Value) -> Value:
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def equal(old: Value, new: Value) -> bool:
    """Whether two values mean the same: JSON texts are compared by content, not by layout."""
    return bool(old == new or _as_json(old) == _as_json(new))


def aligned(old: Value, new: Value) -> Value:
    """What was read, in the form of what was declared.

    Keeps the declared text of a JSON document that says the same, and drops the keys
    of nested objects that were not declared, so that a refresh reports real changes only.
    Lists that hold the same items keep the declared order: AWS treats them as sets.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return {key: aligned(value, new[key]) for key, value in old.items() if key in new}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        if sorted(map(_sort_key, old)) == sorted(map(_sort_key, new)):
            return old
        return [aligned(before, after) for before, after in zip(old, new, strict=True)]
    return old if equal(old, new) else new

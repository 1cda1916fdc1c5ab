"""From the classes to the structural schemas that the API server enforces.

Called by `framework.api.crds` and by offline admission. Owns the translation only: every limit, default
and rule stands on the fields of the classes.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import attrs

from framework.api.duration import Duration
from framework.api.metadata import Kind
from framework.api.quantity import QUANTITY_PATTERN, Quantity
from framework.api.schema import FieldSchema, Rule, schema_of
from framework.api.wire import Wire, WireField, strip_optional, wire_fields

__all__ = ["kind_schema", "object_schema"]

Schema = dict[str, Any]
Gates = frozenset[str]

_SCALARS: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    Duration: {"type": "string"},
    Quantity: {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY_PATTERN,
        "x-kubernetes-int-or-string": True,
    },
    Any: {"x-kubernetes-preserve-unknown-fields": True},
}

_META: Final[Mapping[str, Schema]] = {
    "apiVersion": {
        "description": "Version of the schema that the object follows.",
        "type": "string",
    },
    "kind": {"description": "Kind of the object.", "type": "string"},
    "metadata": {"type": "object"},
}


def kind_schema(kind: type[Kind], gates: Gates = frozenset()) -> Schema:
    """Return the schema of a kind; fields behind a gate are there when the gate is in `gates`."""
    schema = object_schema(kind, gates)
    properties = {**_META, **{k: v for k, v in schema["properties"].items() if k not in _META}}
    return {
        "description": kind.INFO.description,
        "type": "object",
        "properties": properties,
        "required": schema["required"],
    }


def object_schema(cls: type[Wire], gates: Gates = frozenset()) -> Schema:
    """Return the schema of one class, without what the field that holds it adds."""
    properties: Schema = {}
    required: list[str] = []
    for member in wire_fields(cls):
        declared = declared_schema(member)
        if declared.gate is not None and declared.gate not in gates:
            continue
        properties[member.name] = _field_schema(member, declared, gates)
        if is_required(member, declared):
            required.append(member.name)
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = sorted(required)
    return schema


def declared_schema(member: WireField) -> FieldSchema:
    """Return the published side of a field."""
    declared = schema_of(member.attribute)
    if declared is None:
        raise TypeError(f"{member.name} is not declared")
    return declared


def is_required(member: WireField, declared: FieldSchema) -> bool:
    """Return whether the schema demands the field."""
    return member.default is attrs.NOTHING if declared.required is None else declared.required


def _field_schema(member: WireField, declared: FieldSchema, gates: Gates) -> Schema:
    schema: Schema = {"description": declared.description}
    schema.update(_type_schema(member.type, declared, gates))
    schema.update(_limits(declared))
    return _merged(schema, declared.merge)


def _type_schema(hint: Any, declared: FieldSchema, gates: Gates) -> Schema:
    hint, _ = strip_optional(hint)
    origin = typing.get_origin(hint)
    if origin is tuple:
        return {"type": "array", "items": _entry(typing.get_args(hint)[0], declared, gates)}
    if origin is not None:
        entry = _entry(typing.get_args(hint)[1], declared, gates)
        return {"type": "object", "additionalProperties": entry}
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    if issubclass(hint, StrEnum):
        values = [m.value for m in hint if declared.gated_values.get(m.value) in (None, *gates)]
        return {"type": "string", "enum": values}
    return object_schema(hint, gates)


def _entry(hint: Any, declared: FieldSchema, gates: Gates) -> Schema:
    """Return the schema of one item of a list or one value of a map."""
    values = declared.values or FieldSchema(description="")
    schema = _type_schema(hint, values, gates)
    if issubclass(hint, Wire) and hint.__doc__:
        schema = {"description": hint.__doc__.splitlines()[0], **schema}
    return {**schema, **_limits(values)}


def _limits(declared: FieldSchema) -> Schema:
    named: Schema = {
        "default": declared.default,
        "format": declared.format,
        "pattern": declared.pattern,
        "minimum": declared.minimum,
        "maximum": declared.maximum,
        "minLength": declared.min_length,
        "maxLength": declared.max_length,
        "minItems": declared.min_items,
        "maxItems": declared.max_items,
        "maxProperties": declared.max_properties,
        "x-kubernetes-list-type": declared.list_type,
        "x-kubernetes-list-map-keys": list(declared.list_map_keys) or None,
        "x-kubernetes-validations": [_rule(rule) for rule in declared.rules] or None,
    }
    return {key: value for key, value in named.items() if value is not None}


def _rule(rule: Rule) -> Schema:
    return {"rule": rule.cel, "message": rule.message}


def _merged(schema: Schema, patch: Mapping[str, Any]) -> Schema:
    """Return a schema with a patch laid over it; None removes a key."""
    merged = dict(schema)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = _merged(merged.get(key, {}), value)
        else:
            merged[key] = value
    return merged

"""A value against a structural schema: types, limits, patterns, required fields.

Called by `framework.api.admission`. Knows the part of OpenAPI that CRDs may use; never fills in or
changes anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from framework.api.errors import Problem
from framework.api.scalars import parse_time
from framework.api.suggest import suggestion

__all__ = ["Schema", "structural_problems"]

Schema = Mapping[str, Any]

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (Mapping,),
    "array": (list, tuple),
}
_WRITE: Final = {
    "string": "quote the value",
    "integer": "write digits without quotes or fraction",
    "number": "write digits without quotes",
    "boolean": "write true or false without quotes",
    "object": "write its fields as key: value pairs",
    "array": "write its items as - item lines",
}


def structural_problems(schema: Schema, value: Any, path: str) -> Iterator[Problem]:
    """Give everything in which the value does not follow the schema."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    wrong = _type_problem(schema, value, path)
    if wrong is not None:
        yield wrong
        return
    if isinstance(value, bool):
        return
    if isinstance(value, str):
        yield from _text(schema, value, path)
    elif isinstance(value, (int, float)):
        yield from _number(schema, value, path)
    elif isinstance(value, Mapping):
        yield from _object(schema, value, path)
    else:
        yield from _array(schema, value, path)


def _type_problem(schema: Schema, value: Any, path: str) -> Problem | None:
    flag = isinstance(value, bool)
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, (int, str)) and not flag:
            return None
        remedy = "quote the value, or write a whole number"
        return Problem(field=path, problem=f"is neither text nor a whole number ({value!r})", remedy=remedy)
    expected = schema.get("type")
    if expected is None or (isinstance(value, _TYPES[expected]) and flag == (expected == "boolean")):
        return None
    problem = f"is not of type {expected} ({value!r:.60})"
    return Problem(field=path, problem=problem, remedy=_WRITE[expected])


def _text(schema: Schema, value: str, path: str) -> Iterator[Problem]:
    enum = schema.get("enum")
    if enum is not None and value not in enum:
        yield Problem(field=path, problem=f"is {value!r}", remedy=suggestion(value, enum))
    pattern = schema.get("pattern")
    if pattern is not None and not _compiled(pattern).search(value):
        yield Problem(
            field=path, problem=f"is {value!r:.80}, which has the wrong form", remedy=f"write it as {pattern}"
        )
    if len(value) < schema.get("minLength", 0):
        yield Problem(field=path, problem="is empty", remedy="fill it in or remove it")
    if len(value) > schema.get("maxLength", len(value)):
        limit = schema["maxLength"]
        yield Problem(
            field=path, problem=f"has {len(value)} characters", remedy=f"shorten it to {limit} at most"
        )
    if schema.get("format") == "date-time" and not _is_time(value):
        yield Problem(field=path, problem=f"is {value!r}", remedy="write RFC 3339, as 2026-01-31T09:30:00Z")


def _number(schema: Schema, value: float, path: str) -> Iterator[Problem]:
    if value < schema.get("minimum", value):
        remedy = f"write {schema['minimum']} or more"
        yield Problem(field=path, problem=f"is {value}, which is too small", remedy=remedy)
    if value > schema.get("maximum", value):
        remedy = f"write {schema['maximum']} or less"
        yield Problem(field=path, problem=f"is {value}, which is too large", remedy=remedy)
    bits = {"int32": 31, "int64": 63}.get(schema.get("format", ""))
    if bits is not None and not -(2**bits) <= value < 2**bits:
        yield Problem(field=path, problem=f"is {value}, which is too large", remedy="write a smaller number")
    pattern = schema.get("pattern")
    if pattern is not None and schema.get("type") == "string" and not _compiled(pattern).search(str(value)):
        yield Problem(field=path, problem=f"is {value}", remedy=f"write it as {pattern}")


def _object(schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for name in schema.get("required", ()):
        if name not in value:
            yield Problem(field=_join(path, name), problem="is missing", remedy="add it")
    if len(value) > schema.get("maxProperties", len(value)):
        remedy = f"keep {schema['maxProperties']} at most"
        yield Problem(field=path, problem=f"has {len(value)} entries", remedy=remedy)
    if len(value) < schema.get("minProperties", 0):
        yield Problem(field=path, problem="is empty", remedy="add an entry")
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key, entry in value.items():
        below = properties.get(key, others)
        if below is not None:
            yield from structural_problems(below, entry, _join(path, key))


def _array(schema: Schema, value: list[Any], path: str) -> Iterator[Problem]:
    if len(value) < schema.get("minItems", 0):
        yield Problem(field=path, problem="is empty", remedy="add an item")
    if len(value) > schema.get("maxItems", len(value)):
        remedy = f"keep {schema['maxItems']} at most"
        yield Problem(field=path, problem=f"has {len(value)} items", remedy=remedy)
    for index, entry in enumerate(value):
        yield from structural_problems(schema.get("items", {}), entry, f"{path}[{index}]")
    yield from _duplicates(schema, value, path)


def _duplicates(schema: Schema, value: list[Any], path: str) -> Iterator[Problem]:
    keys = schema.get("x-kubernetes-list-map-keys")
    seen: list[Any] = []
    for index, entry in enumerate(value):
        if keys is not None:
            identity = [entry.get(key) for key in keys] if isinstance(entry, Mapping) else entry
        elif schema.get("x-kubernetes-list-type") == "set":
            identity = entry
        else:
            return
        if identity in seen:
            yield Problem(field=f"{path}[{index}]", problem="is there twice", remedy="remove one")
        seen.append(identity)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_time(value: str) -> bool:
    try:
        parse_time(value)
    except ValueError:
        return False
    return True


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return the pattern with Go's reading: `$` only at the very end, ASCII classes."""
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern), re.ASCII)

"""Objects made up from the published schemas, for property tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

_WORDS = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
_TIMES = st.just("2026-01-05T10:00:00Z")
_QUANTITIES = st.one_of(st.integers(0, 1000), st.sampled_from(["1000m", "1", "0.5", "1Gi", "1024Mi", "1e3"]))
_DURATIONS = st.sampled_from(["0s", "90m", "1h30m", "720h", "60m"])
_META = st.fixed_dictionaries(
    {"name": _WORDS},
    optional={
        "labels": st.dictionaries(_WORDS, _WORDS, max_size=3),
        "annotations": st.dictionaries(_WORDS, _WORDS, max_size=3),
        "finalizers": st.lists(_WORDS, max_size=2),
        "generation": st.integers(0, 10),
        "futureField": st.just({"a": [1, None]}),
    },
)


def values_of(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Return objects that the types of a schema allow; rules and most limits are not looked at."""
    if schema.get("x-kubernetes-int-or-string"):
        return _QUANTITIES
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "object" if "properties" in schema:
            return _object(schema)
        case "object" if "additionalProperties" in schema:
            return st.dictionaries(_WORDS, values_of(schema["additionalProperties"]), max_size=3)
        case "object":
            return _META
        case "array":
            return st.lists(values_of(schema["items"]), max_size=2)
        case "string":
            return _text(schema)
        case "integer":
            return st.integers(schema.get("minimum", 0), schema.get("maximum", 1000))
        case "number":
            return st.one_of(st.integers(0, 5), st.sampled_from([0.5, 0.05]))
    return st.booleans()


def _object(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    required = set(schema.get("required", ()))
    members = {name: values_of(below) for name, below in schema["properties"].items()}
    fields = st.fixed_dictionaries(
        {name: value for name, value in members.items() if name in required},
        optional={name: value for name, value in members.items() if name not in required},
    )
    unknown = st.dictionaries(st.just("futureField"), st.just({"x": [1]}), max_size=1)
    return st.builds(lambda known, extra: _shuffled({**known, **extra}), fields, unknown)


def _shuffled(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields in an order that is not the class's own."""
    return dict(sorted(fields.items(), key=lambda item: item[0][::-1]))


def _text(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    pattern = schema.get("pattern", "")
    if schema.get("format") == "date-time":
        return _TIMES
    if "Ti|" in pattern:
        return st.sampled_from(["20Gi", "1Ti"])
    if pattern.startswith(("^(([0-9]+(s|m|h))+", "^([0-9]+(s|m|h))+", "^((([0-9]+(h|m))")):
        return _DURATIONS
    return _WORDS

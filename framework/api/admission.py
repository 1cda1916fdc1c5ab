"""What the API server would say to a manifest, without an API server.

Called by lint and by previews. Checks against the generated CRD itself: prunes nulls, fills defaults,
then judges types, limits and CEL rules, so that schema and verdict have one source. Unknown fields are
refused, as `kubectl apply` does. Never changes its input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import cel

from framework.api.crds import ALL_GATES
from framework.api.errors import Problem
from framework.api.metadata import Kind
from framework.api.openapi import kind_schema
from framework.api.structural import Schema, structural_problems
from framework.api.suggest import suggestion

__all__ = ["admit", "defaulted", "pruned"]

_OBJECT_FIELDS: Final = ("apiVersion", "kind", "metadata")


def admit(
    kind: type[Kind],
    raw: Mapping[str, Any],
    *,
    old: Mapping[str, Any] | None = None,
    gates: frozenset[str] = frozenset(),
) -> tuple[Problem, ...]:
    """Return what the API server would object to, in order of path; empty means accepted.

    With `old` the request is an update of that object, and transition rules are judged as well.
    """
    schema = _schema(kind, gates)
    problems = list(_unknown(schema, raw, ""))
    if problems and gates != ALL_GATES:
        never = {problem.field for problem in _unknown(_schema(kind, ALL_GATES), raw, "")}
        problems = [each if each.field in never else _gated(each.field) for each in problems]
    complete = defaulted(schema, pruned(schema, raw))
    before = None if old is None else defaulted(schema, pruned(schema, old))
    structural = list(structural_problems(schema, complete, ""))
    problems += structural or _rules(schema, complete, before, "")
    return tuple(sorted(problems, key=lambda problem: (problem.field, problem.problem)))


def _gated(field: str) -> Problem:
    remedy = "remove it, or install the CRDs with its gate (charpente crds --gate)"
    return Problem(field=field, problem="came after v1.9 and is behind a gate", remedy=remedy)


def pruned(schema: Schema, value: Any) -> Any:
    """Return the value without nulls where the schema does not allow them, which count as absent."""
    if isinstance(value, Mapping):
        return {key: pruned(_below(schema, key), entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, (list, tuple)):
        return [pruned(schema.get("items", {}), entry) for entry in value]
    return value


def defaulted(schema: Schema, value: Any) -> Any:
    """Return the value with the schema's defaults filled in where a field is absent."""
    if isinstance(value, Mapping):
        properties = schema.get("properties", {})
        filled = {key: defaulted(_below(schema, key), entry) for key, entry in value.items()}
        for key, below in properties.items():
            if key not in filled and "default" in below:
                filled[key] = defaulted(below, below["default"])
        return filled
    if isinstance(value, list):
        return [defaulted(schema.get("items", {}), entry) for entry in value]
    return value


def _below(schema: Schema, key: str) -> Schema:
    found: Schema = schema.get("properties", {}).get(key) or schema.get("additionalProperties") or {}
    return found


def _unknown(schema: Schema, value: Any, path: str) -> Iterator[Problem]:
    """Give fields that the schema does not have, with the nearest name it has."""
    if isinstance(value, (list, tuple)):
        for index, entry in enumerate(value):
            yield from _unknown(schema.get("items", {}), entry, f"{path}[{index}]")
    if not isinstance(value, Mapping):
        return
    properties = schema.get("properties")
    for key, entry in value.items():
        below = f"{path}.{key}" if path else str(key)
        if not path and key in _OBJECT_FIELDS:
            continue
        if properties is not None and key not in properties:
            yield Problem(field=below, problem="is not a field", remedy=suggestion(str(key), properties))
        else:
            yield from _unknown(_below(schema, key), entry, below)


def _rules(schema: Schema, value: Any, old: Any, path: str) -> list[Problem]:
    """Return the CEL rules that the value breaks, here and below."""
    problems = [
        _broken(rule, path)
        for rule in schema.get("x-kubernetes-validations", ())
        if not _holds(rule["rule"], value, old)
    ]
    if isinstance(value, Mapping):
        for key, entry in value.items():
            before = old.get(key) if isinstance(old, Mapping) else None
            below = f"{path}.{key}" if path else str(key)
            problems += _rules(_below(schema, key), entry, before, below)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            problems += _rules(schema.get("items", {}), entry, None, f"{path}[{index}]")
    return problems


def _broken(rule: Mapping[str, str], path: str) -> Problem:
    problem, _, remedy = rule["message"].partition("; ")
    return Problem(field=path, problem=f"breaks a rule: {problem}", remedy=remedy)


def _holds(rule: str, value: Any, old: Any) -> bool:
    """Return whether a rule holds; one about the old value holds when there is none."""
    if "oldSelf" in rule and old is None:
        return True
    try:
        return _program(rule).execute({"self": value, "oldSelf": old}) is True
    except RuntimeError:  # the API server refuses as well when a rule cannot be evaluated
        return False


_SCHEMAS: Final[dict[tuple[type[Kind], frozenset[str]], Schema]] = {}


def _schema(kind: type[Kind], gates: frozenset[str]) -> Schema:
    """Return the schema of a kind, built at first use."""
    if (kind, gates) not in _SCHEMAS:
        _SCHEMAS[kind, gates] = kind_schema(kind, gates)
    return _SCHEMAS[kind, gates]


@cache
def _program(rule: str) -> cel.Program:
    return cel.compile(rule)

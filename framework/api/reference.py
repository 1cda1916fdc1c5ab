"""The reference pages of our kinds, written from their classes: `python -m framework.api.reference DIR`.

Called by the maintainers and by the test that keeps `docs/reference` fresh. Prints what the schema holds;
has no knowledge of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from framework.api.condition_types import CONDITIONS
from framework.api.crds import ALL_GATES, KINDS
from framework.api.metadata import Kind
from framework.api.openapi import kind_schema

__all__ = ["page", "pages"]

_SKIPPED: Final = frozenset({"apiVersion", "kind", "metadata"})
_LIMITS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "maxProperties": "at most {} entries",
}


def pages() -> dict[str, str]:
    """Return every page by its file name."""
    return {f"{kind.INFO.kind.lower()}.md": page(kind) for kind in KINDS}


def page(kind: type[Kind]) -> str:
    """Return the reference page of one kind, in Markdown."""
    info, schema = kind.INFO, kind_schema(kind, ALL_GATES)
    parts = [
        f"# {info.kind}",
        info.description,
        _facts(kind),
        "## Fields",
        "Written by `python -m framework.api.reference docs/reference`. *Required* fields must be given; "
        "a field behind a gate is in the CRD only when `charpente crds --gate` names the gate.",
        *_sections(kind, schema),
        "## Rules",
        "What the API server refuses beyond types and limits:",
        "\n".join(_rules(schema, "")) or "None.",
        "## Conditions",
        _conditions(info.kind),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(kind: type[Kind]) -> str:
    info = kind.INFO
    rows = [
        ("API version", f"`{info.api_version}`"),
        ("Scope", info.scope),
        ("kubectl", ", ".join(f"`{name}`" for name in (info.plural, *info.short_names))),
        ("Columns", ", ".join(f"{c.name}{' (wide)' if c.wide else ''}" for c in info.columns)),
        ("Gate", f"`{info.gate}`" if info.gate else "none"),
    ]
    return _table(("", ""), rows)


def _sections(kind: type[Kind], schema: Mapping[str, Any]) -> Iterator[str]:
    plain = set(_paths(kind_schema(kind), ""))
    for part in ("spec", "status"):
        yield f"### {part}"
        rows = list(_rows(schema["properties"][part], part, plain))
        yield _table(("Field", "Type", "Default", "Limits", "Meaning"), rows)


def _paths(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, below in schema.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        yield place
        yield from _paths(below, place)
        yield from _paths(below.get("items", {}), f"{place}[]")


def _rows(schema: Mapping[str, Any], path: str, plain: set[str]) -> Iterator[tuple[str, ...]]:
    required = schema.get("required", ())
    for name, below in schema.get("properties", {}).items():
        place = f"{path}.{name}"
        meaning = below["description"]
        if place not in plain:
            meaning += " *Behind a gate.*"
        if name in required:
            meaning = f"*Required.* {meaning}"
        yield (f"`{place}`", _type(below), _default(below), _limits(below), meaning)
        yield from _rows(below, place, plain)
        yield from _rows(below.get("items", {}), f"{place}[]", plain)


def _type(schema: Mapping[str, Any]) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity"
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map of {_type(schema['additionalProperties'])}"
    return str(schema.get("format", schema["type"]))


def _default(schema: Mapping[str, Any]) -> str:
    return f"`{schema['default']}`" if "default" in schema else ""


def _limits(schema: Mapping[str, Any]) -> str:
    found = [text.format(schema[key]) for key, text in _LIMITS.items() if key in schema]
    if "enum" in schema:
        found.append("one of " + ", ".join(f"`{value}`" for value in schema["enum"]))
    if "pattern" in schema and not schema.get("x-kubernetes-int-or-string"):
        found.append(f"`{schema['pattern']}`".replace("|", "\\|"))
    found += [_limits(schema["items"])] if schema.get("items", {}).get("enum") else []
    return "; ".join(found)


def _rules(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"- `{path or 'the object'}`: {rule['message']}."
    for name, below in schema.get("properties", {}).items():
        if path or name not in _SKIPPED:
            yield from _rules(below, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from _rules(schema["items"], f"{path}[]")


def _conditions(kind: str) -> str:
    rows = [
        (f"`{each.type}`", each.status, ", ".join(each.reasons), each.meaning) for each in CONDITIONS[kind]
    ]
    return _table(("Type", "Status", "Reasons", "Meaning"), rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(folder: Path) -> None:
    """Write every page into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

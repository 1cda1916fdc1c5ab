"""YAML files to objects that know their lines.

Called by `framework.api.linting.lint`. Reads as kubectl does: several documents, Lists taken apart,
timestamps left as text, double keys refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
import yaml

from framework.api.linting.findings import Finding, Severity

__all__ = ["Manifest", "read_manifests"]

_MAX_DEPTH: Final = 100
"""Levels of nesting; deeper files are not manifests."""


@attrs.frozen(kw_only=True)
class Manifest:
    """One object as it stands in a file."""

    file: str
    raw: Mapping[str, Any]
    lines: Mapping[str, int]
    """Line of every field by its path, from 1; the object itself under the empty path."""

    @property
    def kind(self) -> str:
        """Return the kind, empty when it is not text."""
        return _text(self.raw.get("kind"))

    @property
    def api_version(self) -> str:
        """Return the API version, empty when it is not text."""
        return _text(self.raw.get("apiVersion"))

    @property
    def name(self) -> str:
        """Return `metadata.name`, empty when there is none."""
        return _text(self._meta("name"))

    @property
    def namespace(self) -> str:
        """Return the namespace, `default` when none is given."""
        return _text(self._meta("namespace")) or "default"

    def line(self, field: str) -> int:
        """Return the line of a field, or of the nearest part above it that is in the file."""
        path = field
        while path not in self.lines:
            cut = max(path.rfind("."), path.rfind("["))
            if cut <= 0:
                return self.lines[""]
            path = path[:cut]
        return self.lines[path]

    def finding(
        self, field: str, problem: str, remedy: str, *, rule: str, severity: Severity = Severity.ERROR
    ) -> Finding:
        """Return a finding on a field of this object."""
        return Finding(
            file=self.file,
            line=self.line(field),
            obj=f"{self.kind}/{self.name or '?'}",
            field=field,
            problem=problem,
            remedy=remedy,
            rule=rule,
            severity=severity,
        )

    def _meta(self, key: str) -> Any:
        meta = self.raw.get("metadata")
        return meta.get(key) if isinstance(meta, Mapping) else None


def read_manifests(file: str, text: str) -> tuple[list[Manifest], list[Finding]]:
    """Return the objects of a file, and what kept others from being read."""
    found: list[Manifest] = []
    faults: list[Finding] = []
    try:
        for node in yaml.compose_all(text, Loader=_Loader):
            if node is not None:
                found += _objects(file, node, faults)
    except yaml.YAMLError as exc:
        faults.append(_yaml_finding(file, exc))
    return found, faults


class _Loader(yaml.SafeLoader):
    """Leaves timestamps as text, as JSON would."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _objects(file: str, node: yaml.Node, faults: list[Finding]) -> Iterator[Manifest]:
    reading = _Reading(file, faults)
    raw = reading.value(node, "", 0)
    if raw is None:
        return
    if not isinstance(raw, Mapping):
        line = node.start_mark.line + 1
        faults.append(_fault(file, line, "is not an object", "write apiVersion, kind, metadata and spec"))
    elif raw.get("kind") == "List" and isinstance(raw.get("items"), list):
        for index, item in enumerate(raw["items"]):
            if isinstance(item, Mapping):
                yield Manifest(file=file, raw=item, lines=_below(reading.lines, f"items[{index}]"))
    else:
        yield Manifest(file=file, raw=raw, lines=reading.lines)


def _below(lines: Mapping[str, int], prefix: str) -> dict[str, int]:
    inner = {path[len(prefix) :].lstrip("."): line for path, line in lines.items() if path.startswith(prefix)}
    return {"": lines[prefix], **inner}


class _Reading:
    """The walk through one document; remembers the line of every field."""

    def __init__(self, file: str, faults: list[Finding]) -> None:
        """Start with no lines."""
        self.lines: dict[str, int] = {}
        self._file = file
        self._faults = faults

    def value(self, node: yaml.Node, path: str, depth: int) -> Any:
        """Return the value of a node; what cannot be read is reported and left out."""
        self.lines.setdefault(path, node.start_mark.line + 1)
        if depth > _MAX_DEPTH:
            self._fault(node, path, f"is nested more than {_MAX_DEPTH} deep", "flatten it")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(node.value)]
        return _Loader("").construct_object(node)

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Any]:
        _Loader("").flatten_mapping(node)
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            below = f"{path}.{key}" if path else str(key)
            if key is None:
                self._fault(key_node, path, "has a key that is not text", "write a plain key")
            elif key in found:
                self._fault(key_node, below, "is there twice", "remove one of the two")
            else:
                self.lines[below] = key_node.start_mark.line + 1
                found[key] = self.value(value_node, below, depth + 1)
        return found

    def _fault(self, node: yaml.Node, path: str, problem: str, remedy: str) -> None:
        self._faults.append(_fault(self._file, node.start_mark.line + 1, f"{path} {problem}", remedy))


def _fault(file: str, line: int, problem: str, remedy: str) -> Finding:
    return Finding(
        file=file,
        line=line,
        obj="",
        field="",
        problem=problem,
        remedy=remedy,
        rule="yaml",
        severity=Severity.ERROR,
    )


def _yaml_finding(file: str, exc: yaml.YAMLError) -> Finding:
    mark = getattr(exc, "problem_mark", None)
    problem = getattr(exc, "problem", None) or str(exc)
    line = 1 if mark is None else mark.line + 1
    return _fault(file, line, f"not readable: {problem}", "mend the YAML")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

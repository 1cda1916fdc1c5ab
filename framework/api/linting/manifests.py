"""YAML files to objects that know their lines.

Called by `framework.api.linting.lint`. Reads as kubectl does: several documents, Lists taken apart,
timestamps left as text, double keys refused, merge keys overridden by what stands beside them. Whatever
the text, it ends soon and with findings, never with an exception.
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
_MAX_REPEATED: Final = 100_000
"""Values that aliases may bring in again; a few lines of aliases to aliases make billions."""
_MERGE: Final = "tag:yaml.org,2002:merge"


@attrs.frozen(kw_only=True)
class Manifest:
    """One object as it stands in a file."""

    file: str
    raw: Mapping[str, Any]
    lines: Mapping[str, int]
    """Line of every field of the document by its path, from 1; the document under the empty path."""
    root: str = ""
    """Path of the object in its document, where that is a List."""

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
        path = f"{self.root}.{field}" if self.root and field else self.root or field
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
    """Leaves timestamps as text, as JSON would, and refuses depths at which its own recursion would fail."""

    def __init__(self, text: str) -> None:
        """Start at the top."""
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node; raises ComposerError below the deepest level."""
        if parent is not None and self._depth > _MAX_DEPTH:
            raise _too_deep(parent.start_mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


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
            place = f"items[{index}]"
            if isinstance(item, Mapping):
                yield Manifest(file=file, raw=item, lines=reading.lines, root=place)
            else:
                reading.fault(place, "is not an object", "write apiVersion, kind, metadata and spec")
    else:
        yield Manifest(file=file, raw=raw, lines=reading.lines)


class _Reading:
    """The walk through one document; remembers the line of every field."""

    def __init__(self, file: str, faults: list[Finding]) -> None:
        """Start with no lines."""
        self.lines: dict[str, int] = {}
        self._file = file
        self._faults = faults
        self._seen: set[int] = set()
        self._repeated = 0

    def value(self, node: yaml.Node, path: str, depth: int) -> Any:
        """Return the value of a node; what cannot be read is reported and left out.

        Raises ComposerError where aliases bring in too much, or themselves.
        """
        self.lines.setdefault(path, node.start_mark.line + 1)
        self._count(node)
        if depth > _MAX_DEPTH:
            raise _too_deep(node.start_mark)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _count(self, node: yaml.Node) -> None:
        self._repeated += id(node) in self._seen
        self._seen.add(id(node))
        if self._repeated > _MAX_REPEATED:
            problem = f"aliases repeat more than {_MAX_REPEATED} values"
            raise yaml.composer.ComposerError(problem=problem, problem_mark=node.start_mark)

    def _scalar(self, node: yaml.Node, path: str) -> Any:
        try:
            found = _Loader("").construct_object(node)
        except (ValueError, KeyError):
            found = NotImplemented
        if isinstance(found, int) and not -(2**63) <= found < 2**64:
            found = NotImplemented
        if found is None or isinstance(found, (str, int, float)):
            return found
        self.fault(path, "is no value that JSON could hold", "write plain text or a smaller number")
        return None

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            below = f"{path}.{key}" if path else str(key)
            line = key_node.start_mark.line + 1
            if key is None:
                self.fault(path, "has a key that is not text", "write a plain key", line)
            elif key_node.tag == _MERGE:
                merged += value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            elif key in found:
                self.fault(below, "is there twice", "remove one of the two", line)
            else:
                self.lines.setdefault(below, line)
                found[key] = self.value(value_node, below, depth + 1)
        for source in merged:
            if isinstance(source, yaml.MappingNode):
                found = {**self.value(source, path, depth + 1), **found}
            else:
                self.fault(path, "merges what is not a map", "merge an alias of a map")
        return found

    def fault(self, path: str, problem: str, remedy: str, line: int | None = None) -> None:
        """Note what is wrong at a path, which has been walked unless its line is given."""
        at = self.lines[path] if line is None else line
        self._faults.append(_fault(self._file, at, f"{path} {problem}".lstrip(), remedy))


def _too_deep(mark: yaml.Mark) -> yaml.YAMLError:
    problem = f"nested more than {_MAX_DEPTH} deep"
    return yaml.composer.ComposerError(problem=problem, problem_mark=mark)


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

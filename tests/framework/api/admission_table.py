"""Reads the admission tables next to it: manifests, updates of them, and the verdict on each."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

FOLDER = Path(__file__).parent / "admission"


@attrs.frozen(kw_only=True)
class AdmissionCase:
    """One manifest, perhaps an update of it, and the field to blame when it is refused."""

    id: str
    manifest: Mapping[str, Any]
    update: Mapping[str, Any] | None
    reject: str | None
    gates: frozenset[str]


def admission_cases() -> list[AdmissionCase]:
    """Return every case of every table."""
    return [case for path in sorted(FOLDER.glob("*.yaml")) for case in _cases(path)]


def _cases(path: Path) -> list[AdmissionCase]:
    table = yaml.safe_load(path.read_text())
    found = []
    for row in table["cases"]:
        manifest = merged(table["base"], row.get("merge", {}))
        if "fill" in row:
            _fill(manifest, **row["fill"])
        update = merged(manifest, row["then"]) if "then" in row else None
        found.append(
            AdmissionCase(
                id=f"{path.stem}: {row['name']}",
                manifest=manifest,
                update=update,
                reject=row.get("reject"),
                gates=frozenset(table.get("gates", ())),
            )
        )
    return found


def merged(base: Any, patch: Any) -> Any:
    """Return the base with a merge patch (RFC 7386) laid over it."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = copy.deepcopy(dict(base)) if isinstance(base, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def _fill(manifest: Any, *, path: str, count: int, item: Any, key: str | None = None) -> None:
    *parents, last = path.split(".")
    place = manifest
    for part in parents:
        place = place[int(part)] if part.isdigit() else place.setdefault(part, {})
    if key is None:
        place[last] = [copy.deepcopy(item) for _ in range(count)]
    else:
        place.setdefault(last, {}).update({key.format(index): item for index in range(count)})

"""Reads case files and fills in their shorthand, as the README of the format asks."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import yaml

from controller.cluster.mirror import Mirror
from controller.kube import kinds
from controller.kube.kinds import Kind
from framework.api import labels

Wire = dict[str, Any]

_KINDS: Mapping[str, Kind] = {kind.kind: kind for kind in vars(kinds).values() if isinstance(kind, Kind)}
_SPAN = re.compile(r"^\+?(\d+(?:\.\d+)?)([smhd])$")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_NAMESPACED = {kind.kind for kind in _KINDS.values() if kind.namespaced}


@attrs.frozen(kw_only=True)
class Variant:
    """One thing to run: a case, or one of its variants, with what to expect of it."""

    case: str
    name: str
    title: str
    when: str
    parity: str
    given: Wire
    """Facts of the case with the variant's own on top; `objects` holds both."""
    expect: Wire
    now: datetime
    catalog: Wire

    @property
    def label(self) -> str:
        return f"{self.case}/{self.name}" if self.name else self.case


def variants_in(folder: Path) -> Iterator[Variant]:
    """Yield every variant of every case file of a folder, in order."""
    for path in sorted(folder.glob("*.yaml")):
        raw = yaml.safe_load(path.read_text())
        if not path.name.startswith("_") and isinstance(raw, dict) and "when" in raw:
            yield from _variants(raw, folder)


def _variants(raw: Wire, folder: Path) -> Iterator[Variant]:
    given, expect = raw["given"], raw["expect"]
    catalog = yaml.safe_load((folder / given.get("catalog", "_catalog.yaml")).read_text())
    shared = {key: value for key, value in expect.items() if key != "variants"}
    for variant in given.get("variants") or [{}]:
        name = variant.get("name", "")
        own = (expect.get("variants") or {}).get(name) or {}
        facts = {**given, **variant}
        facts["objects"] = copy.deepcopy([*given.get("objects", ()), *variant.get("objects", ())])
        yield Variant(
            case=raw["id"],
            name=name,
            title=raw["title"],
            when=str(raw["when"]),
            parity=own.get("parity", raw.get("parity", "")),
            given=facts,
            expect={**shared, **{key: value for key, value in own.items() if key != "parity"}},
            now=datetime.fromisoformat(str(given["now"])),
            catalog=catalog,
        )


def mirror_of(variant: Variant) -> Mirror:
    """Return a mirror that has seen every object of the case."""
    mirror = Mirror()
    default = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    objects = [default, *variant.given["objects"]]
    for number, raw in enumerate(objects):
        raw["metadata"].setdefault("uid", f"uid-{number:06d}")
    uids = {(raw["kind"], raw["metadata"]["name"]): raw["metadata"]["uid"] for raw in objects}
    for number, raw in enumerate(objects):
        for owner in raw["metadata"].get("ownerReferences") or ():
            owner.setdefault("uid", uids.get((owner["kind"], owner["name"]), f"uid-of-{owner['name']}"))
        kind = _KINDS.get(raw["kind"])
        if kind is None or kind not in mirror.kinds:
            continue
        mirror.apply(kind, filled(raw, number, variant.now))
    return mirror


def filled(raw: Wire, number: int, now: datetime) -> Wire:
    """Give an object what the API server would have given it."""
    metadata = raw["metadata"]
    metadata.setdefault("resourceVersion", str(number + 1))
    metadata.setdefault("generation", 1)
    created = now - timedelta(hours=1) + timedelta(seconds=number)
    metadata.setdefault("creationTimestamp", created.isoformat().replace("+00:00", "Z"))
    if raw["kind"] in _NAMESPACED:
        metadata.setdefault("namespace", "default")
    if raw["kind"] in ("NodePool", "EC2NodeClass"):
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1}
        conditions = raw.setdefault("status", {}).setdefault("conditions", [])
        if not any(condition["type"] == "Ready" for condition in conditions):
            conditions.append({**ready, "lastTransitionTime": metadata["creationTimestamp"]})
    if raw["kind"] in ("Node", "NodeClaim"):
        _fill_node(raw)
    return raw


def duration(text: str) -> timedelta:
    """Return a span such as `+30m`, `2h` or `90s`."""
    match = _SPAN.match(text)
    if match is None:
        raise ValueError(f"{text!r} is no span of time; write 90s, 30m or 2h")
    return timedelta(**{_UNITS[match[2]]: float(match[1])})


def _fill_node(raw: Wire) -> None:
    status = raw.setdefault("status", {})
    status.setdefault("capacity", dict(status.get("allocatable") or {}))
    if raw["kind"] == "NodeClaim":
        metadata = raw["metadata"]
        entries = [
            {"key": key, "operator": "In", "values": [value]}
            for key, value in metadata.get("labels", {}).items()
        ]
        raw["spec"].setdefault("requirements", entries)
        metadata.setdefault("labels", {}).setdefault(labels.EC2NODECLASS, "default")
        for condition in status.get("conditions") or ():
            condition.setdefault("lastTransitionTime", metadata["creationTimestamp"])
            condition.setdefault("reason", condition["type"])
    elif labels.NODEPOOL in raw["metadata"].get("labels", {}):
        raw["metadata"]["labels"].setdefault(labels.EC2NODECLASS, "default")

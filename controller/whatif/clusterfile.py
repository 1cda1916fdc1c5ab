"""A cluster on file: its objects as the API server gave them, what its pools could launch, and prices.

Written by `charpente snapshot`, read by `simulate` and `explain`. Owns the file's form and its version; a
file of another version is refused, never guessed at.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import attrs
import orjson

from controller.kube import WireObject
from controller.scheduling import (
    CapacityType,
    InstanceType,
    MinValuesPolicy,
    Objective,
    Offering,
    Options,
    PreferencePolicy,
    Requirement,
    Requirements,
)
from framework.api import UserError
from framework.api.requirement_spec import Operator

__all__ = ["ClusterFile", "UnusableFile", "dumped", "loaded"]

_FORMAT: Final = "charpente.snapshot"
_VERSION: Final = 1


class UnusableFile(UserError):
    """The file is no snapshot, or one that this version cannot read."""


@attrs.frozen(kw_only=True)
class ClusterFile:
    """Everything that a decision looks at, as of `taken`."""

    taken: datetime
    objects: Mapping[str, tuple[WireObject, ...]]
    """By resource, such as `pods` or `nodepools.karpenter.sh`."""
    instance_types: Mapping[str, tuple[InstanceType, ...]]
    """By name of the node class that launches them; prices as they were then."""
    options: Options = attrs.field(factory=Options)
    """How the cluster's controller plans."""
    overlays: bool = False
    """Whether NodeOverlays count there."""


def dumped(cluster: ClusterFile) -> bytes:
    """Return the file's content; equal clusters give equal bytes."""
    body = {
        "format": _FORMAT,
        "version": _VERSION,
        "taken": cluster.taken.isoformat(),
        "options": {
            "objective": cluster.options.objective,
            "preferencePolicy": cluster.options.preference_policy,
            "minValuesPolicy": cluster.options.min_values_policy,
            "reservedCapacity": cluster.options.reserved_capacity,
            "ignoreDRA": cluster.options.ignore_dra,
            "nodeOverlays": cluster.overlays,
        },
        "objects": {resource: list(each) for resource, each in sorted(cluster.objects.items())},
        "instanceTypes": {
            name: [_type_to_wire(each) for each in types]
            for name, types in sorted(cluster.instance_types.items())
        },
    }
    return orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def loaded(content: bytes, name: str) -> ClusterFile:
    """Read a file's content; `name` is what messages call it. Raises UnusableFile."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError as exc:
        raise UnusableFile(f"{name} is no snapshot: {exc}; take one with `charpente snapshot`") from exc
    if not isinstance(body, dict) or body.get("format") != _FORMAT:
        raise UnusableFile(f"{name} is no snapshot: take one with `charpente snapshot`")
    if body.get("version") != _VERSION:
        raise UnusableFile(
            f"{name} is a snapshot of version {body.get('version')!r}, this program reads version "
            f"{_VERSION}; take it again with this program"
        )
    try:
        return _read(body)
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise UnusableFile(f"{name} is damaged ({type(exc).__name__}: {exc}); take it again") from exc


def _read(body: Mapping[str, Any]) -> ClusterFile:
    options = body["options"]
    return ClusterFile(
        taken=datetime.fromisoformat(body["taken"]),
        objects={resource: tuple(each) for resource, each in body["objects"].items()},
        instance_types={
            name: tuple(_type_from_wire(each) for each in types)
            for name, types in body["instanceTypes"].items()
        },
        options=Options(
            objective=Objective(options["objective"]),
            preference_policy=PreferencePolicy(options["preferencePolicy"]),
            min_values_policy=MinValuesPolicy(options["minValuesPolicy"]),
            reserved_capacity=options["reservedCapacity"],
            ignore_dra=options["ignoreDRA"],
        ),
        overlays=options["nodeOverlays"],
    )


def _type_to_wire(found: InstanceType) -> dict[str, Any]:
    return {
        "name": found.name,
        "labels": {key: sorted(each.values) for key, each in sorted(found.requirements.items())},
        "capacity": dict(sorted(found.capacity.items())),
        "overhead": dict(sorted(found.overhead.items())),
        "offerings": [_set_fields(each) for each in found.offerings],
    }


def _set_fields(offering: Offering) -> dict[str, Any]:
    """Return the fields that differ from their default."""
    return attrs.asdict(
        offering,
        filter=lambda field, value: field.default is attrs.NOTHING or value != field.default,
    )


def _type_from_wire(raw: Mapping[str, Any]) -> InstanceType:
    return InstanceType(
        name=raw["name"],
        requirements=Requirements.of(*(_label(key, values) for key, values in raw["labels"].items())),
        capacity=raw["capacity"],
        overhead=raw["overhead"],
        offerings=[
            Offering(**(each | {"capacity_type": CapacityType(each["capacity_type"])}))
            for each in raw["offerings"]
        ],
    )


def _label(key: str, values: list[str]) -> Requirement:
    return Requirement.new(key, Operator.IN if values else Operator.DOES_NOT_EXIST, values)

"""What a field of a kind promises beyond its Python type: words, limits, rules.

Called by the modules of the kinds, which attach these values to their attrs fields, and by whoever
derives something from them (CRDs, parser, lint, reference). Holds declarations only; never checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

__all__ = [
    "EMPTY",
    "Column",
    "FieldSchema",
    "KindInfo",
    "Rule",
    "Scale",
    "field",
    "frozen_map",
    "items",
    "mapping",
    "schema_of",
]

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
"""The one empty mapping, shared."""

_KEY: Final = "charpente.schema"


@attrs.frozen(kw_only=True)
class Rule:
    """One CEL rule: what must hold of the value it stands on, and what to say when it does not."""

    cel: str
    message: str
    """What is wrong and how to mend it, in one sentence."""


@attrs.frozen(kw_only=True)
class FieldSchema:
    """The published side of one field; `None` and empty mean not restricted."""

    description: str
    name: str | None = None
    """Wire name where it is not the camelCase of the attribute."""
    required: bool | None = None
    """Whether the schema demands it; by default whether the class does."""
    default: Any = None
    """Wire value that the API server fills in."""
    pattern: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    max_properties: int | None = None
    format: str | None = None
    list_type: str | None = None
    list_map_keys: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    values: FieldSchema | None = None
    """Restrictions on each item of a list or each value of a map."""
    gated_values: Mapping[str, str] = EMPTY
    """Values of an enum that the schema has only with the gate named here."""
    gate: str | None = None
    """Feature gate without which the schema leaves the field out (spec mark later than 1.9)."""
    merge: Mapping[str, Any] = EMPTY
    """Laid over the generated JSON schema, for what no other entry can say; None removes a key."""


@attrs.frozen(kw_only=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    type: str
    path: str
    wide: bool = False


@attrs.frozen(kw_only=True)
class Scale:
    """The paths of a scale subresource."""

    spec_path: str
    status_path: str


@attrs.frozen(kw_only=True)
class KindInfo:
    """What a CRD says about a kind apart from its fields (core/api §1)."""

    group: str
    version: str
    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ("karpenter",)
    scope: str = "Cluster"
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None
    description: str
    gate: str | None = None
    """Feature gate without which the CRD is not installed."""

    @property
    def api_version(self) -> str:
        """Return `group/version`."""
        return f"{self.group}/{self.version}"

    @property
    def crd_name(self) -> str:
        """Return the name of the CRD object, `plural.group`."""
        return f"{self.plural}.{self.group}"


def frozen_map(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a mapping that cannot change; one that is already so is returned as it is."""
    if isinstance(source, MappingProxyType):
        return source
    return MappingProxyType(dict(source)) if source else EMPTY


def _tuple(source: Iterable[Any]) -> tuple[Any, ...]:
    return source if isinstance(source, tuple) else tuple(source)


def field(description: str, *, default: Any = attrs.NOTHING, **schema: Any) -> Any:
    """Declare one field: its description, its Python default, and any entry of `FieldSchema`.

    The wire default is given apart as `wire_default`.
    """
    return _declare(description, default, None, schema)


def items(description: str, *, default: Any = (), **schema: Any) -> Any:
    """Declare a list field; any iterable is accepted and kept as a tuple."""
    return _declare(description, default, _tuple, schema)


def mapping(description: str, *, default: Any = EMPTY, **schema: Any) -> Any:
    """Declare a map field; any mapping is accepted and kept read-only."""
    return _declare(description, default, frozen_map, schema)


def _declare(
    description: str, default: Any, converter: Callable[[Any], Any] | None, schema: Mapping[str, Any]
) -> Any:
    entries = dict(schema)
    if "wire_default" in entries:
        entries["default"] = entries.pop("wire_default")
    published = FieldSchema(description=description, **entries)
    return attrs.field(default=default, converter=converter, metadata={_KEY: published})


def schema_of(attribute: attrs.Attribute[Any]) -> FieldSchema | None:
    """Return the published side of an attrs field, or None for one that is not on the wire."""
    schema: FieldSchema | None = attribute.metadata.get(_KEY)
    return schema

"""Static drift: what a node was made from, as a document, and its hash.

Called by the pool and class controllers, which write the annotations, by launches, which copy them, and by
drift, which compares them and names the field that changed. Pure. Spec: core/api §3.3, aws/ec2nodeclass §6.

Documents hold canonical values: lists are sets, unset and empty values are left out, quantities and
durations stand for their amount, so that another spelling is not a change. The version goes up whenever
the document of an unchanged object would come out differently.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import attrs

from framework.api.ec2nodeclass import EC2NodeClass
from framework.api.nodepool import NodePool
from framework.api.quantity import Quantity
from framework.api.wire import Wire, wire_fields

__all__ = [
    "EC2NODECLASS_HASH_VERSION",
    "NODEPOOL_HASH_VERSION",
    "FieldChange",
    "HashedDocument",
    "ec2nodeclass_document",
    "ec2nodeclass_hash",
    "nodepool_document",
    "nodepool_hash",
    "what_changed",
]

NODEPOOL_HASH_VERSION: Final = "v3-py1"
"""Our own tag, so that taking over a cluster rewrites annotations instead of drifting every node."""
EC2NODECLASS_HASH_VERSION: Final = "v4-py1"

_UNHASHED_TEMPLATE: Final = frozenset({"requirements"})
_UNHASHED_CLASS: Final = frozenset(
    {
        "subnetSelectorTerms",
        "securityGroupSelectorTerms",
        "capacityReservationSelectorTerms",
        "amiSelectorTerms",
        "amiFamily",
        "ipPrefixCount",
    }
)
"""Judged against what they resolve to, or never (aws/ec2nodeclass §2)."""
_LONGEST_VALUE: Final = 200
"""Characters; longer values stand as their digest, so that a document fits an annotation."""


@attrs.frozen(kw_only=True)
class FieldChange:
    """One field whose value is not what it was; None means not set."""

    field: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        """Return the change as `field: before → after`."""
        return f"{self.field}: {_or_unset(self.before)} → {_or_unset(self.after)}"


@attrs.frozen(kw_only=True)
class HashedDocument:
    """What a node was made from, in canonical values."""

    values: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str) -> HashedDocument | None:
        """Return the document that `text` gave, or None when it is not one."""
        try:
            values = json.loads(text)
        except ValueError:
            return None
        return cls(values=values) if isinstance(values, dict) else None

    @property
    def text(self) -> str:
        """Return the document as compact JSON with sorted keys."""
        return _canonical(self.values)

    @property
    def hash(self) -> str:
        """Return the hash as a decimal string, for the annotation."""
        return str(int.from_bytes(hashlib.blake2b(self.text.encode(), digest_size=8).digest()))

    def changes(self, after: HashedDocument) -> tuple[FieldChange, ...]:
        """Return the fields that differ from here to `after`, sorted by path."""
        old, new = dict(_flat(self.values, "")), dict(_flat(after.values, ""))
        return tuple(
            FieldChange(field=path, before=old.get(path), after=new.get(path))
            for path in sorted(old.keys() | new.keys())
            if old.get(path) != new.get(path)
        )


def what_changed(before: str | None, now: HashedDocument) -> str:
    """Return what differs from the document that a node was made from, for people."""
    then = HashedDocument.parse(before) if before is not None else None
    if then is None:
        return "changed since the node was made"
    return "; ".join(map(str, then.changes(now))) or "changed in how it is hashed"


def nodepool_document(pool: NodePool) -> HashedDocument:
    """Return what the pool's template asks of a node, requirements aside."""
    template = pool.spec.template
    values = {
        "metadata": _document(template.metadata, frozenset()),
        "spec": _document(template.spec, _UNHASHED_TEMPLATE),
    }
    return HashedDocument(values={key: value for key, value in values.items() if value})


def nodepool_hash(pool: NodePool) -> str:
    """Return the static drift hash of a NodePool."""
    return nodepool_document(pool).hash


def ec2nodeclass_document(node_class: EC2NodeClass) -> HashedDocument:
    """Return what the class asks of an instance, aside from what is judged by what it resolves to.

    The AMI family is the one in force: naming the alias's own family is not a change.
    """
    values = _document(node_class.spec, _UNHASHED_CLASS)
    return HashedDocument(values={**values, "amiFamily": str(node_class.spec.resolved_ami_family)})


def ec2nodeclass_hash(node_class: EC2NodeClass) -> str:
    """Return the static drift hash of an EC2NodeClass."""
    return ec2nodeclass_document(node_class).hash


def _document(source: Wire, unhashed: frozenset[str]) -> dict[str, Any]:
    found = {}
    for member in wire_fields(type(source)):
        value = getattr(source, member.attribute.name)
        unset = value == member.default and not member.default
        if member.name in unhashed or unset:
            continue
        document = "Never" if value is None else _value(value)
        if document not in ({}, [], ""):
            found[member.name] = document
    return found


def _value(value: Any) -> Any:
    if isinstance(value, Wire):
        return _document(value, frozenset())
    if isinstance(value, Mapping):
        return {key: _value(entry) for key, entry in value.items()}
    if isinstance(value, tuple):
        return sorted({_canonical(item): item for item in map(_value, value)}.values(), key=_canonical)
    if isinstance(value, Quantity):
        return value.canonical()
    if isinstance(value, timedelta):
        return f"{int(value.total_seconds())}s"
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        return f"sha256:{hashlib.sha256(value.encode()).hexdigest()}"
    return str(value) if isinstance(value, str) else value


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Give every leaf with its path; a list counts as one leaf."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _flat(entry, f"{path}.{key}" if path else str(key))
    else:
        yield path, value if isinstance(value, str) else _canonical(value)


def _or_unset(value: str | None) -> str:
    return "not set" if value is None else value

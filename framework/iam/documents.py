"""IAM policy documents as values.

Called by `framework.iam.policies` and `framework.iam.trust`. Owns the shape of a
statement and its one rendering to JSON; never decides what a statement allows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import attrs

Conditions: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Operator → condition key → values, such as `{"StringEquals": {"aws:RequestedRegion": ("eu-west-2",)}}`."""

VERSION = "2012-10-17"
MANAGED_POLICY_LIMIT = 6144
"""Most characters of a managed policy, white space not counted."""


class Effect(StrEnum):
    """What a statement does to the requests it matches."""

    ALLOW = "Allow"
    DENY = "Deny"


def _value(items: tuple[str, ...]) -> str | list[str]:
    return items[0] if len(items) == 1 else list(items)


@attrs.frozen(kw_only=True)
class Statement:
    """One statement of a policy document."""

    sid: str | None = None
    effect: Effect = Effect.ALLOW
    principals: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Kind of principal (`Service`, `AWS`, `Federated`, `*`) → names; empty in an identity policy."""
    actions: tuple[str, ...]
    resources: tuple[str, ...] = ()
    """Empty in a trust policy, whose resource is the role itself."""
    conditions: Conditions = attrs.field(factory=dict)

    def to_wire(self) -> dict[str, object]:
        """The statement as it stands in a document, keys in the customary order."""
        wire: dict[str, object] = {}
        if self.sid is not None:
            wire["Sid"] = self.sid
        wire["Effect"] = self.effect.value
        if self.principals:
            wire["Principal"] = (
                "*"
                if "*" in self.principals
                else {kind: _value(names) for kind, names in self.principals.items()}
            )
        wire["Action"] = _value(self.actions)
        if self.resources:
            wire["Resource"] = _value(self.resources)
        if self.conditions:
            wire["Condition"] = {
                operator: {key: _value(values) for key, values in sorted(keys.items())}
                for operator, keys in sorted(self.conditions.items())
            }
        return wire


@attrs.frozen(kw_only=True)
class Document:
    """A policy document."""

    id: str | None = None
    statements: tuple[Statement, ...]

    def to_wire(self) -> dict[str, object]:
        """The document as a JSON object."""
        wire: dict[str, object] = {"Version": VERSION}
        if self.id is not None:
            wire["Id"] = self.id
        wire["Statement"] = [statement.to_wire() for statement in self.statements]
        return wire

    def to_json(self) -> str:
        """The document as compact JSON; the same document always gives the same text."""
        return json.dumps(self.to_wire(), separators=(",", ":"))

"""Taints and tolerations (spec core/scheduling §13.5).

Used by the engine, node registration and drain. Follows kube-scheduler's matching; holds values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from controller.scheduling.requirements import parse_integer
from framework.api import labels
from framework.api.requirement_spec import Taint as TaintSpec
from framework.api.requirement_spec import TaintEffect

__all__ = [
    "DISRUPTED",
    "EPHEMERAL_TAINTS",
    "UNREGISTERED",
    "Taint",
    "Toleration",
    "is_ephemeral",
    "merge_taints",
    "tolerates",
]


@attrs.frozen(order=True)
class Taint:
    """Repels pods that do not tolerate it; `value` is empty when there is none."""

    key: str
    value: str = ""
    effect: str = TaintEffect.NO_SCHEDULE

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Taint:
        """Return the taint of a Node or a manifest."""
        return cls(str(raw.get("key") or ""), str(raw.get("value") or ""), str(raw.get("effect") or ""))

    @classmethod
    def from_spec(cls, spec: TaintSpec) -> Taint:
        """Return the taint of a NodePool or NodeClaim."""
        return cls(spec.key, spec.value or "", str(spec.effect))

    def to_wire(self) -> dict[str, str]:
        """Return the manifest's entry; an empty value is left out."""
        wire = {"key": self.key, "value": self.value, "effect": str(self.effect)}
        return {name: text for name, text in wire.items() if text}

    def __str__(self) -> str:
        """Return `key[=value]:effect`."""
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


@attrs.frozen(order=True)
class Toleration:
    """A pod's permission to ignore taints; an empty `key` (with Exists) or `effect` means every one."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Toleration:
        """Return the toleration of a pod."""
        return cls(
            str(raw.get("key") or ""),
            str(raw.get("operator") or "Equal"),
            str(raw.get("value") or ""),
            str(raw.get("effect") or ""),
        )

    def covers(self, taint: Taint) -> bool:
        """Tell whether it tolerates this taint, as kube-scheduler does."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        if not self.key:
            return False
        if self.operator in ("Gt", "Lt"):
            mine, theirs = parse_integer(self.value), parse_integer(taint.value)
            if mine is None or theirs is None:
                return False
            return theirs > mine if self.operator == "Gt" else theirs < mine
        return self.operator == "Equal" and self.value == taint.value


UNREGISTERED = Taint(labels.UNREGISTERED_TAINT, "", TaintEffect.NO_EXECUTE)
DISRUPTED = Taint(labels.DISRUPTED_TAINT, "", TaintEffect.NO_SCHEDULE)
EPHEMERAL_TAINTS: frozenset[tuple[str, str]] = frozenset(
    {
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        (labels.UNREGISTERED_TAINT, "NoExecute"),
    }
)
"""Key and effect of taints that go away by themselves while a node starts (core/api §8.3)."""


def is_ephemeral(taint: Taint) -> bool:
    """Tell whether it is a known taint of nodes that are starting."""
    return (taint.key, taint.effect) in EPHEMERAL_TAINTS


def merge_taints(first: Iterable[Taint], second: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return both lists; of two with the same key and effect the first stays."""
    merged: dict[tuple[str, str], Taint] = {}
    for taint in (*first, *second):
        merged.setdefault((taint.key, taint.effect), taint)
    return tuple(merged.values())


def tolerates(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that nothing tolerates, PreferNoSchedule included, or None if all are."""
    given = tuple(tolerations)
    for taint in taints:
        if not any(toleration.covers(taint) for toleration in given):
            return taint
    return None

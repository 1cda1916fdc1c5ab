"""The parts of a pod that say where it may run (spec core/scheduling §6, §12, §13).

Built by `Pod.from_wire`; read by the engine. Each class reads its own piece of the wire form and
raises ValueError with the piece's problem; `Pod.from_wire` adds object and field.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs

from controller.scheduling.requirements import Requirement, Requirements
from controller.scheduling.selectors import LabelSelector, SelectorTerm

__all__ = [
    "HostPort",
    "OwnerReference",
    "PodAffinityTerm",
    "PreferredNodeTerm",
    "PreferredPodTerm",
    "TopologySpread",
    "node_term",
    "parse_instant",
]

_ANY_IP = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with, never bound


def parse_instant(text: object) -> datetime | None:
    """Return an aware instant from RFC 3339 text, None when absent."""
    if isinstance(text, datetime):
        return text
    return datetime.fromisoformat(str(text)) if text else None


@attrs.frozen(order=True)
class OwnerReference:
    """The object that made another."""

    api_version: str
    kind: str
    name: str
    uid: str = ""
    controller: bool = False

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> OwnerReference:
        """Return the reference."""
        return cls(
            str(raw.get("apiVersion") or ""),
            str(raw.get("kind") or ""),
            str(raw.get("name") or ""),
            str(raw.get("uid") or ""),
            bool(raw.get("controller")),
        )


@attrs.frozen(order=True)
class HostPort:
    """A port of the node that a pod takes; `ip` is empty for every address."""

    port: int
    protocol: str = "TCP"
    ip: str = ""

    def conflicts(self, other: HostPort) -> bool:
        """Tell whether both cannot be had on one node (§13.3)."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.ip == other.ip or self.ip in _ANY_IP or other.ip in _ANY_IP

    def __str__(self) -> str:
        """Return `ip:port/protocol`."""
        return f"{self.ip or '0.0.0.0'}:{self.port}/{self.protocol}"  # noqa: S104 - text for people


def node_term(raw: Mapping[str, Any]) -> Requirements:
    """Return one node selector term's expressions, all of which must hold.

    Raises ValueError for an unknown operator, a bound that is not a number, or `matchFields`.
    """
    if raw.get("matchFields") is not None:
        raise ValueError("matchFields is not supported; use matchExpressions")
    entries = raw.get("matchExpressions") or ()
    return Requirements.of(
        *(Requirement.new(entry["key"], entry["operator"], entry.get("values") or ()) for entry in entries)
    )


@attrs.frozen
class PreferredNodeTerm:
    """A wish about the node, with its weight from 1 to 100."""

    weight: int
    requirements: Requirements


@attrs.frozen(cache_hash=True)
class PodAffinityTerm:
    """Pods to be near to or away from; `selector` None picks nothing."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any], labels: Mapping[str, str]) -> PodAffinityTerm:
        """Return the term with the pod's own label values folded in for (mis)matchLabelKeys."""
        selector = LabelSelector.from_wire(raw.get("labelSelector"))
        if selector is not None:
            same = [(key, labels[key]) for key in raw.get("matchLabelKeys") or () if key in labels]
            unlike = [key for key in raw.get("mismatchLabelKeys") or () if key in labels]
            selector = selector.with_labels(same)
            others = tuple(SelectorTerm(key, "NotIn", (labels[key],)) for key in unlike)
            selector = LabelSelector((*selector.terms, *others))
        return cls(
            str(raw.get("topologyKey") or ""),
            selector,
            tuple(sorted(raw.get("namespaces") or ())),
            LabelSelector.from_wire(raw.get("namespaceSelector")),
        )


@attrs.frozen
class PreferredPodTerm:
    """A wish about other pods, with its weight from 1 to 100."""

    weight: int
    term: PodAffinityTerm


@attrs.frozen(kw_only=True, cache_hash=True)
class TopologySpread:
    """How evenly pods of a selector must lie over the values of a label."""

    topology_key: str
    max_skew: int
    selector: LabelSelector | None
    hard: bool = True
    """`whenUnsatisfiable: DoNotSchedule`."""
    min_domains: int | None = None
    honor_affinity: bool = True
    honor_taints: bool = False

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any], labels: Mapping[str, str]) -> TopologySpread:
        """Return the constraint with the pod's own label values folded in for matchLabelKeys."""
        selector = LabelSelector.from_wire(raw.get("labelSelector"))
        if selector is not None:
            keys = raw.get("matchLabelKeys") or ()
            selector = selector.with_labels((key, labels[key]) for key in keys if key in labels)
        skew = int(raw.get("maxSkew") or 0)
        if skew < 1:
            raise ValueError(f"maxSkew is {skew}; set 1 or more")
        return cls(
            topology_key=str(raw.get("topologyKey") or ""),
            max_skew=skew,
            selector=selector,
            hard=raw.get("whenUnsatisfiable", "DoNotSchedule") != "ScheduleAnyway",
            min_domains=raw.get("minDomains"),
            honor_affinity=raw.get("nodeAffinityPolicy", "Honor") != "Ignore",
            honor_taints=raw.get("nodeTaintsPolicy", "Ignore") == "Honor",
        )

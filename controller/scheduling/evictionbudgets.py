"""PodDisruptionBudgets: how many pods of a selector may be evicted (spec core/scheduling §2).

Read by drain, disruption and the predicates on pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from controller.scheduling.selectors import LabelSelector

__all__ = ["PodDisruptionBudget"]


@attrs.frozen(kw_only=True)
class PodDisruptionBudget:
    """One policy/v1 PodDisruptionBudget; amounts stay as written, a number or a percentage."""

    namespace: str
    name: str
    selector: LabelSelector | None
    """None picks nothing."""
    disruptions_allowed: int = 0
    max_unavailable: int | str | None = None
    min_available: int | str | None = None
    always_allow_unhealthy: bool = False
    """`unhealthyPodEvictionPolicy: AlwaysAllow`."""

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> PodDisruptionBudget:
        """Return the budget; raises ValueError for a selector that cannot be read."""
        metadata, spec, status = raw.get("metadata") or {}, raw.get("spec") or {}, raw.get("status") or {}
        return cls(
            namespace=str(metadata.get("namespace") or "default"),
            name=str(metadata.get("name") or ""),
            selector=LabelSelector.from_wire(spec.get("selector")),
            disruptions_allowed=int(status.get("disruptionsAllowed") or 0),
            max_unavailable=spec.get("maxUnavailable"),
            min_available=spec.get("minAvailable"),
            always_allow_unhealthy=spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
        )

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def fully_blocking(self) -> bool:
        """Whether it never allows an eviction (§2)."""
        return self.max_unavailable in (0, "0%") or self.min_available == "100%"

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether a pod with these labels counts in it."""
        return namespace == self.namespace and self.selector is not None and self.selector.matches(labels)

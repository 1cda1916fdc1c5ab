"""Why something was decided, as values (issue: reasons as a tree and as JSON).

Made by the engine's second pass and by the controllers; printed by `explain`, `simulate`, events
and logs. Holds values and renderings only.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import attrs

__all__ = ["Reason", "ReasonCode"]


class ReasonCode(StrEnum):
    """The first filter that said no, or the stage at which a pod was placed."""

    DRA = "DynamicResourceAllocation"
    INVALID_POD = "InvalidPod"
    NO_POOLS = "NoNodePools"
    POOL_UNUSABLE = "NodePoolUnusable"
    UNPLACED = "Unplaced"
    TAINT = "Taint"
    REQUIREMENTS = "Requirements"
    UNKNOWN_LABEL = "UnknownLabel"
    LIMITS = "Limits"
    REGISTRATION_PAUSED = "RegistrationPaused"
    SPOT_SHARE = "SpotShare"
    RESOURCES = "Resources"
    OFFERINGS = "Offerings"
    INSTANCE_TYPES = "InstanceTypes"
    MIN_VALUES = "MinValues"
    TOPOLOGY_SPREAD = "TopologySpread"
    POD_AFFINITY = "PodAffinity"
    POD_ANTI_AFFINITY = "PodAntiAffinity"
    HOST_PORT = "HostPort"
    VOLUME = "Volume"
    VOLUME_LIMIT = "VolumeLimit"
    RESERVED = "ReservedOffering"
    TIMEOUT = "Timeout"
    NODE = "Node"
    ON_EXISTING_NODE = "OnExistingNode"
    ON_IN_FLIGHT_NODE = "OnInFlightNode"
    ON_NEW_CLAIM = "OnNewNodeClaim"


@attrs.frozen(kw_only=True)
class Reason:
    """One fact with the object and field it is about, the nearest miss, and the facts under it."""

    code: StrEnum
    """A `ReasonCode`, or the code of a controller that builds on the engine."""
    text: str
    obj: str | None = None
    """Kind and name of the object that says so, such as `NodePool/web`."""
    field: str | None = None
    nearest: str | None = None
    """What comes closest, such as the largest allowed type and what it leaves."""
    children: tuple[Reason, ...] = ()

    @property
    def message(self) -> str:
        """The fact with its nearest miss, without the children."""
        return f"{self.text} ({self.nearest})" if self.nearest else self.text

    def short(self) -> str:
        """Return one line: the fact, or the distinct facts of the children joined by `; `."""
        facts = list(dict.fromkeys(line for child in self.children for line in [child.short()] if line))
        prefix = f"{self.obj}: " if self.obj else ""
        if not facts:
            return f"{prefix}{self.message}"
        return f"{prefix}{'; '.join(facts)}"

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the tree, two spaces deeper per level."""
        head = f"{self.obj}: " if self.obj else ""
        yield f"{'  ' * depth}{head}{self.message}"
        for child in self.children:
            yield from child.lines(depth + 1)

    def render(self) -> str:
        """Return the tree as text."""
        return "\n".join(self.lines())

    def to_json(self) -> dict[str, Any]:
        """Return the tree as plain values; absent fields are left out."""
        fields = {
            "code": str(self.code),
            "object": self.obj,
            "field": self.field,
            "text": self.text,
            "nearest": self.nearest,
            "children": [child.to_json() for child in self.children] or None,
        }
        return {name: value for name, value in fields.items() if value is not None}

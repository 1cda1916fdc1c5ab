"""The controller's settings as the programs give them.

Called by the programs in `stacks/` and by `framework.components.controller`. Owns
their translation to environment variables (spec aws/iam-and-bootstrap section 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

_DEFAULT_GATES: Mapping[str, bool] = MappingProxyType(
    {
        "NodeRepair": False,
        "ReservedCapacity": True,
        "SpotToSpotConsolidation": False,
        "NodeOverlay": False,
        "StaticCapacity": False,
    }
)


def feature_gates(changes: Mapping[str, bool]) -> str:
    """All gates as one text, defaults included, so that a reader sees what is on."""
    gates = {**_DEFAULT_GATES, **changes}
    return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(gates.items()))


@attrs.frozen(kw_only=True)
class ControllerSettings:
    """Settings that a program may change; None leaves the controller's own default."""

    log_level: str | None = None
    batch_idle_duration: str | None = None
    batch_max_duration: str | None = None
    preference_policy: str | None = None
    min_values_policy: str | None = None
    packing_objective: str | None = None
    vm_memory_overhead_percent: float | None = None
    reserved_enis: int | None = None
    isolated_vpc: bool | None = None
    disable_dry_run: bool | None = None
    ignore_dra_requests: bool | None = None
    """False is passed on as well; the chart of Karpenter drops it silently."""
    feature_gates: Mapping[str, bool] = attrs.field(factory=dict)

    def environment(self) -> dict[str, str]:
        """The settings that are set, by environment variable."""
        plain = {
            field.name: getattr(self, field.name)
            for field in attrs.fields(type(self))
            if field.name != "feature_gates"
        }
        texts = {name.upper(): _text(value) for name, value in plain.items() if value is not None}
        return {**texts, "FEATURE_GATES": feature_gates(self.feature_gates)}


def _text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""NodeOverlay: corrections to price and capacity of instance types (core/api §5, alpha gate NodeOverlay).

Called by the instance type provider, which applies overlays before planning. Owns shape and admission
rules; overlap between overlays is judged at run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import attrs

from framework.api import labels
from framework.api.conditions import Condition
from framework.api.metadata import Kind
from framework.api.quantity import Quantity
from framework.api.requirement_spec import NOT_IN_RULE, RequirementSpec, requirements
from framework.api.schema import Column, KindInfo, Rule, field, items, mapping
from framework.api.wire import Wire

__all__ = ["NodeOverlay", "NodeOverlaySpec", "NodeOverlayStatus"]

STANDARD_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "pods")
"""Resources that the provider knows better than any overlay."""


@attrs.frozen(kw_only=True)
class NodeOverlaySpec(Wire):
    """What is corrected, and for which instance types."""

    requirements: tuple[RequirementSpec, ...] = requirements(
        "Which instance types, zones, capacity types and pools the overlay applies to.",
        allow_nodepool=True,
        rules=(NOT_IN_RULE,),
        merge={"items": {"properties": {"minValues": None}}},
    )
    price_adjustment: str | None = field(
        "Change of the price: a signed amount in USD an hour (+0.5, -0.01) or a signed percentage "
        "(+10%, -32%).",
        default=None,
        pattern=r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$",
    )
    price: str | None = field(
        "Price in USD an hour that replaces the one known.", default=None, pattern=r"^\d+(\.\d+)?$"
    )
    capacity: Mapping[str, Quantity] = mapping(
        "Extended resources that the instance types have beyond what the provider knows.",
        rules=(
            Rule(
                cel="self.all(x, !(x in [" + ", ".join(f"'{name}'" for name in STANDARD_RESOURCES) + "]))",
                message="cpu, memory, ephemeral-storage and pods cannot be overlaid; remove them",
            ),
        ),
    )
    weight: int | None = field(
        "Order among overlays that match: the highest wins; 0 when left out.",
        default=None,
        minimum=1,
        maximum=10000,
        format="int32",
    )


SPEC_RULES: Final = (
    Rule(
        cel="!has(self.price) || !has(self.priceAdjustment)",
        message="price and priceAdjustment exclude each other; keep one",
    ),
)


@attrs.frozen(kw_only=True)
class NodeOverlayStatus(Wire):
    """Whether the overlay is in force."""

    conditions: tuple[Condition, ...] = items("What holds of the overlay: ValidationSucceeded, Ready.")


@attrs.frozen(kw_only=True)
class NodeOverlay(Kind):
    """A correction to price or capacity of instance types."""

    INFO: ClassVar[KindInfo] = KindInfo(
        group=labels.GROUP,
        version="v1alpha1",
        kind="NodeOverlay",
        plural="nodeoverlays",
        short_names=("overlays",),
        description="A correction to price or capacity of instance types, used in planning.",
        columns=(
            Column(name="Ready", type="string", path='.status.conditions[?(@.type=="Ready")].status'),
            Column(name="Age", type="date", path=".metadata.creationTimestamp"),
            Column(name="Weight", type="integer", path=".spec.weight", wide=True),
        ),
    )
    DEPENDENTS: ClassVar[tuple[str, ...]] = ("ValidationSucceeded",)

    spec: NodeOverlaySpec = field("What is corrected, and where.", rules=SPEC_RULES)
    status: NodeOverlayStatus = field("Whether the overlay is in force.", default=NodeOverlayStatus())

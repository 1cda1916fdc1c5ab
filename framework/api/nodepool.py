"""NodePool: what nodes may look like, how many, and when they may be replaced (core/api §3).

Called by everything that reads pools. Owns shape, defaults and admission rules; runtime checks are in
`framework.api.validation`, hashes in `framework.api.hashes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Final

import attrs

from framework.api import labels
from framework.api.conditions import Condition
from framework.api.duration import (
    BUDGET_DURATION_PATTERN,
    NILLABLE_DURATION_PATTERN,
    PLAIN_DURATION_PATTERN,
    Duration,
)
from framework.api.metadata import Kind
from framework.api.quantity import Quantity
from framework.api.requirement_spec import (
    MIN_VALUES_RULE,
    NodeClassRef,
    RequirementSpec,
    Taint,
    requirements,
    template_labels,
)
from framework.api.schema import Column, KindInfo, Rule, Scale, field, items, mapping
from framework.api.wire import Wire

__all__ = [
    "DEFAULT_EXPIRE_AFTER",
    "Budget",
    "ConsolidationPolicy",
    "Disruption",
    "DisruptionReason",
    "NodePool",
    "NodePoolSpec",
    "NodePoolStatus",
    "NodePoolTemplate",
    "NodePoolTemplateMetadata",
    "NodePoolTemplateSpec",
]

DEFAULT_EXPIRE_AFTER: Final = Duration("720h")

NODE_CLASS_RULES: Final = (
    Rule(
        cel="self.group == oldSelf.group",
        message="nodeClassRef.group cannot change; make another NodePool for another group",
    ),
    Rule(
        cel="self.kind == oldSelf.kind",
        message="nodeClassRef.kind cannot change; make another NodePool for another kind",
    ),
)


class ConsolidationPolicy(StrEnum):
    """Which nodes consolidation may touch."""

    WHEN_EMPTY = "WhenEmpty"
    WHEN_EMPTY_OR_UNDERUTILIZED = "WhenEmptyOrUnderutilized"
    BALANCED = "Balanced"


class DisruptionReason(StrEnum):
    """Why a node is disrupted of our own will, as budgets name it."""

    UNDERUTILIZED = "Underutilized"
    EMPTY = "Empty"
    DRIFTED = "Drifted"


@attrs.frozen(kw_only=True)
class Budget(Wire):
    """How many nodes of the pool may be disrupted at once, by reason and time."""

    nodes: str = field(
        "Most nodes disrupted at once: a number, or a percentage of the pool's nodes. 0 forbids.",
        default="10%",
        wire_default="10%",
        required=True,
        pattern=r"^((100|[0-9]{1,2})%|[0-9]+)$",
    )
    reasons: tuple[DisruptionReason, ...] = items(
        "Reasons that the budget counts for; all when left out.", max_items=50
    )
    schedule: str | None = field(
        "When the budget is active: five cron fields or a macro such as @daily, in UTC. Always when left "
        "out. Needs duration.",
        default=None,
        pattern=r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$",
    )
    duration: Duration | None = field(
        "How long each active window lasts, in hours and minutes. Needs schedule.",
        default=None,
        pattern=BUDGET_DURATION_PATTERN,
    )


DEFAULT_BUDGETS: Final = (Budget(),)


@attrs.frozen(kw_only=True)
class Disruption(Wire):
    """When and how fast nodes are replaced or removed to save money or to follow the template."""

    consolidate_after: Duration | None = field(
        "How long a node must have seen no pod come or go before it may be consolidated; Never switches "
        "consolidation off.",
        default=Duration("0s"),
        required=True,
        pattern=NILLABLE_DURATION_PATTERN,
    )
    consolidation_policy: ConsolidationPolicy = field(
        "Whether only empty nodes are consolidated, or underutilized ones as well.",
        default=ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED,
        wire_default="WhenEmptyOrUnderutilized",
        gated_values={"Balanced": "BalancedConsolidation"},
    )
    budgets: tuple[Budget, ...] = items(
        "Ceilings on simultaneous disruptions; the lowest active one counts. An empty list sets none.",
        default=DEFAULT_BUDGETS,
        wire_default=[{"nodes": "10%"}],
        max_items=50,
        rules=(
            Rule(
                cel="self.all(x, has(x.schedule) == has(x.duration))",
                message="a budget has only one of schedule and duration; give both or neither",
            ),
        ),
    )


@attrs.frozen(kw_only=True)
class NodePoolTemplateMetadata(Wire):
    """Labels and annotations of every claim and node of the pool."""

    labels: Mapping[str, str] = template_labels("Labels that every NodeClaim and node of the pool gets.")
    annotations: Mapping[str, str] = mapping("Annotations that every NodeClaim and node of the pool gets.")


@attrs.frozen(kw_only=True)
class NodePoolTemplateSpec(Wire):
    """What every claim of the pool asks for."""

    taints: tuple[Taint, ...] = items("Taints of the nodes; pods must tolerate them to be planned here.")
    startup_taints: tuple[Taint, ...] = items(
        "Taints that nodes start with and something else removes; pods need not tolerate them to be planned."
    )
    requirements: tuple[RequirementSpec, ...] = requirements(
        "What labels the nodes may have, and with them instance types, zones and capacity types.",
        rules=(MIN_VALUES_RULE,),
    )
    node_class_ref: NodeClassRef = field(
        "The node class that describes the machines.", rules=NODE_CLASS_RULES
    )
    expire_after: Duration | None = field(
        "Age at which a node is replaced; Never keeps nodes whatever their age.",
        default=DEFAULT_EXPIRE_AFTER,
        wire_default="720h",
        pattern=NILLABLE_DURATION_PATTERN,
    )
    termination_grace_period: Duration | None = field(
        "Longest time a node may drain, counted from its deletion; without it draining may take for ever.",
        default=None,
        pattern=PLAIN_DURATION_PATTERN,
    )


@attrs.frozen(kw_only=True)
class NodePoolTemplate(Wire):
    """The shape of every claim that the pool launches."""

    metadata: NodePoolTemplateMetadata = field(
        "Labels and annotations of the nodes.", default=NodePoolTemplateMetadata()
    )
    spec: NodePoolTemplateSpec = field("What the nodes are made from.")


@attrs.frozen(kw_only=True)
class NodePoolSpec(Wire):
    """What the user wants of the pool."""

    template: NodePoolTemplate = field("The shape of every node that the pool launches.")
    disruption: Disruption = field(
        "When nodes may be replaced or removed.",
        default=Disruption(),
        wire_default={"consolidateAfter": "0s"},
    )
    limits: Mapping[str, Quantity] = mapping(
        "Ceilings on the sum of the nodes' capacity, by resource; the name nodes counts nodes."
    )
    weight: int | None = field(
        "Order among pools that fit: the highest first; 0 when left out.",
        default=None,
        minimum=1,
        maximum=100,
        format="int32",
    )
    replicas: int | None = field(
        "Fixed number of nodes, whether pods need them or not. Alpha; needs the gate StaticCapacity.",
        default=None,
        minimum=0,
        format="int64",
    )


SPEC_RULES: Final = (
    Rule(
        cel="has(self.replicas) == has(oldSelf.replicas)",
        message="a pool cannot change between static and dynamic; make another NodePool "
        "with or without replicas",
    ),
    Rule(
        cel="!has(self.replicas) || !has(self.limits) || self.limits.all(x, x == 'nodes')",
        message="a pool with replicas may only limit nodes; remove the other limits",
    ),
    Rule(
        cel="!has(self.replicas) || !has(self.weight)",
        message="a pool with replicas has no weight; remove one of them",
    ),
)

_READY_PATH: Final = '.status.conditions[?(@.type=="Ready")].status'


@attrs.frozen(kw_only=True)
class NodePoolStatus(Wire):
    """What the controller knows about the pool."""

    resources: Mapping[str, Quantity] = mapping(
        "Sum of the capacity of the pool's nodes that are not being deleted."
    )
    nodes: int = field("Number of those nodes.", default=0, wire_default=0, format="int64")
    drifted: int | None = field(
        "Number of those nodes that differ from what the pool asks for now.",
        default=None,
        format="int64",
    )
    observed_generation: int | None = field(
        "Generation of the pool that these counts and RolloutComplete were written for.",
        default=None,
        format="int64",
    )
    node_class_observed_generation: int | None = field(
        "Generation of the node class that registration health was last judged for.",
        default=None,
        format="int64",
    )
    conditions: tuple[Condition, ...] = items(
        "What holds of the pool: ValidationSucceeded, NodeClassReady, NodeRegistrationHealthy, "
        "RolloutComplete, Ready."
    )


@attrs.frozen(kw_only=True)
class NodePool(Kind):
    """A set of nodes made from one template."""

    INFO: ClassVar[KindInfo] = KindInfo(
        group=labels.GROUP,
        version="v1",
        kind="NodePool",
        plural="nodepools",
        description="A set of nodes made from one template, grown when pods need room and shrunk when not.",
        columns=(
            Column(name="NodeClass", type="string", path=".spec.template.spec.nodeClassRef.name"),
            Column(name="Nodes", type="string", path=".status.nodes"),
            Column(name="Ready", type="string", path=_READY_PATH),
            Column(name="Age", type="date", path=".metadata.creationTimestamp"),
            Column(name="Weight", type="integer", path=".spec.weight", wide=True),
            Column(name="CPU", type="string", path=".status.resources.cpu", wide=True),
            Column(name="Memory", type="string", path=".status.resources.memory", wide=True),
        ),
        scale=Scale(spec_path=".spec.replicas", status_path=".status.nodes"),
    )
    DEPENDENTS: ClassVar[tuple[str, ...]] = ("ValidationSucceeded", "NodeClassReady")

    spec: NodePoolSpec = field("What the user wants of the pool.", rules=SPEC_RULES)
    status: NodePoolStatus = field(
        "What the controller knows about the pool.", default=NodePoolStatus(), wire_default={"nodes": 0}
    )

"""SchedulingConfig: how scheduling behaves for all NodePools of one node class (design, SchedulingConfig).

Called by provisioning and disruption. Owns shape, defaults and admission rules. A default of None means
that the controller's own setting holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Final

import attrs

from framework.api import labels
from framework.api.conditions import Condition
from framework.api.duration import BUDGET_DURATION_PATTERN, PLAIN_DURATION_PATTERN, Duration
from framework.api.metadata import Kind
from framework.api.quantity import Quantity
from framework.api.requirement_spec import MIN_VALUES_RULE, NodeClassRef, RequirementSpec, requirements
from framework.api.schema import Column, KindInfo, Rule, field, items, mapping
from framework.api.selector import LabelSelector
from framework.api.wire import Wire

__all__ = [
    "ConfigDisruption",
    "DriftSource",
    "Headroom",
    "HeadroomPod",
    "HeadroomResources",
    "MinSavings",
    "MinValuesPolicy",
    "Objective",
    "Packing",
    "PreferencePolicy",
    "Rollout",
    "SchedulingConfig",
    "SchedulingConfigSpec",
    "SchedulingConfigStatus",
    "SpotPolicy",
    "StaticDriftOrder",
    "ZoneBalance",
]


class PreferencePolicy(StrEnum):
    """Whether preferences of pods count in planning."""

    RESPECT = "Respect"
    IGNORE = "Ignore"


class MinValuesPolicy(StrEnum):
    """Whether minValues may be lowered when it cannot be met."""

    STRICT = "Strict"
    BEST_EFFORT = "BestEffort"


class Objective(StrEnum):
    """What planning strives for."""

    FIRST_FIT = "FirstFit"
    COST = "Cost"


class StaticDriftOrder(StrEnum):
    """What goes first when a node of a static NodePool is replaced."""

    SURGE_FIRST = "SurgeFirst"
    DELETE_FIRST = "DeleteFirst"


class DriftSource(StrEnum):
    """What a node can drift from, for those who do not want to follow all of it."""

    AMI = "AMI"
    SUBNETS = "Subnets"
    SECURITY_GROUPS = "SecurityGroups"
    EXTRA_SECURITY_GROUPS = "ExtraSecurityGroups"
    """Groups that an instance has beyond those of its class, as a policy of the organisation adds them."""
    CAPACITY_RESERVATIONS = "CapacityReservations"
    NODE_CLASS = "NodeClass"
    NODE_POOL = "NodePool"
    REQUIREMENTS = "Requirements"


@attrs.frozen(kw_only=True)
class Packing(Wire):
    """How pods are put onto new nodes."""

    objective: Objective | None = field(
        "FirstFit takes pools by weight and the first node that fits, as Karpenter does; Cost looks for the "
        "cheapest plan, pools of higher weight still first. The controller's setting when left out.",
        default=None,
    )
    time_limit: Duration = field(
        "How long Cost may search.",
        default=Duration("2s"),
        wire_default="2s",
        pattern=PLAIN_DURATION_PATTERN,
    )


@attrs.frozen(kw_only=True)
class SpotPolicy(Wire):
    """Bounds on the use of spot capacity."""

    min_cheaper_types: int = field(
        "Cheaper instance types that must exist before a spot node is replaced by another spot node.",
        default=15,
        wire_default=15,
        minimum=1,
        maximum=100,
        format="int32",
    )
    max_share: str = field(
        "Most of the governed capacity that may be spot, in percent of its vCPUs.",
        default="100%",
        wire_default="100%",
        pattern=r"^(100|[0-9]{1,2})%$",
    )


@attrs.frozen(kw_only=True)
class ZoneBalance(Wire):
    """A soft balance over zones of pods that may go anywhere."""

    max_skew_percent: int = field(
        "Most that the fullest zone may hold above the emptiest, in percent of the governed capacity.",
        minimum=0,
        maximum=100,
        format="int32",
    )


@attrs.frozen(kw_only=True)
class HeadroomResources(Wire):
    """Resources of one virtual pod."""

    requests: Mapping[str, Quantity] = mapping(
        "Requests of one virtual pod.", required=True, merge={"minProperties": 1}
    )


@attrs.frozen(kw_only=True)
class HeadroomPod(Wire):
    """The virtual pod that room is kept for."""

    resources: HeadroomResources = field("Resources of one virtual pod.")


@attrs.frozen(kw_only=True)
class Headroom(Wire):
    """Room kept free for pods that are not there yet, counted in virtual pods."""

    name: str = field("Name of the headroom, unique in the config.", min_length=1, max_length=63)
    replicas: int | None = field(
        "Number of virtual pods.", default=None, minimum=0, maximum=10000, format="int32"
    )
    percent: int | None = field(
        "Room in percent of what the pods on the governed nodes request, in whole virtual pods, rounded up.",
        default=None,
        minimum=1,
        maximum=100,
        format="int32",
    )
    pod_template: HeadroomPod = field("The virtual pod.")
    requirements: tuple[RequirementSpec, ...] = requirements(
        "Where the room must be, as a pod's node affinity would say.", allow_nodepool=True, required=False
    )
    schedule: str | None = field(
        "When the room is kept: five cron fields or a macro such as @daily, in UTC. Always when left out. "
        "Needs duration.",
        default=None,
        pattern=r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$",
    )
    duration: Duration | None = field(
        "How long each window lasts. Needs schedule.", default=None, pattern=BUDGET_DURATION_PATTERN
    )


_HEADROOM_RULES: Final = (
    Rule(
        cel="self.all(x, has(x.replicas) != has(x.percent))",
        message="a headroom is sized by exactly one of replicas and percent; give one",
    ),
    Rule(
        cel="self.all(x, has(x.schedule) == has(x.duration))",
        message="a headroom has only one of schedule and duration; give both or neither",
    ),
)


@attrs.frozen(kw_only=True)
class MinSavings(Wire):
    """Savings below which a consolidation is not worth it; all that are given must be reached."""

    percent: int | None = field(
        "Share of the present price that must be saved.", default=None, minimum=0, maximum=100, format="int32"
    )
    per_hour: float | None = field("USD an hour that must be saved.", default=None, minimum=0)
    payback_period: Duration | None = field(
        "Time within which the savings must pay for the double running of old and new nodes.",
        default=None,
        pattern=PLAIN_DURATION_PATTERN,
    )


@attrs.frozen(kw_only=True)
class ConfigDisruption(Wire):
    """How readily nodes are disrupted to save money."""

    min_savings: MinSavings | None = field(
        "Savings below which a consolidation is not worth it.", default=None
    )
    cooldown: Duration = field(
        "Quiet time in a governed pool after a command there.",
        default=Duration("0s"),
        wire_default="0s",
        pattern=PLAIN_DURATION_PATTERN,
    )


@attrs.frozen(kw_only=True)
class Rollout(Wire):
    """How nodes follow a changed template."""

    delay: Duration = field(
        "How long after a change nodes begin to be replaced.",
        default=Duration("0s"),
        wire_default="0s",
        pattern=PLAIN_DURATION_PATTERN,
    )
    canary: int | None = field(
        "Nodes replaced first, which must be ready before the rest follows.",
        default=None,
        minimum=1,
        maximum=1000,
        format="int32",
    )
    pause_on_failure: bool | None = field(
        "Whether replacements that fail to register stop the rollout.", default=None
    )
    static_drift: StaticDriftOrder = field(
        "What goes first in a NodePool with replicas that is at its limit of nodes: SurgeFirst waits for "
        "room for the replacement, as Karpenter does; DeleteFirst deletes one node, then makes another.",
        default=StaticDriftOrder.SURGE_FIRST,
        wire_default="SurgeFirst",
    )


@attrs.frozen(kw_only=True)
class SchedulingConfigSpec(Wire):
    """How scheduling behaves for the governed pools."""

    node_class_ref: NodeClassRef = field("The node class whose NodePools are governed.")
    node_pool_selector: LabelSelector | None = field(
        "Narrows the governed NodePools to those with these labels; all when left out.", default=None
    )
    requirements: tuple[RequirementSpec, ...] = requirements(
        "Intersected with the requirements of each governed pool; a pool left with nothing is not used.",
        required=False,
        rules=(MIN_VALUES_RULE,),
    )
    preference_policy: PreferencePolicy | None = field(
        "Whether preferences of pods count; the controller's setting when left out.", default=None
    )
    min_values_policy: MinValuesPolicy | None = field(
        "Whether minValues may be lowered when it cannot be met; the controller's setting when left out.",
        default=None,
    )
    limits: Mapping[str, Quantity] = mapping(
        "Ceilings shared by all governed pools, by resource; the name nodes counts nodes. Never exceeded."
    )
    packing: Packing = field("How pods are put onto new nodes.", default=Packing())
    node_cost: float = field(
        "USD an hour that each node costs beside its instance: licences, agents, root volume.",
        default=0,
        minimum=0,
    )
    spot: SpotPolicy = field("Bounds on the use of spot capacity.", default=SpotPolicy())
    zone_balance: ZoneBalance | None = field(
        "Soft balance over zones of pods that may go anywhere; off when left out.", default=None
    )
    headroom: tuple[Headroom, ...] = items(
        "Room kept free for pods that are not there yet.",
        max_items=20,
        list_type="map",
        list_map_keys=("name",),
        rules=_HEADROOM_RULES,
    )
    disruption: ConfigDisruption = field(
        "How readily nodes are disrupted to save money.", default=ConfigDisruption()
    )
    rollout: Rollout | None = field("How nodes follow a changed template.", default=None)
    drift_ignore: tuple[DriftSource, ...] = items(
        "What is not treated as drift.", max_items=20, list_type="set"
    )


@attrs.frozen(kw_only=True)
class SchedulingConfigStatus(Wire):
    """Whom the config governs."""

    node_pools: tuple[str, ...] = items("Names of the governed NodePools, sorted.")
    conditions: tuple[Condition, ...] = items(
        "Ready; False with reason Conflict when an older config governs one of the pools."
    )


@attrs.frozen(kw_only=True)
class SchedulingConfig(Kind):
    """Scheduling behaviour shared by the NodePools of one node class."""

    INFO: ClassVar[KindInfo] = KindInfo(
        group=labels.GROUP,
        version="v1",
        kind="SchedulingConfig",
        plural="schedulingconfigs",
        description="Scheduling behaviour shared by the NodePools of one node class.",
        columns=(
            Column(name="NodeClass", type="string", path=".spec.nodeClassRef.name"),
            Column(name="Objective", type="string", path=".spec.packing.objective"),
            Column(name="Ready", type="string", path='.status.conditions[?(@.type=="Ready")].status'),
            Column(name="Age", type="date", path=".metadata.creationTimestamp"),
            Column(name="NodePools", type="string", path=".status.nodePools", wide=True),
        ),
    )
    DEPENDENTS: ClassVar[tuple[str, ...]] = ()

    spec: SchedulingConfigSpec = field("How scheduling behaves for the governed pools.")
    status: SchedulingConfigStatus = field("Whom the config governs.", default=SchedulingConfigStatus())

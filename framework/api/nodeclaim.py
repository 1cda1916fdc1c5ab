"""NodeClaim: a request for one node, from plan to instance (core/api §4).

Called by provisioning, the claim's lifecycle and everything that reads nodes. Owns shape, defaults and
admission rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

import attrs

from framework.api import labels
from framework.api.conditions import Condition
from framework.api.duration import NILLABLE_DURATION_PATTERN, PLAIN_DURATION_PATTERN, Duration
from framework.api.metadata import Kind
from framework.api.nodepool import DEFAULT_EXPIRE_AFTER
from framework.api.quantity import Quantity
from framework.api.requirement_spec import (
    MIN_VALUES_RULE,
    NodeClassRef,
    RequirementSpec,
    Taint,
    requirements,
)
from framework.api.schema import Column, KindInfo, Rule, field, items, mapping
from framework.api.wire import Wire

__all__ = [
    "ClaimCondition",
    "NodeClaim",
    "NodeClaimResources",
    "NodeClaimSpec",
    "NodeClaimStatus",
]


class ClaimCondition(StrEnum):
    """The types of condition that a claim may carry."""

    LAUNCHED = "Launched"
    REGISTERED = "Registered"
    INITIALIZED = "Initialized"
    READY = "Ready"
    CONSOLIDATABLE = "Consolidatable"
    DRIFTED = "Drifted"
    CONSISTENT_STATE_FOUND = "ConsistentStateFound"
    DISRUPTION_REASON = "DisruptionReason"
    DRAINED = "Drained"
    VOLUMES_DETACHED = "VolumesDetached"
    INSTANCE_TERMINATING = "InstanceTerminating"
    VALIDATION_SUCCEEDED = "ValidationSucceeded"


@attrs.frozen(kw_only=True)
class NodeClaimResources(Wire):
    """Resources that the instance must offer."""

    requests: Mapping[str, Quantity] = mapping(
        "Least resources of the instance: the pods planned on it and the overhead of its DaemonSets."
    )


@attrs.frozen(kw_only=True)
class NodeClaimSpec(Wire):
    """What the node must be; never changes."""

    requirements: tuple[RequirementSpec, ...] = requirements(
        "What labels the node may have, and with them instance type, zone and capacity type.",
        allow_nodepool=True,
        rules=(MIN_VALUES_RULE,),
    )
    resources: NodeClaimResources = field(
        "Resources that the instance must offer.", default=NodeClaimResources()
    )
    node_class_ref: NodeClassRef | None = field(
        "The node class that describes the machine; that of the pool named by the label "
        "karpenter.sh/nodepool when left out.",
        default=None,
    )
    taints: tuple[Taint, ...] = items("Taints of the node.")
    startup_taints: tuple[Taint, ...] = items("Taints that the node starts with and something else removes.")
    expire_after: Duration | None = field(
        "Age at which the node is replaced; Never keeps it whatever its age.",
        default=DEFAULT_EXPIRE_AFTER,
        wire_default="720h",
        pattern=NILLABLE_DURATION_PATTERN,
    )
    termination_grace_period: Duration | None = field(
        "Longest time the node may drain, counted from its deletion; without it draining may take for ever.",
        default=None,
        pattern=PLAIN_DURATION_PATTERN,
    )


SPEC_RULES: Final = (
    Rule(cel="self == oldSelf", message="the spec of a NodeClaim cannot change; delete it and make another"),
)


@attrs.frozen(kw_only=True)
class NodeClaimStatus(Wire):
    """What has become of the request."""

    node_name: str | None = field("Name of the node, once registered.", default=None)
    provider_id: str | None = field("The instance, once launched.", default=None, name="providerID")
    image_id: str | None = field("The machine image of the instance.", default=None, name="imageID")
    capacity: Mapping[str, Quantity] = mapping("All resources of the instance, as estimated at launch.")
    allocatable: Mapping[str, Quantity] = mapping("What pods may use of them, as estimated at launch.")
    last_pod_event_time: datetime | None = field(
        "When a pod last came or went, to within 10 seconds.", default=None
    )
    conditions: tuple[Condition, ...] = items(
        "How far the claim has come and what is about to happen to it.",
        merge={
            "items": {
                "required": ["lastTransitionTime", "status", "type"],
                "properties": {
                    "reason": {"minLength": None, "pattern": r"^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$"}
                },
            }
        },
    )


@attrs.frozen(kw_only=True)
class NodeClaim(Kind):
    """A request for one node."""

    INFO: ClassVar[KindInfo] = KindInfo(
        group=labels.GROUP,
        version="v1",
        kind="NodeClaim",
        plural="nodeclaims",
        description="A request for one node, made by the controller for a NodePool or by hand.",
        columns=(
            Column(name="Type", type="string", path=r".metadata.labels.node\.kubernetes\.io/instance-type"),
            Column(name="Capacity", type="string", path=r".metadata.labels.karpenter\.sh/capacity-type"),
            Column(name="Zone", type="string", path=r".metadata.labels.topology\.kubernetes\.io/zone"),
            Column(name="Node", type="string", path=".status.nodeName"),
            Column(name="Ready", type="string", path='.status.conditions[?(@.type=="Ready")].status'),
            Column(name="Age", type="date", path=".metadata.creationTimestamp"),
            Column(name="ImageID", type="string", path=".status.imageID", wide=True),
            Column(name="ID", type="string", path=".status.providerID", wide=True),
            Column(
                name="NodePool", type="string", path=r".metadata.labels.karpenter\.sh/nodepool", wide=True
            ),
            Column(name="NodeClass", type="string", path=".spec.nodeClassRef.name", wide=True),
            Column(
                name="Drifted",
                type="string",
                path='.status.conditions[?(@.type=="Drifted")].status',
                wide=True,
            ),
        ),
    )
    DEPENDENTS: ClassVar[tuple[str, ...]] = (
        ClaimCondition.LAUNCHED,
        ClaimCondition.REGISTERED,
        ClaimCondition.INITIALIZED,
    )

    spec: NodeClaimSpec = field("What the node must be; never changes.", rules=SPEC_RULES)
    status: NodeClaimStatus = field("What has become of the request.", default=NodeClaimStatus())

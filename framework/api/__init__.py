"""Every kind of Charpente as frozen classes: the one source of CRDs, defaults, parsing and checks.

Used by all packages. Imports neither Pulumi nor a Kubernetes client, and does no I/O.
"""

from __future__ import annotations

from framework.api.conditions import Condition, ConditionSet, ConditionStatus
from framework.api.duration import Duration, format_duration, parse_duration
from framework.api.errors import CharpenteError, InvalidField, UserError
from framework.api.metadata import Kind, ObjectMeta, OwnerReference
from framework.api.nodeclaim import (
    ClaimCondition,
    NodeClaim,
    NodeClaimResources,
    NodeClaimSpec,
    NodeClaimStatus,
)
from framework.api.nodepool import (
    Budget,
    ConsolidationPolicy,
    Disruption,
    DisruptionReason,
    NodePool,
    NodePoolSpec,
    NodePoolStatus,
    NodePoolTemplate,
    NodePoolTemplateMetadata,
    NodePoolTemplateSpec,
)
from framework.api.quantity import Quantity, format_resources, parse_quantity, parse_resources
from framework.api.requirement_spec import NodeClassRef, Operator, RequirementSpec, Taint, TaintEffect

__all__ = [
    "Budget",
    "CharpenteError",
    "ClaimCondition",
    "Condition",
    "ConditionSet",
    "ConditionStatus",
    "ConsolidationPolicy",
    "Disruption",
    "DisruptionReason",
    "Duration",
    "InvalidField",
    "Kind",
    "NodeClaim",
    "NodeClaimResources",
    "NodeClaimSpec",
    "NodeClaimStatus",
    "NodeClassRef",
    "NodePool",
    "NodePoolSpec",
    "NodePoolStatus",
    "NodePoolTemplate",
    "NodePoolTemplateMetadata",
    "NodePoolTemplateSpec",
    "ObjectMeta",
    "Operator",
    "OwnerReference",
    "Quantity",
    "RequirementSpec",
    "Taint",
    "TaintEffect",
    "UserError",
    "format_duration",
    "format_resources",
    "parse_duration",
    "parse_quantity",
    "parse_resources",
]

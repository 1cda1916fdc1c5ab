"""CapacityBuffer: room kept free, asked for through the autoscaling API (core/api §6, gate CapacityBuffer).

Called by provisioning, which turns buffers into virtual pods. Owns shape and admission rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import attrs

from framework.api.conditions import Condition
from framework.api.metadata import Kind
from framework.api.quantity import Quantity
from framework.api.schema import Column, KindInfo, Rule, field, items, mapping
from framework.api.wire import Wire

__all__ = [
    "ACTIVE_CAPACITY",
    "CapacityBuffer",
    "CapacityBufferSpec",
    "CapacityBufferStatus",
    "PodTemplateRef",
    "ScalableRef",
]

ACTIVE_CAPACITY: Final = "buffer.x-k8s.io/active-capacity"
"""The only provisioning strategy: nodes that run and wait."""


@attrs.frozen(kw_only=True)
class PodTemplateRef(Wire):
    """Names a PodTemplate in the same namespace."""

    name: str = field("Name of the PodTemplate.", min_length=1)


@attrs.frozen(kw_only=True)
class ScalableRef(Wire):
    """Names a workload in the same namespace, whose pods are the measure."""

    api_group: str | None = field("API group of the workload; apps when left out.", default=None)
    kind: str = field("Deployment, StatefulSet or ReplicaSet.", min_length=1)
    name: str = field("Name of the workload.", min_length=1)


@attrs.frozen(kw_only=True)
class CapacityBufferSpec(Wire):
    """How much room, in pods of what shape."""

    provisioning_strategy: str = field(
        "How the room is provided; only active capacity is known.",
        default=ACTIVE_CAPACITY,
        wire_default=ACTIVE_CAPACITY,
    )
    pod_template_ref: PodTemplateRef | None = field("Shape of the pods, as a PodTemplate.", default=None)
    scalable_ref: ScalableRef | None = field("Shape of the pods, as those of a workload.", default=None)
    replicas: int | None = field("Number of pods.", default=None, minimum=0, format="int32")
    percentage: int | None = field(
        "Number of pods in percent of the workload's replicas.", default=None, minimum=0, format="int32"
    )
    limits: Mapping[str, Quantity] = mapping("Ceilings on the room, by resource.")


SPEC_RULES: Final = (
    Rule(
        cel="!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
        message="a buffer of a PodTemplate needs a size; set replicas or limits",
    ),
    Rule(
        cel="!has(self.podTemplateRef) || !has(self.scalableRef)",
        message="podTemplateRef and scalableRef exclude each other; keep one",
    ),
)


@attrs.frozen(kw_only=True)
class CapacityBufferStatus(Wire):
    """What the buffer came to."""

    pod_template_ref: PodTemplateRef | None = field("The PodTemplate in use.", default=None)
    pod_template_generation: int | None = field(
        "Generation of that PodTemplate.", default=None, format="int64"
    )
    replicas: int | None = field("Number of pods that room is kept for.", default=None, format="int32")
    provisioning_strategy: str | None = field("The strategy in use.", default=None)
    conditions: tuple[Condition, ...] = items(
        "ReadyForProvisioning, Provisioning.", list_type="map", list_map_keys=("type",)
    )


@attrs.frozen(kw_only=True)
class CapacityBuffer(Kind):
    """Room kept free for pods that are not there yet."""

    INFO: ClassVar[KindInfo] = KindInfo(
        group="autoscaling.x-k8s.io",
        version="v1beta1",
        kind="CapacityBuffer",
        plural="capacitybuffers",
        short_names=("cb",),
        categories=("autoscaling",),
        scope="Namespaced",
        description="Room kept free for pods that are not there yet.",
        gate="CapacityBuffer",
        columns=(
            Column(name="Strategy", type="string", path=".spec.provisioningStrategy"),
            Column(name="PodTemplate", type="string", path=".status.podTemplateRef.name"),
            Column(name="Replicas", type="integer", path=".status.replicas"),
            Column(name="ConditionsType", type="string", path=".status.conditions[*].type"),
            Column(name="ConditionsStatus", type="string", path=".status.conditions[*].status"),
            Column(name="ConditionsReason", type="string", path=".status.conditions[*].reason"),
            Column(name="Age", type="date", path=".metadata.creationTimestamp"),
        ),
    )
    DEPENDENTS: ClassVar[tuple[str, ...]] = ()

    spec: CapacityBufferSpec = field("How much room, in pods of what shape.", rules=SPEC_RULES)
    status: CapacityBufferStatus = field("What the buffer came to.", default=CapacityBufferStatus())

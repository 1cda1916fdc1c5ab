"""From instances to the core's `Instance` (spec aws/launch §2, §10, aws/instances §2).

Called by the provider. Pure: what EC2 said and what the type is, as labels, resources and annotations.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from controller.cloud.aws.capacity import EFA
from controller.cloud.aws.gateway.records import InstanceRecord
from controller.cloud.aws.launcher import Launched
from controller.cloud.aws.providerid import provider_id
from controller.cloud.provider import Instance
from controller.scheduling import CapacityType, InstanceType, Resources
from framework.api import EC2NODECLASS_HASH_VERSION, labels
from framework.api.ec2nodeclass import EC2NodeClass, ReservationType
from framework.api.hashes import ec2nodeclass_document

__all__ = ["adopted", "capacity_type_of", "launched", "listed"]

_NOT_COPIED: Final = frozenset({labels.CAPACITY_RESERVATION_ID, labels.CAPACITY_RESERVATION_TYPE})
_ENDING: Final = frozenset({"shutting-down", "terminated"})


def capacity_type_of(record: InstanceRecord, *, reserved_capacity: bool) -> CapacityType:
    """Return how an instance is paid for; one that fell into an open reservation is on-demand."""
    if record.spot:
        return CapacityType.SPOT
    if reserved_capacity and record.reservation_id and record.reservations_only:
        return CapacityType.RESERVED
    return CapacityType.ON_DEMAND


def _annotations(node_class: EC2NodeClass) -> dict[str, str]:
    document = ec2nodeclass_document(node_class)
    found = {
        labels.NODECLASS_HASH: document.hash,
        labels.NODECLASS_HASH_DOCUMENT: document.text,
        labels.NODECLASS_HASH_VERSION: EC2NODECLASS_HASH_VERSION,
    }
    if node_class.status.instance_profile:
        found[labels.INSTANCE_PROFILE_NAME] = node_class.status.instance_profile
    return found


def _type_labels(instance_type: InstanceType) -> dict[str, str]:
    found = instance_type.requirements.labels()
    return {key: value for key, value in found.items() if key not in _NOT_COPIED}


def _zone_labels(node_class: EC2NodeClass, zone: str) -> dict[str, str]:
    zone_id = next((item.zone_id for item in node_class.status.subnets if item.zone == zone), None)
    return {labels.ZONE: zone, **({labels.ZONE_ID: zone_id} if zone_id else {})}


def _resources(amounts: Resources, *, efa: bool) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount and (efa or name != EFA)}


def launched(result: Launched, node_class: EC2NodeClass, pool: str, now: datetime) -> Instance:
    """Return a fresh launch."""
    reservation: Mapping[str, str] = {}
    if result.reservation_id is not None:
        reservation = {
            labels.CAPACITY_RESERVATION_ID: result.reservation_id,
            labels.CAPACITY_RESERVATION_TYPE: result.reservation_type or ReservationType.DEFAULT.value,
        }
    zone = result.instance.zone
    return Instance(
        provider_id=provider_id(zone, result.instance.id),
        image_id=result.instance.image_id,
        capacity=_resources(result.instance_type.capacity, efa=result.efa),
        allocatable=_resources(result.instance_type.allocatable, efa=result.efa),
        labels={
            **_type_labels(result.instance_type),
            **_zone_labels(node_class, zone),
            labels.CAPACITY_TYPE: result.capacity_type.value,
            labels.INSTANCE_TENANCY: result.tenancy,
            **({labels.NODEPOOL: pool} if pool else {}),
            **reservation,
        },
        annotations=_annotations(node_class),
        created=now,
    )


def listed(record: InstanceRecord, *, reserved_capacity: bool) -> Instance:
    """Return an instance that was read, without what only its class could tell."""
    capacity_type = capacity_type_of(record, reserved_capacity=reserved_capacity)
    found = {
        labels.INSTANCE_TYPE: record.instance_type,
        labels.ZONE: record.zone,
        labels.CAPACITY_TYPE: capacity_type.value,
        labels.INSTANCE_TENANCY: record.tenancy,
        labels.ZONE_ID: record.zone_id,
        labels.NODEPOOL: record.tags.get(labels.NODEPOOL, ""),
    }
    if capacity_type is CapacityType.RESERVED:
        block = ReservationType.CAPACITY_BLOCK if record.capacity_block else ReservationType.DEFAULT
        found[labels.CAPACITY_RESERVATION_ID] = record.reservation_id
        found[labels.CAPACITY_RESERVATION_TYPE] = block.value
    return Instance(
        provider_id=provider_id(record.zone, record.id),
        image_id=record.image_id,
        capacity={},
        allocatable={},
        labels={key: value for key, value in found.items() if value},
        annotations={},
        created=record.launched,
        tags=record.tags,
        deleting=record.state in _ENDING,
    )


def adopted(
    record: InstanceRecord, instance_type: InstanceType, node_class: EC2NodeClass, *, reserved_capacity: bool
) -> Instance:
    """Return an instance found again after its launch's answer was lost, as if just launched."""
    base = listed(record, reserved_capacity=reserved_capacity)
    efa = record.efa_interfaces > 0
    return Instance(
        provider_id=base.provider_id,
        image_id=base.image_id,
        capacity=_resources(instance_type.capacity, efa=efa),
        allocatable=_resources(instance_type.allocatable, efa=efa),
        labels={**_type_labels(instance_type), **_zone_labels(node_class, record.zone), **base.labels},
        annotations=_annotations(node_class),
        created=base.created,
        tags=base.tags,
    )

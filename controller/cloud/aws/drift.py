"""Whether an instance still is what its class asks for (spec aws/ec2nodeclass §7).

Called by the provider's `drift_reason`. Pure: the claim, its class and its instance in, a reason out.
"""

from __future__ import annotations

from enum import StrEnum

from controller.cloud.aws.answers import capacity_type_of
from controller.cloud.aws.gateway.records import InstanceRecord
from controller.cloud.aws.images import image_for
from controller.cloud.provider import CloudError
from controller.scheduling import CapacityType, InstanceType
from framework.api import NodeClaim, labels
from framework.api.ec2nodeclass import EC2NodeClass

__all__ = ["DriftReason", "image_drift", "instance_drift", "static_drift"]


class DriftReason(StrEnum):
    """The provider's drift reasons."""

    NODE_CLASS = "NodeClassDrift"
    AMI = "AMIDrift"
    SECURITY_GROUP = "SecurityGroupDrift"
    SUBNET = "SubnetDrift"
    CAPACITY_RESERVATION = "CapacityReservationDrift"


def static_drift(claim: NodeClaim, node_class: EC2NodeClass) -> DriftReason | None:
    """Compare the hashes, when both objects have them in the same version."""
    ours, theirs = claim.metadata.annotations, node_class.metadata.annotations
    versions = ours.get(labels.NODECLASS_HASH_VERSION), theirs.get(labels.NODECLASS_HASH_VERSION)
    hashes = ours.get(labels.NODECLASS_HASH), theirs.get(labels.NODECLASS_HASH)
    if None in versions or None in hashes or versions[0] != versions[1] or hashes[0] == hashes[1]:
        return None
    return DriftReason.NODE_CLASS


def image_drift(
    claim: NodeClaim, node_class: EC2NodeClass, instance_type: InstanceType | None
) -> DriftReason | None:
    """Compare the claim's image with the one its type would boot now.

    Raises: CloudError when the type is not sold any more or the claim has no image.
    """
    name = claim.metadata.name
    if instance_type is None:
        kind = claim.metadata.labels.get(labels.INSTANCE_TYPE, "")
        raise CloudError(f"NodeClaim/{name}: instance type {kind!r} is not offered, drift is not known")
    if not claim.status.image_id:
        raise CloudError(f"NodeClaim/{name}: status.imageID is empty, drift is not known")
    mapped = image_for(node_class.status.amis, instance_type.requirements)
    return None if mapped is not None and mapped.id == claim.status.image_id else DriftReason.AMI


def instance_drift(
    record: InstanceRecord, node_class: EC2NodeClass, *, reserved_capacity: bool
) -> DriftReason | None:
    """Compare the instance's groups, subnet and reservation with what the class resolved to.

    Raises: CloudError while the class has none of them.
    """
    status, name = node_class.status, node_class.metadata.name
    if not status.security_groups or not status.subnets:
        raise CloudError(f"EC2NodeClass/{name} has no security groups or subnets, drift is not known")
    if {group.id for group in status.security_groups} != set(record.security_groups):
        return DriftReason.SECURITY_GROUP
    if record.subnet not in {subnet.id for subnet in status.subnets}:
        return DriftReason.SUBNET
    reserved = capacity_type_of(record, reserved_capacity=reserved_capacity) is CapacityType.RESERVED
    if reserved and record.reservation_id not in {item.id for item in status.capacity_reservations}:
        return DriftReason.CAPACITY_RESERVATION
    return None

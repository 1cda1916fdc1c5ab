"""Whether an instance still is what its class asks for, and what differs (spec aws/ec2nodeclass §7).

Called by the provider's `drift`. Pure: the claim, its class and its instance in, a verdict out.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from controller.cloud.aws.answers import capacity_type_of
from controller.cloud.aws.gateway.records import InstanceRecord
from controller.cloud.aws.images import image_for
from controller.cloud.provider import CloudError, Drifted
from controller.scheduling import CapacityType, InstanceType
from framework.api import NodeClaim, labels
from framework.api.ec2nodeclass import EC2NodeClass
from framework.api.hashes import ec2nodeclass_document, what_changed
from framework.api.schedulingconfig import DriftSource

__all__ = ["DriftReason", "image_drift", "instance_drift", "static_drift"]


class DriftReason(StrEnum):
    """The provider's drift reasons."""

    NODE_CLASS = "NodeClassDrift"
    AMI = "AMIDrift"
    SECURITY_GROUP = "SecurityGroupDrift"
    SUBNET = "SubnetDrift"
    CAPACITY_RESERVATION = "CapacityReservationDrift"


def static_drift(claim: NodeClaim, node_class: EC2NodeClass) -> Drifted | None:
    """Compare the hashes, when both objects have them in the same version; the documents say what changed."""
    ours, theirs = claim.metadata.annotations, node_class.metadata.annotations
    versions = ours.get(labels.NODECLASS_HASH_VERSION), theirs.get(labels.NODECLASS_HASH_VERSION)
    hashes = ours.get(labels.NODECLASS_HASH), theirs.get(labels.NODECLASS_HASH)
    if None in versions or None in hashes or versions[0] != versions[1] or hashes[0] == hashes[1]:
        return None
    words = what_changed(ours.get(labels.NODECLASS_HASH_DOCUMENT), ec2nodeclass_document(node_class))
    return Drifted(reason=DriftReason.NODE_CLASS, message=f"EC2NodeClass {node_class.name}: {words}")


def image_drift(
    claim: NodeClaim, node_class: EC2NodeClass, instance_type: InstanceType | None
) -> Drifted | None:
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
    if mapped is not None and mapped.id == claim.status.image_id:
        return None
    now = mapped.id if mapped is not None else "none for its type"
    return Drifted(reason=DriftReason.AMI, message=f"image: {claim.status.image_id} → {now}")


def instance_drift(
    record: InstanceRecord,
    node_class: EC2NodeClass,
    *,
    reserved_capacity: bool,
    ignored: frozenset[DriftSource] = frozenset(),
) -> Drifted | None:
    """Compare the instance's groups, subnet and reservation with what the class resolved to.

    Raises: CloudError while the class has none of them.
    """
    status, name = node_class.status, node_class.metadata.name
    if not status.security_groups or not status.subnets:
        raise CloudError(f"EC2NodeClass/{name} has no security groups or subnets, drift is not known")
    groups, subnets = {group.id for group in status.security_groups}, {each.id for each in status.subnets}
    actual = set(record.security_groups)
    fits = groups <= actual if DriftSource.EXTRA_SECURITY_GROUPS in ignored else groups == actual
    if DriftSource.SECURITY_GROUPS not in ignored and not fits:
        words = f"security groups: {_listed(record.security_groups)} → {_listed(groups)}"
        return Drifted(reason=DriftReason.SECURITY_GROUP, message=words)
    if DriftSource.SUBNETS not in ignored and record.subnet not in subnets:
        words = f"subnet: {record.subnet} → one of {_listed(subnets)}"
        return Drifted(reason=DriftReason.SUBNET, message=words)
    reserved = capacity_type_of(record, reserved_capacity=reserved_capacity) is CapacityType.RESERVED
    selected = {item.id for item in status.capacity_reservations}
    if DriftSource.CAPACITY_RESERVATIONS in ignored or not reserved or record.reservation_id in selected:
        return None
    words = f"capacity reservation: {record.reservation_id} → one of {_listed(selected)}"
    return Drifted(reason=DriftReason.CAPACITY_RESERVATION, message=words)


def _listed(ids: Iterable[str]) -> str:
    return ", ".join(sorted(ids)) or "none"

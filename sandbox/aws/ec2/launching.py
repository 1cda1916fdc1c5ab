"""Making instances: what CreateFleet, RunInstances and node groups have in common.

`check` refuses what EC2 would refuse, `launch` makes moto's instance with everything a launch template says
applied to it, and schedules its start. Callers choose the pool and count; nothing here knows prices.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from moto.core.types import Base64EncodedString
from moto.ec2.models.block_device import BlockDeviceType
from moto.ec2.models.elastic_block_store import VolumeAttachment
from moto.ec2.models.instances import Instance, InstanceState, Reservation
from moto.ec2.utils import random_reservation_id, random_spot_request_id

from sandbox.aws.ec2 import profiles, reservations, states
from sandbox.aws.ec2.records import CapacityReservation, InstanceRecord
from sandbox.aws.errors import AwsError
from sandbox.aws.market import is_offered, supported_architectures
from sandbox.aws.world import World

__all__ = ["Launch", "check", "launch", "merged"]

DEFAULT_ROOT_GIB = 8
"""Size of a root volume that neither the request nor the image says anything about."""


@attrs.frozen(kw_only=True)
class Launch:
    """One kind of instance to make, everything resolved."""

    region: str
    instance_type: str
    image_id: str
    zone: str
    subnet: Any
    """moto's subnet, None to take the default subnet of the zone."""
    capacity_type: str
    """"on-demand", "spot" or "capacity-block"."""
    data: Mapping[str, Any] = attrs.field(factory=dict)
    """Launch template data with the request laid over it, boto3 shape."""
    tags: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    """Resource type → tags."""
    client_token: str | None = None

    @property
    def interfaces(self) -> Sequence[Mapping[str, Any]]:
        """The network interfaces asked for, the primary one first; one plain interface when none were."""
        asked = self.data.get("NetworkInterfaces") or [{"DeviceIndex": 0}]
        return sorted(
            asked, key=lambda n: (int(n.get("NetworkCardIndex") or 0), int(n.get("DeviceIndex") or 0))
        )

    @property
    def group_ids(self) -> Sequence[str]:
        """Security groups of the primary interface."""
        return self.interfaces[0].get("Groups") or self.data.get("SecurityGroupIds") or ()


def merged(template: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a request over launch template data: what the request sets wins, member by member."""
    return {**template, **{key: value for key, value in request.items() if value not in (None, [], {}, "")}}


def check(world: World, backend: Any, wanted: Launch) -> CapacityReservation | None:
    """Refuse a launch as EC2 would; return the capacity reservation it will use, if any.

    Raises AwsError with EC2's code: unknown type, type not in the zone, unknown image, architecture,
    security group, network, instance profile, reservation.
    """
    architectures = supported_architectures(wanted.instance_type)
    if architectures is None:
        raise AwsError("InvalidParameterValue", f"Invalid value '{wanted.instance_type}' for InstanceType.")
    if not is_offered(wanted.region, wanted.instance_type, wanted.zone):
        raise AwsError(
            "Unsupported",
            f"Your requested instance type ({wanted.instance_type}) is not supported in your requested "
            f"Availability Zone ({wanted.zone}).",
        )
    image = backend.amis.get(wanted.image_id)
    if image is None:
        raise AwsError("InvalidAMIID.NotFound", f"The image id '[{wanted.image_id}]' does not exist")
    if image.architecture not in architectures:
        raise AwsError(
            "InvalidParameterValue",
            f"The architecture '{','.join(architectures)}' of the specified instance type does not match the "
            f"architecture '{image.architecture}' of the specified AMI.",
        )
    _check_groups(backend, wanted)
    profiles.resolve(wanted.data.get("IamInstanceProfile"))
    _check_spot_role(world, wanted)
    return reservations.choose(world, wanted)


def _check_groups(backend: Any, wanted: Launch) -> None:
    for group_id in wanted.group_ids:
        group = backend.get_security_group_from_id(group_id)
        if group is None:
            raise AwsError("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
        if wanted.subnet is not None and group.vpc_id != wanted.subnet.vpc_id:
            raise AwsError(
                "InvalidParameter",
                f"Security group {group_id} and subnet {wanted.subnet.id} belong to different networks.",
            )


def _check_spot_role(world: World, wanted: Launch) -> None:
    if world.spot_role_required and wanted.capacity_type == "spot" and not profiles.has_spot_role():
        raise AwsError(
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
            "The provided credentials do not have permission to create the service-linked role for EC2 Spot "
            "Instances.",
        )


def free_addresses(subnet: Any) -> int:
    """Return how many more interfaces fit in a subnet."""
    return int(subnet.available_ip_address_count)


def launch(
    world: World, backend: Any, wanted: Launch, count: int, one_reservation: bool = False
) -> list[Any]:
    """Make `count` instances that passed `check`; return moto's instances, state pending.

    Raises AwsError when the subnet has fewer free addresses (nothing is made then).
    """
    subnet = wanted.subnet or _default_subnet(backend, wanted.zone)
    if free_addresses(subnet) < count * len(wanted.interfaces):
        raise AwsError(
            "InsufficientFreeAddressesInSubnet",
            f"There are not enough free addresses in subnet '{subnet.id}' to satisfy the requested number of "
            "instances.",
        )
    reservation = None
    made = []
    for index in range(count):
        if reservation is None or not one_reservation:
            reservation = Reservation(random_reservation_id(), backend.account_id)
            backend.reservations[reservation.id] = reservation
        instance = _instance(world, backend, wanted, subnet, index)
        reservation.instances.append(instance)
        made.append(instance)
    return made


def _default_subnet(backend: Any, zone: str) -> Any:
    subnet = backend.get_default_subnets().get(zone)
    if subnet is None:
        raise AwsError("MissingInput", f"No default subnet for availability zone: '{zone}'.")
    return subnet


def _instance(world: World, backend: Any, wanted: Launch, subnet: Any, index: int) -> Any:
    data = wanted.data
    specifications = [_interface(wanted, subnet, place, raw) for place, raw in enumerate(wanted.interfaces)]
    user_data = data.get("UserData")
    instance = Instance(
        backend,
        wanted.image_id,
        Base64EncodedString(str(user_data)) if user_data else None,
        [],
        instance_type=wanted.instance_type,
        region_name=wanted.region,
        subnet_id=subnet.id,
        key_name=data.get("KeyName"),
        nics=[nic for nic, _ in specifications],
        associate_public_ip=wanted.interfaces[0].get("AssociatePublicIpAddress"),
        monitoring_state="enabled" if (data.get("Monitoring") or {}).get("Enabled") else "disabled",
        metadata_options=data.get("MetadataOptions") or {},
        ebs_optimized=bool(data.get("EbsOptimized")),
        ami_launch_index=index,
        client_token=wanted.client_token,
        lifecycle=None if wanted.capacity_type == "on-demand" else wanted.capacity_type,
    )
    instance.launch_time = world.utc_naive()
    instance._state = InstanceState("pending", 0)
    instance.security_groups = [backend.get_security_group_from_id(g) for g in wanted.group_ids]
    backend.tags[instance.id].update(wanted.tags.get("instance", {}))
    _add_volumes(backend, instance, wanted)
    world.instances[instance.id] = _record(world, instance, wanted, [raw for _, raw in specifications])
    for interface in instance.nics.values():
        backend.tags[interface.id].update(wanted.tags.get("network-interface", {}))
    states.schedule_start(world, instance)
    return instance


def _interface(
    wanted: Launch, subnet: Any, place: int, raw: Mapping[str, Any]
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return moto's specification of an interface (its device index is the place) and ours."""
    groups = raw.get("Groups") or wanted.data.get("SecurityGroupIds") or ()
    public = raw.get("AssociatePublicIpAddress")
    spec = {
        "DeviceIndex": place,
        "SubnetId": subnet.id,
        "Groups": list(groups),
        "Description": raw.get("Description") or "",
        "DeleteOnTermination": raw.get("DeleteOnTermination", True) is not False,
    }
    if public is not None:
        spec["AssociatePublicIpAddress"] = public
    return spec, {"NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "interface", **raw}


def _record(
    world: World, instance: Any, wanted: Launch, interfaces: Sequence[Mapping[str, Any]]
) -> InstanceRecord:
    placement = wanted.data.get("Placement") or {}
    profile = profiles.resolve(wanted.data.get("IamInstanceProfile"))
    specification = wanted.data.get("CapacityReservationSpecification") or {}
    record = InstanceRecord(
        region=wanted.region,
        capacity_type=wanted.capacity_type,
        tenancy=placement.get("Tenancy") or "default",
        placement_group=placement.get("GroupName") or None,
        profile=(profile.arn, profile.id) if profile else None,
        reservation_specification=specification,
        spot_request_id=random_spot_request_id() if wanted.capacity_type == "spot" else None,
        interfaces=dict(zip((n.id for n in instance.nics.values()), interfaces, strict=True)),
        client_token=wanted.client_token,
    )
    chosen = reservations.choose(world, wanted)
    if chosen is not None:
        chosen.used_by.add(instance.id)
        record.capacity_reservation_id = chosen.id
    if profile:
        profiles.associate(instance, profile)
    return record


def _add_volumes(backend: Any, instance: Any, wanted: Launch) -> None:
    image = backend.amis[wanted.image_id]
    mappings = [m for m in wanted.data.get("BlockDeviceMappings") or () if m.get("Ebs")]
    if image.root_device_name not in {m["DeviceName"] for m in mappings}:
        root = {"DeviceName": image.root_device_name, "Ebs": {"VolumeSize": DEFAULT_ROOT_GIB}}
        mappings = [root, *mappings]
    for mapping in mappings:
        ebs = mapping["Ebs"]
        volume = backend.create_volume(
            size=ebs.get("VolumeSize"),
            zone_name=wanted.zone,
            snapshot_id=ebs.get("SnapshotId"),
            encrypted=bool(ebs.get("Encrypted")),
            kms_key_id=ebs.get("KmsKeyId"),
            volume_type=ebs.get("VolumeType"),
            iops=ebs.get("Iops"),
            throughput=ebs.get("Throughput"),
        )
        delete = ebs.get("DeleteOnTermination", True) is not False
        _attach(instance, volume, mapping["DeviceName"], delete)
        backend.tags[volume.id].update(wanted.tags.get("volume", {}))


def _attach(instance: Any, volume: Any, device: str, delete_on_termination: bool) -> None:
    """Attach without moto's `attach_volume`, which looks the instance up among all of them."""
    volume.attachment = VolumeAttachment(volume, instance, device, "attached")
    instance.block_device_mapping[device] = BlockDeviceType(
        volume_id=volume.id,
        status=volume.status,
        size=volume.size,
        attach_time=instance.launch_time,
        delete_on_termination=delete_on_termination,
    )


def all_instances(backend: Any) -> list[Any]:
    """Return moto's instances of a region in order of launch."""
    return list(itertools.chain.from_iterable(list(r.instances) for r in list(backend.reservations.values())))

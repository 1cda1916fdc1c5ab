"""What DescribeInstances says of one instance, as a boto3-shaped value, and the values of its filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from sandbox.aws.ec2.actions import Fields
from sandbox.aws.ec2.records import InstanceRecord
from sandbox.aws.world import ACCOUNT, World

__all__ = ["described", "filter_fields", "state"]

_PLAIN = InstanceRecord(region="", capacity_type="on-demand")


def state(instance: Any) -> dict[str, Any]:
    """Return the state in wire form."""
    return {"Code": instance.state_code, "Name": instance.state}


def record_of(world: World, instance: Any) -> InstanceRecord:
    """Return our record of an instance, a plain one for an instance moto made by itself."""
    return world.instances.get(instance.id, _PLAIN)


def described(world: World, instance: Any, tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the instance as DescribeInstances shows it."""
    record = record_of(world, instance)
    primary = instance.nics.get(0)
    hardware = INSTANCE_TYPES.get(instance.instance_type, {})
    answer: dict[str, Any] = {
        "InstanceId": instance.id,
        "ImageId": instance.image_id,
        "State": state(instance),
        "PrivateDnsName": instance.private_dns_name if primary else "",
        "PublicDnsName": (instance.public_dns_name or "") if primary else "",
        "StateTransitionReason": instance._reason,
        "KeyName": instance.key_name,
        "AmiLaunchIndex": instance.ami_launch_index,
        "InstanceType": instance.instance_type,
        "LaunchTime": instance.launch_time,
        "Placement": _placement(instance, record),
        "Monitoring": {"State": instance.monitoring_state},
        "Architecture": instance.architecture,
        "RootDeviceType": "ebs",
        "RootDeviceName": instance.root_device_name,
        "BlockDeviceMappings": [
            _volume(n, device) for n, device in sorted(instance.block_device_mapping.items())
        ],
        "VirtualizationType": "hvm",
        "ClientToken": record.client_token or "",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "SecurityGroups": _groups(primary) if primary else [],
        "SourceDestCheck": True,
        "Hypervisor": hardware.get("Hypervisor", "xen"),
        "EbsOptimized": bool(instance.ebs_optimized),
        "EnaSupport": True,
        "MetadataOptions": _metadata(instance.metadata_options),
        "PlatformDetails": "Windows" if instance.platform == "windows" else "Linux/UNIX",
        "Platform": instance.platform,
        "InstanceLifecycle": None if record.capacity_type == "on-demand" else record.capacity_type,
        "SpotInstanceRequestId": record.spot_request_id,
        "CapacityReservationId": record.capacity_reservation_id,
        "CapacityReservationSpecification": _reservation(record),
        "IamInstanceProfile": {"Arn": record.profile[0], "Id": record.profile[1]} if record.profile else None,
        "CpuOptions": _cpus(hardware),
    }
    if instance.state_reason.code:
        answer["StateReason"] = {"Code": instance.state_reason.code, "Message": instance.state_reason.message}
    if primary:
        answer |= {
            "SubnetId": primary.subnet.id,
            "VpcId": primary.subnet.vpc_id,
            "PrivateIpAddress": primary.private_ip_address,
            "PublicIpAddress": primary.public_ip,
            "NetworkInterfaces": [_interface(n, record) for n in instance.nics.values()],
        }
    return answer


def _placement(instance: Any, record: InstanceRecord) -> dict[str, Any]:
    zone = instance.ec2_backend.get_zone_by_name(instance.availability_zone)
    return {
        "AvailabilityZone": instance.availability_zone,
        "AvailabilityZoneId": zone.zone_id if zone else None,
        "GroupName": record.placement_group or "",
        "Tenancy": record.tenancy,
    }


def _cpus(hardware: Mapping[str, Any]) -> dict[str, Any] | None:
    cpus = hardware.get("VCpuInfo")
    if not cpus or "DefaultCores" not in cpus:
        return None
    return {"CoreCount": cpus["DefaultCores"], "ThreadsPerCore": cpus.get("DefaultThreadsPerCore", 1)}


def _reservation(record: InstanceRecord) -> dict[str, Any]:
    target = (record.reservation_specification.get("CapacityReservationTarget") or {}).get(
        "CapacityReservationId"
    )
    answer: dict[str, Any] = {
        "CapacityReservationPreference": record.reservation_specification.get("CapacityReservationPreference")
        or ("capacity-reservations-only" if target else "open")
    }
    if target:
        answer["CapacityReservationTarget"] = {"CapacityReservationId": target}
    return answer


def _volume(device: str, block: Any) -> dict[str, Any]:
    return {
        "DeviceName": device,
        "Ebs": {
            "AttachTime": block.attach_time,
            "DeleteOnTermination": bool(block.delete_on_termination),
            "Status": "attached",
            "VolumeId": block.volume_id,
        },
    }


def _groups(interface: Any) -> list[dict[str, str]]:
    return [
        {"GroupId": group.id, "GroupName": group.name}
        for group in sorted(interface.group_set, key=lambda g: str(g.id))
    ]


def _metadata(options: Any) -> dict[str, Any]:
    return {
        "State": "applied",
        "HttpTokens": options.http_tokens,
        "HttpPutResponseHopLimit": options.http_put_response_hop_limit,
        "HttpEndpoint": options.http_endpoint,
        "HttpProtocolIpv6": options.http_protocol_ipv6,
        "InstanceMetadataTags": options.instance_metadata_tags,
    }


def _interface(interface: Any, record: InstanceRecord) -> dict[str, Any]:
    asked = record.interfaces.get(interface.id, {})
    return {
        "NetworkInterfaceId": interface.id,
        "Description": interface.description,
        "Groups": _groups(interface),
        "MacAddress": interface.mac_address,
        "OwnerId": ACCOUNT,
        "PrivateIpAddress": interface.private_ip_address,
        "PrivateIpAddresses": [{"Primary": True, "PrivateIpAddress": interface.private_ip_address}],
        "SourceDestCheck": True,
        "Status": "in-use",
        "SubnetId": interface.subnet.id,
        "VpcId": interface.subnet.vpc_id,
        "InterfaceType": asked.get("InterfaceType") or "interface",
        "Attachment": {
            "AttachTime": interface.attach_time,
            "AttachmentId": interface.attachment_id,
            "DeleteOnTermination": bool(interface.delete_on_termination),
            "DeviceIndex": int(asked.get("DeviceIndex") or 0),
            "NetworkCardIndex": int(asked.get("NetworkCardIndex") or 0),
            "Status": "attached",
        },
    }


_OF_INSTANCE: Mapping[str, Callable[[Any], object]] = {
    "architecture": lambda i: i.architecture,
    "availability-zone": lambda i: i.availability_zone,
    "image-id": lambda i: i.image_id,
    "instance-id": lambda i: i.id,
    "instance-state-code": lambda i: i.state_code,
    "instance-state-name": lambda i: i.state,
    "instance-type": lambda i: i.instance_type,
    "key-name": lambda i: i.key_name,
    "private-dns-name": lambda i: i.private_dns_name if i.nics else None,
    "private-ip-address": lambda i: i.nics[0].private_ip_address if i.nics else None,
    "subnet-id": lambda i: i.nics[0].subnet.id if i.nics else None,
    "vpc-id": lambda i: i.nics[0].subnet.vpc_id if i.nics else None,
}
_OF_RECORD: Mapping[str, Callable[[InstanceRecord], object]] = {
    "capacity-reservation-id": lambda r: r.capacity_reservation_id,
    "client-token": lambda r: r.client_token,
    "iam-instance-profile.arn": lambda r: r.profile[0] if r.profile else None,
    "instance-lifecycle": lambda r: None if r.capacity_type == "on-demand" else r.capacity_type,
    "placement-group-name": lambda r: r.placement_group,
    "spot-instance-request-id": lambda r: r.spot_request_id,
    "tenancy": lambda r: r.tenancy,
}


def filter_fields(world: World) -> Fields[Any]:
    """Return the filters of DescribeInstances."""

    def of_record(read: Callable[[InstanceRecord], object]) -> Callable[[Any], object]:
        return lambda instance: read(record_of(world, instance))

    def groups(instance: Any) -> list[str]:
        return [group.id for group in instance.nics[0].group_set] if instance.nics else []

    return {
        **_OF_INSTANCE,
        **{name: of_record(read) for name, read in _OF_RECORD.items()},
        "availability-zone-id": lambda i: _placement(i, record_of(world, i))["AvailabilityZoneId"],
        "instance.group-id": groups,
        "network-interface.group-id": groups,
    }

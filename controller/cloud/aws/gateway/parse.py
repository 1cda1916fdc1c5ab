"""From boto3's dictionaries to records.

Called by the gateways inside the pool, so that the loop never sees a raw answer. Owns where each
field comes from; fills an absent field with its empty value and never fails on one, since EC2 omits
what does not apply.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from controller.cloud.aws.gateway.records import (
    FleetError,
    FleetInstance,
    FleetResult,
    ImageRecord,
    InstanceRecord,
    ReservationRecord,
    SecurityGroupRecord,
    StatusRecord,
    SubnetRecord,
    TemplateRecord,
)
from controller.cloud.aws.shape import Accelerator, Gpu, NetworkCard, TypeShape

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import (
        CapacityReservationTypeDef,
        CreateFleetResultTypeDef,
        ImageTypeDef,
        InstanceStatusSummaryTypeDef,
        InstanceStatusTypeDef,
        InstanceTypeDef,
        InstanceTypeInfoTypeDef,
        LaunchTemplateAndOverridesResponseTypeDef,
        LaunchTemplateTypeDef,
        SecurityGroupTypeDef,
        SubnetTypeDef,
        TagTypeDef,
    )

__all__ = [
    "to_fleet_result",
    "to_image",
    "to_instance",
    "to_reservation",
    "to_security_group",
    "to_shape",
    "to_status",
    "to_subnet",
    "to_template",
]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - 3.11 spelling used project-wide


def _instant(text: str | None) -> datetime | None:
    if not text:
        return None
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _tags(raw: Iterable[TagTypeDef]) -> dict[str, str]:
    return {tag.get("Key", ""): tag.get("Value", "") for tag in raw}


def to_subnet(raw: SubnetTypeDef) -> SubnetRecord:
    """Return one subnet."""
    return SubnetRecord(
        id=raw.get("SubnetId", ""),
        zone=raw.get("AvailabilityZone", ""),
        zone_id=raw.get("AvailabilityZoneId", ""),
        vpc=raw.get("VpcId", ""),
        free_addresses=raw.get("AvailableIpAddressCount", 0),
    )


def to_security_group(raw: SecurityGroupTypeDef) -> SecurityGroupRecord:
    """Return one security group."""
    return SecurityGroupRecord(
        id=raw.get("GroupId", ""), name=raw.get("GroupName", ""), vpc=raw.get("VpcId", "")
    )


def to_image(raw: ImageTypeDef) -> ImageRecord:
    """Return one image; an image without a creation date counts as the oldest."""
    return ImageRecord(
        id=raw.get("ImageId", ""),
        name=raw.get("Name", ""),
        architecture=raw.get("Architecture", ""),
        created=_instant(raw.get("CreationDate")) or _EPOCH,
        deprecated_at=_instant(raw.get("DeprecationTime")),
    )


def to_reservation(raw: CapacityReservationTypeDef) -> ReservationRecord:
    """Return one capacity reservation."""
    return ReservationRecord(
        id=raw.get("CapacityReservationId", ""),
        instance_type=raw.get("InstanceType", ""),
        zone=raw.get("AvailabilityZone", ""),
        owner=raw.get("OwnerId", ""),
        match_criteria=raw.get("InstanceMatchCriteria", ""),
        reservation_type=raw.get("ReservationType", ""),
        available=raw.get("AvailableInstanceCount", 0),
        end=raw.get("EndDate"),
    )


def to_template(raw: LaunchTemplateTypeDef) -> TemplateRecord:
    """Return one launch template."""
    return TemplateRecord(
        id=raw.get("LaunchTemplateId", ""),
        name=raw.get("LaunchTemplateName", ""),
        tags=_tags(raw.get("Tags", ())),
    )


def to_instance(raw: InstanceTypeDef) -> InstanceRecord:
    """Return one instance."""
    placement = raw.get("Placement", {})
    interfaces = raw.get("NetworkInterfaces", ())
    wish = raw.get("CapacityReservationSpecification", {}).get("CapacityReservationPreference", "")
    return InstanceRecord(
        id=raw.get("InstanceId", ""),
        instance_type=raw.get("InstanceType", ""),
        image_id=raw.get("ImageId", ""),
        zone=placement.get("AvailabilityZone", ""),
        zone_id=placement.get("AvailabilityZoneId", ""),
        state=raw.get("State", {}).get("Name", ""),
        launched=raw.get("LaunchTime", _EPOCH),
        subnet=raw.get("SubnetId", ""),
        security_groups=frozenset(group.get("GroupId", "") for group in raw.get("SecurityGroups", ())),
        tags=_tags(raw.get("Tags", ())),
        spot=bool(raw.get("SpotInstanceRequestId")) or raw.get("InstanceLifecycle") == "spot",
        reservation_id=raw.get("CapacityReservationId", ""),
        reservations_only=wish == "capacity-reservations-only",
        capacity_block=raw.get("InstanceLifecycle") == "capacity-block",
        tenancy=placement.get("Tenancy", "") or "default",
        efa_interfaces=sum(1 for nic in interfaces if nic.get("InterfaceType", "").startswith("efa")),
    )


def to_fleet_result(raw: CreateFleetResultTypeDef) -> FleetResult:
    """Return a fleet's instances, one each, and its errors, one per override."""
    instances = tuple(
        _fleet_instance(item["LaunchTemplateAndOverrides"], item.get("InstanceType", ""), identifier, spot)
        for item in raw.get("Instances", ())
        for spot in (item.get("Lifecycle") == "spot",)
        for identifier in item.get("InstanceIds", ())
    )
    errors = tuple(
        _fleet_error(
            item.get("LaunchTemplateAndOverrides", {}),
            item.get("ErrorCode", ""),
            item.get("ErrorMessage", ""),
        )
        for item in raw.get("Errors", ())
    )
    return FleetResult(instances=instances, errors=errors)


def _template_name(raw: LaunchTemplateAndOverridesResponseTypeDef) -> str:
    return raw.get("LaunchTemplateSpecification", {}).get("LaunchTemplateName", "")


def _fleet_instance(
    raw: LaunchTemplateAndOverridesResponseTypeDef, instance_type: str, identifier: str, spot: bool
) -> FleetInstance:
    overrides = raw.get("Overrides", {})
    return FleetInstance(
        id=identifier,
        instance_type=instance_type or overrides.get("InstanceType", ""),
        zone=overrides.get("AvailabilityZone", ""),
        subnet=overrides.get("SubnetId", ""),
        image_id=overrides.get("ImageId", ""),
        template=_template_name(raw),
        spot=spot,
    )


def _fleet_error(raw: LaunchTemplateAndOverridesResponseTypeDef, code: str, message: str) -> FleetError:
    overrides = raw.get("Overrides", {})
    return FleetError(
        code=code,
        message=message,
        instance_type=overrides.get("InstanceType", ""),
        zone=overrides.get("AvailabilityZone", ""),
        subnet=overrides.get("SubnetId", ""),
        template=_template_name(raw),
    )


def to_shape(raw: InstanceTypeInfoTypeDef) -> TypeShape:
    """Return one instance type."""
    processor = raw.get("ProcessorInfo", {})
    network = raw.get("NetworkInfo", {})
    storage = raw.get("InstanceStorageInfo", {})
    storage_gb = storage.get("TotalSizeInGB", 0) if raw.get("InstanceStorageSupported") else 0
    return TypeShape(
        name=raw.get("InstanceType", ""),
        architectures=tuple(processor.get("SupportedArchitectures", ())),
        vcpus=raw.get("VCpuInfo", {}).get("DefaultVCpus", 0),
        memory_mib=raw.get("MemoryInfo", {}).get("SizeInMiB", 0),
        usage_classes=frozenset(raw.get("SupportedUsageClasses", ())),
        hypervisor="" if raw.get("BareMetal") else raw.get("Hypervisor", ""),
        cpu_manufacturer=processor.get("Manufacturer", ""),
        clock_ghz=processor.get("SustainedClockSpeedInGhz"),
        ebs_bandwidth_mbps=_ebs_bandwidth(raw),
        encryption_in_transit=network.get("EncryptionInTransitSupported", False),
        nvme_gb=storage_gb if storage.get("NvmeSupport", "unsupported") != "unsupported" else None,
        storage_gb=storage_gb,
        gpus=_gpus(raw),
        neuron=_neuron(raw),
        inference=_inference(raw),
        cards=_cards(raw),
        default_card=network.get("DefaultNetworkCardIndex", 0),
        ipv4_per_interface=network.get("Ipv4AddressesPerInterface", 0),
        efa_interfaces=network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
    )


def _ebs_bandwidth(raw: InstanceTypeInfoTypeDef) -> int | None:
    ebs = raw.get("EbsInfo", {})
    if ebs.get("EbsOptimizedSupport") != "default":
        return None
    return ebs.get("EbsOptimizedInfo", {}).get("MaximumBandwidthInMbps")


def _gpus(raw: InstanceTypeInfoTypeDef) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(
            name=gpu.get("Name", ""),
            manufacturer=gpu.get("Manufacturer", ""),
            count=gpu.get("Count", 0),
            memory_mib=gpu.get("MemoryInfo", {}).get("SizeInMiB", 0),
        )
        for gpu in raw.get("GpuInfo", {}).get("Gpus", ())
    )


def _neuron(raw: InstanceTypeInfoTypeDef) -> tuple[Accelerator, ...]:
    return tuple(
        Accelerator(
            name=device.get("Name", ""),
            manufacturer="aws",
            count=device.get("Count", 0),
            cores=device.get("CoreInfo", {}).get("Count", 0),
        )
        for device in raw.get("NeuronInfo", {}).get("NeuronDevices", ())
    )


def _inference(raw: InstanceTypeInfoTypeDef) -> tuple[Accelerator, ...]:
    return tuple(
        Accelerator(
            name=device.get("Name", ""),
            manufacturer=device.get("Manufacturer", ""),
            count=device.get("Count", 0),
            cores=0,
        )
        for device in raw.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())
    )


def _cards(raw: InstanceTypeInfoTypeDef) -> tuple[NetworkCard, ...]:
    return tuple(
        NetworkCard(
            index=card.get("NetworkCardIndex", 0),
            max_interfaces=card.get("MaximumNetworkInterfaces", 0),
            baseline_mbps=None if baseline is None else round(baseline * 1000),
        )
        for card in raw.get("NetworkInfo", {}).get("NetworkCards", ())
        for baseline in (card.get("BaselineBandwidthInGbps"),)
    )


def to_status(raw: InstanceStatusTypeDef) -> StatusRecord:
    """Return an instance's status checks."""
    return StatusRecord(
        id=raw["InstanceId"],
        instance_failures=_failures(raw.get("InstanceStatus")),
        system_failures=_failures(raw.get("SystemStatus")),
        events=tuple(sorted(event["Code"] for event in raw.get("Events", ()) if "Code" in event)),
    )


def _failures(summary: InstanceStatusSummaryTypeDef | None) -> tuple[datetime, ...]:
    details = (summary or {}).get("Details", ())
    return tuple(
        sorted(
            each["ImpairedSince"]
            for each in details
            if each.get("Status") == "failed" and "ImpairedSince" in each
        )
    )

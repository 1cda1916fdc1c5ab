"""Launch templates: what an instance is made from, by a name that says all of it (spec aws/launch §7).

`template_request` is pure: the launch's options in, the CreateLaunchTemplate request out, named after
the hash of its content, so that equal inputs share a template across restarts. `Templates` keeps those
in use alive and deletes what nobody asked for within a minute.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from controller.clock import Clock
from controller.cloud.aws import families
from controller.cloud.aws.errors import AwsAlreadyExists, AwsError
from controller.cloud.aws.gateway import Ec2, tag_filters
from controller.cloud.aws.gateway.records import TemplateRecord
from controller.cloud.aws.tags import tag_specification
from controller.cloud.aws.ttl import TtlCache
from controller.scheduling import CapacityType
from framework.api import labels
from framework.api.ec2nodeclass import EC2NodeClass, ReservationType
from framework.api.ec2settings import BlockDeviceMapping
from framework.api.quantity import Quantity

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import CreateLaunchTemplateRequestTypeDef

__all__ = ["NAME_PREFIX", "TemplateOptions", "Templates", "template_request"]

NAME_PREFIX: Final = "karpenter.k8s.aws/"
_TTL: Final = timedelta(minutes=1)
_GIB: Final = 1024**3
_NO_IPV6_METADATA: Final = frozenset(
    {
        "us-iso-east-1",
        "us-iso-west-1",
        "us-isob-east-1",
        "us-isob-west-1",
        "us-isof-south-1",
        "us-isof-east-1",
    }
)
"""Regions whose EC2 does not know the IPv6 switch of instance metadata."""


@attrs.frozen(kw_only=True)
class TemplateOptions:
    """All that a template depends on."""

    node_class: EC2NodeClass
    region: str
    image_id: str
    user_data: str
    """In base64; empty for none."""
    capacity_type: CapacityType
    tenancy: str
    efa_count: int = 0
    ipv6: bool = False
    reservation_id: str | None = None
    reservation_type: ReservationType | None = None
    reserved_capacity: bool = True
    """The ReservedCapacity gate: without it reservations are not mentioned at all."""
    tags: Mapping[str, str]


def template_request(options: TemplateOptions) -> CreateLaunchTemplateRequestTypeDef:
    """Return the request that makes the template, its name included."""
    data = _template_data(options)
    content = json.dumps(data, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    request = {
        "LaunchTemplateName": f"{NAME_PREFIX}{int(digest, 16)}",
        "LaunchTemplateData": data,
        "TagSpecifications": [tag_specification("launch-template", options.tags)],
    }
    return cast("CreateLaunchTemplateRequestTypeDef", request)


def _template_data(options: TemplateOptions) -> dict[str, Any]:
    spec = options.node_class.spec
    data: dict[str, Any] = {
        "ImageId": options.image_id,
        "IamInstanceProfile": {"Name": options.node_class.status.instance_profile},
        "MetadataOptions": _metadata(options),
        "Monitoring": {"Enabled": bool(spec.detailed_monitoring)},
        "Placement": {"Tenancy": options.tenancy},
        "NetworkInterfaces": _interfaces(options),
        "TagSpecifications": [tag_specification("network-interface", options.tags)],
    }
    if options.user_data:
        data["UserData"] = options.user_data
    if options.capacity_type is CapacityType.SPOT:
        data["TagSpecifications"].append(tag_specification("spot-instances-request", options.tags))
    devices = spec.block_device_mappings or families.default_devices(spec.resolved_ami_family)
    if devices:
        data["BlockDeviceMappings"] = [
            _device(mapping) for mapping in sorted(devices, key=lambda item: item.device_name or "")
        ]
    data.update(_reservation(options))
    return data


def _metadata(options: TemplateOptions) -> dict[str, Any]:
    wanted = options.node_class.spec.metadata_options
    metadata: dict[str, Any] = {
        "HttpEndpoint": wanted.http_endpoint.value,
        "HttpTokens": wanted.http_tokens.value,
        "HttpPutResponseHopLimit": wanted.http_put_response_hop_limit,
        "InstanceMetadataTags": "disabled",
    }
    if options.region not in _NO_IPV6_METADATA:
        metadata["HttpProtocolIpv6"] = wanted.http_protocol_ipv6.value
    return metadata


def _interfaces(options: TemplateOptions) -> list[dict[str, Any]]:
    spec = options.node_class.spec
    shared: dict[str, Any] = {
        "Groups": sorted(group.id for group in options.node_class.status.security_groups)
    }
    if spec.associate_public_ip_address is not None:
        shared["AssociatePublicIpAddress"] = spec.associate_public_ip_address
    if spec.ip_prefix_count is not None:
        shared["Ipv6PrefixCount" if options.ipv6 else "Ipv4PrefixCount"] = spec.ip_prefix_count
    if options.ipv6:
        shared["PrimaryIpv6"] = True
        shared["Ipv6AddressCount"] = 1
    if not options.efa_count:
        return [{"DeviceIndex": 0, **shared}]
    return [
        {"NetworkCardIndex": card, "DeviceIndex": min(card, 1), "InterfaceType": "efa", **shared}
        for card in range(options.efa_count)
    ]


def _device(mapping: BlockDeviceMapping) -> dict[str, Any]:
    ebs = mapping.ebs
    wire: dict[str, Any] = {"DeviceName": mapping.device_name}
    if ebs is None:
        return wire
    fields: dict[str, Any] = {
        "DeleteOnTermination": ebs.delete_on_termination,
        "Encrypted": ebs.encrypted,
        "Iops": ebs.iops or None,
        "KmsKeyId": ebs.kms_key_id,
        "SnapshotId": ebs.snapshot_id,
        "Throughput": ebs.throughput or None,
        "VolumeInitializationRate": ebs.volume_initialization_rate or None,
        "VolumeSize": _gib(ebs.volume_size),
        "VolumeType": None if ebs.volume_type is None else ebs.volume_type.value,
    }
    return {**wire, "Ebs": {key: value for key, value in fields.items() if value is not None}}


def _gib(size: Quantity | None) -> int | None:
    return None if size is None else -(-size.value() // _GIB)


def _reservation(options: TemplateOptions) -> dict[str, Any]:
    if not options.reserved_capacity:
        return {}
    if options.reservation_id is None:
        # Without this, an instance would silently fall into any open reservation that fits.
        return {"CapacityReservationSpecification": {"CapacityReservationPreference": "none"}}
    found: dict[str, Any] = {
        "CapacityReservationSpecification": {
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationId": options.reservation_id},
        }
    }
    if options.reservation_type is ReservationType.CAPACITY_BLOCK:
        found["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
    return found


class Templates:
    """The templates in EC2 that this process knows to be there."""

    def __init__(self, ec2: Ec2, clock: Clock, *, cluster: str) -> None:
        """Start with none; `hydrate` takes over a predecessor's."""
        self._ec2 = ec2
        self._cluster = cluster
        self._known: TtlCache[str, TemplateRecord] = TtlCache(clock, _TTL)
        self._locks: dict[str, asyncio.Lock] = {}

    async def ensure(self, request: CreateLaunchTemplateRequestTypeDef) -> str:
        """Make the template unless it is there, and keep it for another minute; return its name.

        Raises: AwsError.
        """
        name = request["LaunchTemplateName"]
        known = self._known.get(name)
        if known is not None:
            self._known.put(name, known)
            return name
        lock = self._locks.setdefault(name, asyncio.Lock())
        async with lock:
            record = self._known.get(name) or await self._find_or_create(request)
            self._known.put(name, record)
        return name

    async def _find_or_create(self, request: CreateLaunchTemplateRequestTypeDef) -> TemplateRecord:
        name = request["LaunchTemplateName"]
        found = await self._ec2.template(name)
        if found is not None:
            return found
        try:
            return await self._ec2.create_template(request)
        except AwsAlreadyExists:
            found = await self._ec2.template(name)
            if found is None:
                raise
            return found

    def forget(self, name: str) -> None:
        """Believe EC2 that the template is not there."""
        self._known.drop(name)

    async def hydrate(self) -> None:
        """Take over what an earlier leader left, so that it expires as well. Raises: AwsError."""
        for record in await self._ec2.templates(tag_filters({labels.EKS_CLUSTER_NAME_TAG: self._cluster})):
            if self._known.get(record.name) is None and record.name.startswith(NAME_PREFIX):
                self._known.put(record.name, record)

    async def expire(self) -> int:
        """Delete templates that nobody asked for within their time; return how many."""
        stale = self._known.purge()
        for name, record in stale:
            self._locks.pop(name, None)
            try:
                await self._ec2.delete_template(record.id)
            except AwsError:
                self._known.put(name, record)  # tried again when it expires next
        return len(stale)

    async def delete_of(self, node_class: EC2NodeClass) -> None:
        """Delete every template of a class. Raises: AwsError."""
        wanted = {
            labels.EKS_CLUSTER_NAME_TAG: self._cluster,
            labels.EC2NODECLASS: node_class.metadata.name,
        }
        for record in await self._ec2.templates(tag_filters(wanted)):
            await self._ec2.delete_template(record.id)
            self.forget(record.name)

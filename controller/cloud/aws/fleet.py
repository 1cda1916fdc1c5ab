"""The CreateFleet request, and what its answer means (spec aws/launch §6, §8).

Called by `launcher` and by the dry runs of a class's validation. Pure: values in, request out; errors
in, outcome out. `request_key` names equal requests, which the batcher merges into one call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from controller.cloud.aws.gateway.records import FleetError
from controller.cloud.aws.tags import tag_specification
from controller.scheduling import CapacityType
from framework.api.ec2nodeclass import ReservationType

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import CreateFleetRequestTypeDef

__all__ = [
    "NO_ADDRESSES",
    "SLR_DENIED",
    "FleetOptions",
    "FleetTemplate",
    "Override",
    "fleet_request",
    "is_shortage",
    "launch_message",
    "launch_reason",
    "request_key",
    "with_count",
]

_SHORTAGES: Final = frozenset(
    {
        "InsufficientFreeAddressesInSubnet",
        "InsufficientInstanceCapacity",
        "MaxFleetCountExceeded",
        "MaxSpotInstanceCountExceeded",
        "ReservationCapacityExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        "VcpuLimitExceeded",
    }
)
"""Codes that mean: this pool of capacity cannot deliver now, another may."""
NO_ADDRESSES: Final = "InsufficientFreeAddressesInSubnet"
SLR_DENIED: Final = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
"""The account lacks the spot service-linked role and the controller may not make it."""

_REASONS: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    ((SLR_DENIED,), "SpotSLRCreationFailed"),
    (("UnauthorizedOperation", "AccessDenied", "AuthFailure"), "Unauthorized"),
    (("belong to different networks",), "SecurityGroupSubnetVPCMismatch"),
    (("iamInstanceProfile.name is invalid",), "InstanceProfileNameInvalid"),
    (("InvalidLaunchTemplateId.NotFound",), "LaunchTemplateNotFound"),
    (("User data is limited to",), "UserDataSizeLimitExceeded"),
    (("InvalidAMIID.Malformed",), "InvalidAMIID"),
    (("InvalidAMIID.NotFound",), "AMINotFound"),
    (("RequestLimitExceeded",), "RequestLimitExceeded"),
    (("InternalError",), "InternalError"),
    (("not eligible for Free Tier",), "FreeTierIneligible"),
    (("MaxFleetCountExceeded",), "FleetQuotaExceeded"),
    (("PendingVerification",), "AccountPendingVerification"),
    (("MaxSpotInstanceCountExceeded",), "SpotQuotaExceeded"),
    (("VcpuLimitExceeded",), "VCPULimitExceeded"),
    ((NO_ADDRESSES,), NO_ADDRESSES),
)
_DENIALS: Final = (
    ("permissions boundary", "a permissions boundary forbids it"),
    ("service control policy", "a service control policy forbids it"),
    ("no identity-based policy", "no identity policy allows it"),
)


@attrs.frozen(kw_only=True)
class Override:
    """One pool of capacity that the fleet may launch from."""

    instance_type: str
    zone: str
    subnet: str
    image_id: str
    price: float

    def to_wire(self) -> dict[str, Any]:
        """Return the override as EC2 takes it."""
        return {
            "InstanceType": self.instance_type,
            "SubnetId": self.subnet,
            "ImageId": self.image_id,
            "AvailabilityZone": self.zone,
            "Priority": self.price,
        }


@attrs.frozen(kw_only=True)
class FleetTemplate:
    """A launch template and the pools that it is for."""

    name: str
    overrides: tuple[Override, ...]

    def to_wire(self) -> dict[str, Any]:
        """Return the configuration as EC2 takes it, pools in a fixed order."""
        ordered = sorted(self.overrides, key=lambda item: (item.price, item.instance_type, item.zone))
        return {
            "LaunchTemplateSpecification": {"LaunchTemplateName": self.name, "Version": "$Latest"},
            "Overrides": [item.to_wire() for item in ordered],
        }


@attrs.frozen(kw_only=True)
class FleetOptions:
    """All that a fleet request depends on."""

    templates: tuple[FleetTemplate, ...]
    capacity_type: CapacityType
    reservation_type: ReservationType | None = None
    prioritized: bool = False
    """A price overlay applies: EC2 must follow our prices, not its own."""
    context: str | None = None
    tags: Mapping[str, str]


def fleet_request(options: FleetOptions) -> CreateFleetRequestTypeDef:
    """Return the request for one instance; templates without pools are left out."""
    request: dict[str, Any] = {
        "Type": "instant",
        "LaunchTemplateConfigs": [
            template.to_wire()
            for template in sorted(options.templates, key=lambda item: item.name)
            if template.overrides
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": _target_type(options),
        },
        "TagSpecifications": [
            tag_specification(kind, options.tags) for kind in ("fleet", "instance", "volume")
        ],
    }
    if options.capacity_type is CapacityType.SPOT:
        strategy = "capacity-optimized-prioritized" if options.prioritized else "price-capacity-optimized"
        request["SpotOptions"] = {"AllocationStrategy": strategy}
    elif options.reservation_type is not ReservationType.CAPACITY_BLOCK:
        strategy = "prioritized" if options.prioritized else "lowest-price"
        request["OnDemandOptions"] = {"AllocationStrategy": strategy}
    if options.context:
        request["Context"] = options.context
    return cast("CreateFleetRequestTypeDef", request)


def _target_type(options: FleetOptions) -> str:
    if options.capacity_type is CapacityType.SPOT:
        return "spot"
    block = options.reservation_type is ReservationType.CAPACITY_BLOCK
    return "capacity-block" if block else "on-demand"


def request_key(request: CreateFleetRequestTypeDef) -> str:
    """Return a text that is equal for equal requests."""
    return json.dumps(request, sort_keys=True, separators=(",", ":"))


def with_count(request: CreateFleetRequestTypeDef, count: int, token: str) -> CreateFleetRequestTypeDef:
    """Return the request for `count` instances, made only once per token."""
    target = {**request["TargetCapacitySpecification"], "TotalTargetCapacity": count}
    return cast(
        "CreateFleetRequestTypeDef",
        {**request, "TargetCapacitySpecification": target, "ClientToken": token},
    )


def is_shortage(error: FleetError) -> bool:
    """Tell whether the error means only that capacity is short."""
    return error.code in _SHORTAGES


def launch_reason(text: str) -> str:
    """Return the condition reason for an error text; the first match counts (spec aws/launch §8.3)."""
    for needles, reason in _REASONS:
        if any(needle in text for needle in needles):
            if reason == "Unauthorized" and ("image" in text.lower() or "ami-" in text):
                return "AMIAuthorizationFailure"
            return reason
    return "LaunchFailed"


def launch_message(texts: Sequence[str]) -> str:
    """Return the distinct errors for people, with why a denial happened where AWS tells."""
    notes = {note for text in texts for needle, note in _DENIALS if needle in text}
    return "; ".join([*dict.fromkeys(texts), *sorted(notes)])

"""Settings of instances in an EC2NodeClass: volumes, metadata service, kubelet, network.

Called by `framework.api.ec2nodeclass`, the launch templates and the bootstrap. Owns shapes, defaults and
admission rules. Spec: aws/ec2nodeclass §2, §3.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import attrs

from framework.api.quantity import QUANTITY_PATTERN, Quantity
from framework.api.schema import FieldSchema, Rule, field, items, mapping
from framework.api.wire import Wire

__all__ = [
    "BlockDevice",
    "BlockDeviceMapping",
    "ConnectionTracking",
    "CpuOptions",
    "HttpTokens",
    "InterfaceType",
    "KubeletConfiguration",
    "MetadataOptions",
    "NetworkInterface",
    "PlacementGroupSelector",
    "Switch",
    "VolumeType",
]


class Switch(StrEnum):
    """On or off, in EC2's words."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class HttpTokens(StrEnum):
    """Whether the metadata service demands session tokens (IMDSv2)."""

    REQUIRED = "required"
    OPTIONAL = "optional"


class VolumeType(StrEnum):
    """EBS volume types."""

    STANDARD = "standard"
    IO1 = "io1"
    IO2 = "io2"
    GP2 = "gp2"
    SC1 = "sc1"
    ST1 = "st1"
    GP3 = "gp3"


class InterfaceType(StrEnum):
    """Kinds of network interface."""

    INTERFACE = "interface"
    EFA_ONLY = "efa-only"


_VOLUME_SIZE_PATTERN: Final = (
    r"^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi"
    r"|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G"
    r"|([1-9]|[1-5][0-7]|58)Ti|([1-9]|[1-5][0-9]|6[0-4])T)$"
)
_STRING_ONLY: Final = {"anyOf": None, "x-kubernetes-int-or-string": None, "type": "string"}


@attrs.frozen(kw_only=True)
class BlockDevice(Wire):
    """An EBS volume."""

    delete_on_termination: bool | None = field("Whether the volume goes with the instance.", default=None)
    encrypted: bool | None = field("Whether the volume is encrypted.", default=None)
    iops: int | None = field(
        "I/O operations a second, for io1, io2 and gp3 volumes.", default=None, format="int64"
    )
    kms_key_id: str | None = field(
        "Key of the encryption: id, alias or ARN. The account's default key when left out.",
        default=None,
        name="kmsKeyID",
    )
    snapshot_id: str | None = field("Snapshot that the volume starts from.", default=None, name="snapshotID")
    throughput: int | None = field("MiB a second, for gp3 volumes.", default=None, format="int64")
    volume_initialization_rate: int | None = field(
        "MiB a second at which the snapshot's blocks are fetched. Needs snapshotID.",
        default=None,
        minimum=100,
        maximum=300,
        format="int32",
    )
    volume_size: Quantity | None = field(
        "Size of the volume: 1Gi to 59000Gi, 1G to 64000G, 1Ti to 58Ti or 1T to 64T.",
        default=None,
        pattern=_VOLUME_SIZE_PATTERN,
        merge=_STRING_ONLY,
    )
    volume_type: VolumeType | None = field("EBS volume type.", default=None)


@attrs.frozen(kw_only=True)
class BlockDeviceMapping(Wire):
    """A volume and the device name it appears under."""

    device_name: str | None = field("Device name, such as /dev/xvda.", default=None)
    ebs: BlockDevice | None = field(
        "The EBS volume.",
        default=None,
        rules=(
            Rule(
                cel="has(self.snapshotID) || has(self.volumeSize)",
                message="an EBS volume has neither snapshotID nor volumeSize; give one",
            ),
            Rule(
                cel="!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",
                message="volumeInitializationRate works only on volumes from a snapshot; "
                "give snapshotID or remove it",
            ),
        ),
    )
    root_volume: bool | None = field(
        "Marks the volume that holds the kubelet's root; its size is the node's ephemeral storage.",
        default=None,
    )


@attrs.frozen(kw_only=True)
class MetadataOptions(Wire):
    """The instance metadata service as pods and processes on the node see it."""

    http_endpoint: Switch = field(
        "Whether the metadata service answers at all.", default=Switch.ENABLED, wire_default="enabled"
    )
    http_protocol_ipv6: Switch = field(
        "Whether the metadata service answers on IPv6.",
        default=Switch.DISABLED,
        wire_default="disabled",
        name="httpProtocolIPv6",
    )
    http_put_response_hop_limit: int = field(
        "Network hops that a token may travel; 1 keeps it from pods with their own network.",
        default=1,
        wire_default=1,
        name="httpPutResponseHopLimit",
        minimum=1,
        maximum=64,
        format="int64",
    )
    http_tokens: HttpTokens = field(
        "Whether session tokens are required (IMDSv2).", default=HttpTokens.REQUIRED, wire_default="required"
    )


_RESERVED_KEYS: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_SIGNALS: Final = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)
_EVICTION_PATTERN: Final = rf"^(([0-9]{{1,2}}(\.[0-9]{{1,2}})?|100(\.0{{1,2}})?)%|{QUANTITY_PATTERN[1:-1]})$"


def _keys_rule(what: str, keys: tuple[str, ...]) -> Rule:
    listed = ", ".join(f"'{key}'" for key in keys)
    return Rule(cel=f"self.all(x, x in [{listed}])", message=f"{what}; use {', '.join(keys)}")


def _reserved(description: str) -> Any:
    return mapping(
        description,
        rules=(
            _keys_rule("not a resource that can be reserved", _RESERVED_KEYS),
            Rule(
                cel="self.all(x, !self[x].startsWith('-'))",
                message="a reserved amount is negative; write 0 or more",
            ),
        ),
    )


def _thresholds(description: str) -> Any:
    value = FieldSchema(description="Amount or percentage.", pattern=_EVICTION_PATTERN)
    rules = (_keys_rule("not an eviction signal", _SIGNALS),)
    return mapping(description, values=value, rules=rules)


@attrs.frozen(kw_only=True)
class KubeletConfiguration(Wire):
    """Settings of the kubelet that also change how much room a node has."""

    cluster_dns: tuple[str, ...] = items("DNS servers of pods.", name="clusterDNS")
    max_pods: int | None = field("Most pods on a node.", default=None, minimum=0, format="int32")
    pods_per_core: int | None = field(
        "Most pods per vCPU; the lower of this and maxPods counts.", default=None, minimum=0, format="int32"
    )
    system_reserved: Mapping[str, str] = _reserved("Resources kept for the operating system.")
    kube_reserved: Mapping[str, str] = _reserved("Resources kept for Kubernetes itself.")
    eviction_hard: Mapping[str, str] = _thresholds("Thresholds at which pods are evicted at once.")
    eviction_soft: Mapping[str, str] = _thresholds("Thresholds at which pods are evicted after a while.")
    eviction_soft_grace_period: Mapping[str, str] = mapping(
        "How long each soft threshold may be crossed before pods are evicted, such as 1m30s.",
        rules=(_keys_rule("not an eviction signal", _SIGNALS),),
    )
    eviction_max_pod_grace_period: int | None = field(
        "Longest grace period of pods evicted for a soft threshold, in seconds.",
        default=None,
        format="int32",
    )
    image_gc_high_threshold_percent: int | None = field(
        "Disk usage at which images are collected.",
        default=None,
        name="imageGCHighThresholdPercent",
        minimum=0,
        maximum=100,
        format="int32",
    )
    image_gc_low_threshold_percent: int | None = field(
        "Disk usage down to which images are collected; below the high threshold.",
        default=None,
        name="imageGCLowThresholdPercent",
        minimum=0,
        maximum=100,
        format="int32",
    )
    cpu_cfs_quota: bool | None = field(
        "Whether CPU limits of containers are enforced.", default=None, name="cpuCFSQuota"
    )


KUBELET_RULES: Final = (
    Rule(
        cel="has(self.imageGCHighThresholdPercent) && has(self.imageGCLowThresholdPercent)"
        " ? self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent : true",
        message="imageGCHighThresholdPercent is not above imageGCLowThresholdPercent; "
        "raise it or lower the other",
    ),
    Rule(
        cel="has(self.evictionSoft) ? self.evictionSoft.all(e, has(self.evictionSoftGracePeriod)"
        " && e in self.evictionSoftGracePeriod) : true",
        message="a signal in evictionSoft has no evictionSoftGracePeriod; add it there",
    ),
    Rule(
        cel="has(self.evictionSoftGracePeriod) ? self.evictionSoftGracePeriod.all(e, has(self.evictionSoft)"
        " && e in self.evictionSoft) : true",
        message="a signal in evictionSoftGracePeriod has no evictionSoft threshold; add it there",
    ),
)


@attrs.frozen(kw_only=True)
class PlacementGroupSelector(Wire):
    """Picks a placement group by name or by id."""

    name: str | None = field("Name of the placement group.", default=None, min_length=1)
    id: str | None = field("Id of the placement group.", default=None, pattern="^pg-[0-9a-z]+$")


@attrs.frozen(kw_only=True)
class NetworkInterface(Wire):
    """A network interface of every instance."""

    network_card_index: int = field("Network card.", minimum=0, format="int32")
    device_index: int = field("Place on the card.", minimum=0, format="int32")
    interface_type: InterfaceType = field("Ordinary interface, or EFA without IP.")


NETWORK_INTERFACE_RULES: Final = (
    Rule(
        cel="self.size() == 0 || self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0"
        " && x.interfaceType == 'interface')",
        message="the first interface is missing; add card 0, device 0 of type interface",
    ),
    Rule(
        cel="self.all(x, self.exists_one(y, x.networkCardIndex == y.networkCardIndex"
        " && x.deviceIndex == y.deviceIndex))",
        message="two interfaces have the same card and device; give each its own place",
    ),
    Rule(
        cel="self.all(x, x.interfaceType != 'efa-only' || self.exists_one(y, y.interfaceType == 'efa-only'"
        " && x.networkCardIndex == y.networkCardIndex))",
        message="a network card has two efa-only interfaces; keep one per card",
    ),
)


@attrs.frozen(kw_only=True)
class ConnectionTracking(Wire):
    """How long idle connections are remembered."""

    tcp_established_timeout: int | None = field(
        "Seconds for TCP.", default=None, minimum=60, maximum=432000, format="int32"
    )
    udp_stream_timeout: int | None = field(
        "Seconds for UDP streams.", default=None, minimum=60, maximum=180, format="int32"
    )
    udp_timeout: int | None = field(
        "Seconds for single UDP exchanges.", default=None, minimum=30, maximum=60, format="int32"
    )


@attrs.frozen(kw_only=True)
class CpuOptions(Wire):
    """Processor features."""

    nested_virtualization: Switch | None = field("Whether instances may run virtual machines.", default=None)

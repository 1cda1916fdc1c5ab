"""EC2NodeClass: the machines behind a NodePool: images, subnets, roles, volumes (aws/ec2nodeclass).

Called by the AWS provider, the stacks and lint. Owns shape, defaults and admission rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

import attrs

from framework.api import labels
from framework.api.conditions import Condition
from framework.api.ec2selectors import (
    ALIAS_FAMILIES,
    AmiSelectorTerm,
    CapacityReservationSelectorTerm,
    InstanceMatchCriteria,
    SecurityGroupSelectorTerm,
    SubnetSelectorTerm,
    ami_terms,
    reservation_terms,
    security_group_terms,
    subnet_terms,
)
from framework.api.ec2settings import (
    KUBELET_RULES,
    NETWORK_INTERFACE_RULES,
    BlockDeviceMapping,
    ConnectionTracking,
    CpuOptions,
    KubeletConfiguration,
    MetadataOptions,
    NetworkInterface,
    PlacementGroupSelector,
)
from framework.api.metadata import Kind
from framework.api.requirement_spec import RequirementSpec
from framework.api.schema import Column, KindInfo, Rule, field, items, mapping
from framework.api.wire import Wire

__all__ = [
    "Ami",
    "AmiFamily",
    "CapacityReservation",
    "EC2NodeClass",
    "EC2NodeClassSpec",
    "EC2NodeClassStatus",
    "InstanceStorePolicy",
    "ReservationState",
    "ReservationType",
    "SecurityGroup",
    "Subnet",
]


class AmiFamily(StrEnum):
    """Families of machine images; each has its own bootstrap."""

    AL2 = "AL2"
    AL2023 = "AL2023"
    BOTTLEROCKET = "Bottlerocket"
    CUSTOM = "Custom"
    WINDOWS2019 = "Windows2019"
    WINDOWS2022 = "Windows2022"
    WINDOWS2025 = "Windows2025"


class InstanceStorePolicy(StrEnum):
    """What is done with local disks."""

    RAID0 = "RAID0"


class ReservationType(StrEnum):
    """Kinds of capacity reservation."""

    DEFAULT = "default"
    CAPACITY_BLOCK = "capacity-block"


class ReservationState(StrEnum):
    """Whether a reservation may still be planned on."""

    ACTIVE = "active"
    EXPIRING = "expiring"


RESTRICTED_TAGS: Final = (
    labels.EKS_CLUSTER_NAME_TAG,
    labels.NODEPOOL,
    labels.NODECLAIM_TAG,
    labels.EC2NODECLASS,
)

_TAG_RULES: Final = (
    Rule(cel="self.all(k, k != '')", message="a tag has an empty key; name it or remove it"),
    *(
        Rule(cel=f"self.all(k, k != '{key}')", message=f"the tag {key} is the controller's; remove it")
        for key in RESTRICTED_TAGS
    ),
    Rule(
        cel="self.all(k, !k.startsWith('kubernetes.io/cluster'))",
        message="tags that start with kubernetes.io/cluster are the controller's; remove it",
    ),
)


@attrs.frozen(kw_only=True)
class EC2NodeClassSpec(Wire):
    """What the machines are made from."""

    subnet_selector_terms: tuple[SubnetSelectorTerm, ...] = subnet_terms()
    security_group_selector_terms: tuple[SecurityGroupSelectorTerm, ...] = security_group_terms()
    capacity_reservation_selector_terms: tuple[CapacityReservationSelectorTerm, ...] = reservation_terms()
    placement_group_selector: PlacementGroupSelector | None = field(
        "Placement group that instances are launched into.",
        default=None,
        gate="PlacementGroups",
        rules=(
            Rule(
                cel="has(self.name) != has(self.id)",
                message="a placement group is picked by exactly one of name and id; give one",
            ),
        ),
    )
    associate_public_ip_address: bool | None = field(
        "Whether instances get a public IPv4 address; the subnet decides when left out.",
        default=None,
        name="associatePublicIPAddress",
    )
    ip_prefix_count: int | None = field(
        "IP prefixes given to the first network interface.",
        default=None,
        name="ipPrefixCount",
        minimum=0,
        format="int32",
    )
    ami_selector_terms: tuple[AmiSelectorTerm, ...] = ami_terms()
    ami_family: AmiFamily | None = field(
        "Family of the images, which decides the bootstrap; taken from the alias when there is one.",
        default=None,
    )
    user_data: str | None = field(
        "User data of the instances; merged with or put before what the family generates.", default=None
    )
    role: str | None = field(
        "IAM role of the nodes; an instance profile is made for it. Either this or instanceProfile.",
        default=None,
        min_length=1,
    )
    instance_profile: str | None = field(
        "Instance profile of the nodes, kept by you. Either this or role.", default=None, min_length=1
    )
    tags: Mapping[str, str] = mapping(
        "Tags of everything that is created for the nodes: instances, volumes, interfaces, templates.",
        rules=_TAG_RULES,
    )
    kubelet: KubeletConfiguration | None = field(
        "Settings of the kubelet.", default=None, rules=KUBELET_RULES
    )
    block_device_mappings: tuple[BlockDeviceMapping, ...] = items(
        "Volumes of the instances; the family's default when left out.",
        max_items=50,
        rules=(
            Rule(
                cel="self.filter(x, has(x.rootVolume) && x.rootVolume == true).size() <= 1",
                message="more than one volume has rootVolume; keep one",
            ),
        ),
    )
    instance_store_policy: InstanceStorePolicy | None = field(
        "RAID0 joins the local disks into the node's ephemeral storage.", default=None
    )
    network_interfaces: tuple[NetworkInterface, ...] = items(
        "Network interfaces of the instances.",
        max_items=150,
        gate="NetworkInterfaces",
        rules=NETWORK_INTERFACE_RULES,
    )
    detailed_monitoring: bool = field("Whether CloudWatch samples once a minute.", default=False)
    metadata_options: MetadataOptions = field(
        "The instance metadata service.",
        default=MetadataOptions(),
        wire_default={
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
    )
    connection_tracking: ConnectionTracking | None = field(
        "How long idle connections are remembered.",
        default=None,
        gate="ConnectionTracking",
        rules=(
            Rule(
                cel="has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
                message="connectionTracking sets no timeout; set one or remove it",
            ),
        ),
    )
    context: str | None = field(
        "Context passed to CreateFleet, for EC2 features that ask for it.", default=None
    )
    cpu_options: CpuOptions | None = field("Processor features.", default=None, gate="CPUOptions")

    @property
    def resolved_ami_family(self) -> AmiFamily:
        """Return the family in force: the one named, else the alias's, else Custom (aws/ec2nodeclass §6)."""
        if self.ami_family is not None:
            return self.ami_family
        families = (term.alias_family for term in self.ami_selector_terms)
        return AmiFamily(next((family for family in families if family), AmiFamily.CUSTOM))


def _family_rule(alias: str, family: str) -> Rule:
    return Rule(
        cel=f"!has(self.amiFamily) || self.amiFamily in ['Custom', '{family}']"
        f" || !self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.startsWith('{alias}@'))",
        message=f"amiFamily does not fit the alias {alias}; write {family} or Custom, or remove amiFamily",
    )


SPEC_RULES: Final = (
    Rule(
        cel="has(self.role) != has(self.instanceProfile)",
        message="exactly one of role and instanceProfile is needed; give one",
    ),
    *(_family_rule(alias, family) for alias, family in ALIAS_FAMILIES.items()),
    Rule(
        cel="has(self.amiFamily) || self.amiSelectorTerms.exists(x, has(x.alias))",
        message="without an alias in amiSelectorTerms the bootstrap is not known; set amiFamily",
    ),
)


@attrs.frozen(kw_only=True)
class Subnet(Wire):
    """A subnet that the class resolved to."""

    id: str = field("Id of the subnet.")
    zone: str = field("Availability zone.")
    zone_id: str | None = field("Id of the availability zone.", default=None, name="zoneID")


@attrs.frozen(kw_only=True)
class SecurityGroup(Wire):
    """A security group that the class resolved to."""

    id: str = field("Id of the security group.")
    name: str | None = field("Name of the security group.", default=None)


@attrs.frozen(kw_only=True)
class CapacityReservation(Wire):
    """A capacity reservation that the class resolved to."""

    availability_zone: str = field("Availability zone of the reserved capacity.")
    end_time: datetime | None = field("When the reservation ends.", default=None)
    id: str = field("Id of the reservation.", pattern="^cr-[0-9a-z]+$")
    instance_match_criteria: InstanceMatchCriteria = field("Which launches the reservation takes in.")
    instance_type: str = field("Reserved instance type.")
    owner_id: str = field("Account that owns the reservation.", name="ownerID", pattern="^[0-9]{12}$")
    reservation_type: ReservationType = field(
        "Kind of reservation.", default=ReservationType.DEFAULT, wire_default="default"
    )
    state: ReservationState = field(
        "Whether the reservation may still be planned on.",
        default=ReservationState.ACTIVE,
        wire_default="active",
    )
    interruptible: bool | None = field(
        "Whether EC2 may take instances of the reservation back.", default=None
    )


@attrs.frozen(kw_only=True)
class Ami(Wire):
    """An image that the class resolved to, and the instance types it suits."""

    id: str = field("Id of the image.")
    name: str | None = field("Name of the image.", default=None)
    deprecated: bool | None = field("Whether the image's owner has deprecated it.", default=None)
    requirements: tuple[RequirementSpec, ...] = items(
        "What an instance type must be to use the image.", required=True
    )


@attrs.frozen(kw_only=True)
class EC2NodeClassStatus(Wire):
    """What the class resolved to."""

    subnets: tuple[Subnet, ...] = items("Subnets, those with most free addresses first.")
    security_groups: tuple[SecurityGroup, ...] = items("Security groups, by id.")
    capacity_reservations: tuple[CapacityReservation, ...] = items("Capacity reservations, by id.")
    amis: tuple[Ami, ...] = items("Images, newest first.")
    instance_profile: str | None = field("Instance profile of the nodes.", default=None)
    conditions: tuple[Condition, ...] = items(
        "What holds of the class: AMIsReady, SubnetsReady, SecurityGroupsReady, InstanceProfileReady, "
        "CapacityReservationsReady, ValidationSucceeded, Ready."
    )


@attrs.frozen(kw_only=True)
class EC2NodeClass(Kind):
    """The machines behind NodePools."""

    INFO: ClassVar[KindInfo] = KindInfo(
        group=labels.AWS_GROUP,
        version="v1",
        kind="EC2NodeClass",
        plural="ec2nodeclasses",
        short_names=("ec2nc", "ec2ncs"),
        description="The machines behind NodePools: images, subnets, security groups, role, volumes.",
        columns=(
            Column(name="Ready", type="string", path='.status.conditions[?(@.type=="Ready")].status'),
            Column(name="Age", type="date", path=".metadata.creationTimestamp"),
            Column(name="Role", type="string", path=".spec.role", wide=True),
        ),
    )
    DEPENDENTS: ClassVar[tuple[str, ...]] = (
        "AMIsReady",
        "SubnetsReady",
        "SecurityGroupsReady",
        "InstanceProfileReady",
        "CapacityReservationsReady",
        "ValidationSucceeded",
    )
    """All dependents; drop `CapacityReservationsReady` when the gate ReservedCapacity is off."""

    spec: EC2NodeClassSpec = field("What the machines are made from.", rules=SPEC_RULES)
    status: EC2NodeClassStatus = field("What the class resolved to.", default=EC2NodeClassStatus())

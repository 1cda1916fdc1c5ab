"""From a NodeClaim and its instance types to launch templates and one fleet request (spec aws/launch §6, §7).

Called by `launcher` and by the dry runs of a class's validation. Pure: `plan_launch` decides which
templates there must be and which pools each is for; nothing is made here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from controller.cloud.aws import userdata
from controller.cloud.aws.capacity import EFA
from controller.cloud.aws.fleet import FleetOptions, FleetTemplate, Override, fleet_request
from controller.cloud.aws.images import chooser
from controller.cloud.aws.launchfilters import LaunchTypes
from controller.cloud.aws.launchtemplates import TemplateOptions, template_request
from controller.cloud.aws.tags import launch_tags
from controller.cloud.aws.userdata import Bootstrap, KubeletArgs
from controller.scheduling import CapacityType, InstanceType, Offering, Taint
from framework.api import NodeClaim, TaintEffect, labels, parse_resources
from framework.api.ec2nodeclass import AmiFamily, EC2NodeClass, InstanceStorePolicy, ReservationType

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import (
        CreateFleetRequestTypeDef,
        CreateLaunchTemplateRequestTypeDef,
    )

__all__ = ["ClusterInput", "LaunchInput", "LaunchPlan", "launch_digest", "plan_launch"]

_UNREGISTERED: Final = Taint(labels.UNREGISTERED_TAINT, "", TaintEffect.NO_EXECUTE)
_NOT_BY_KUBELET: Final = ("kubernetes.io", "k8s.io")
"""Label domains that node admission refuses from a kubelet; the core writes those labels later."""


@attrs.frozen(kw_only=True)
class ClusterInput:
    """What a launch needs to know of the cluster."""

    name: str
    endpoint: str
    ca_bundle: str
    region: str
    service_cidr: str | None = None
    dns_ip: str | None = None
    ipv6: bool = False
    reserved_capacity: bool = True


@attrs.frozen(kw_only=True)
class LaunchInput:
    """One launch: who asks, from what, where."""

    claim: NodeClaim
    node_class: EC2NodeClass
    cluster: ClusterInput
    types: LaunchTypes
    """Filtered, cheapest first, with the offerings that may be used."""
    capacity_type: CapacityType
    tenancy: str
    subnets: Mapping[str, str]
    """Chosen subnet by zone."""

    @property
    def pool(self) -> str:
        """Return the claim's pool, empty without one."""
        return self.claim.metadata.labels.get(labels.NODEPOOL, "")


@attrs.frozen(kw_only=True)
class LaunchPlan:
    """Templates that must be there, and the fleet that uses them."""

    templates: tuple[CreateLaunchTemplateRequestTypeDef, ...]
    fleet: CreateFleetRequestTypeDef | None
    """None when no pool of capacity is left."""
    reservations: Mapping[str, str]
    """Reservation id by template name."""


@attrs.frozen(kw_only=True)
class _Group:
    image_id: str
    image_name: str
    max_pods: int
    efa_count: int
    reservation_id: str | None
    reservation_type: ReservationType | None


def launch_digest(claim: NodeClaim, class_name: str) -> str:
    """Return a short name for what the claim asks for; equal for claims that are alike.

    It is tagged onto instances, so that after a crash an instance that no claim knows can be given to
    a claim like the one it was launched for.
    """
    document = {
        "class": class_name,
        "labels": dict(claim.metadata.labels),
        "requirements": sorted(str(spec) for spec in claim.spec.requirements),
        "taints": sorted(str(taint) for taint in claim.spec.taints),
        "startup": sorted(str(taint) for taint in claim.spec.startup_taints),
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def plan_launch(launch: LaunchInput) -> LaunchPlan:
    """Return the templates and the request of a launch. Raises: ValueError for unreadable user data."""
    tags = launch_tags(launch.node_class, launch.cluster.name, launch.pool)
    made: dict[str, CreateLaunchTemplateRequestTypeDef] = {}
    pools_of: dict[str, tuple[Override, ...]] = {}
    reservations: dict[str, str] = {}
    kinds: set[ReservationType] = set()
    for group, pools in _groups(launch).items():
        overrides = _overrides(launch, group, pools)
        if not overrides:
            continue
        request = template_request(_template_options(launch, group, tags))
        name = request["LaunchTemplateName"]
        made[name] = request
        # Groups that differ only in what their template does not say (Custom user data) share one.
        pools_of[name] = (*pools_of.get(name, ()), *overrides)
        if group.reservation_id is not None:
            reservations[name] = group.reservation_id
        if group.reservation_type is not None:
            kinds.add(group.reservation_type)
    fleet_templates = [FleetTemplate(name=name, overrides=pools) for name, pools in pools_of.items()]
    fleet = _fleet(launch, fleet_templates, kinds, tags) if fleet_templates else None
    return LaunchPlan(
        templates=tuple(made[name] for name in sorted(made)), fleet=fleet, reservations=reservations
    )


def _fleet(
    launch: LaunchInput,
    templates: Iterable[FleetTemplate],
    kinds: set[ReservationType],
    tags: Mapping[str, str],
) -> CreateFleetRequestTypeDef:
    annotations = launch.claim.metadata.annotations
    relaxed = annotations.get(labels.MIN_VALUES_RELAXED) == "true"
    digest = launch_digest(launch.claim, launch.node_class.metadata.name)
    return fleet_request(
        FleetOptions(
            templates=tuple(templates),
            capacity_type=launch.capacity_type,
            reservation_type=next(iter(kinds), None),
            prioritized=labels.PRICE_OVERLAY_APPLIED in annotations,
            context=None if relaxed else launch.node_class.spec.context,
            tags={**tags, labels.LAUNCH_TAG: digest},
        )
    )


def _groups(launch: LaunchInput) -> dict[_Group, list[tuple[InstanceType, tuple[Offering, ...]]]]:
    wants_efa = bool(parse_resources(launch.claim.spec.resources.requests).get(EFA))
    kubelet = launch.node_class.spec.kubelet
    own_pods = kubelet.max_pods if kubelet is not None else None
    image_of = chooser(launch.node_class.status.amis)
    groups: dict[_Group, list[tuple[InstanceType, tuple[Offering, ...]]]] = {}
    for item in launch.types:
        ami = image_of(item.requirements)
        if ami is None:
            continue
        for reservation, offers in _by_reservation(item, launch.capacity_type).items():
            identifier, kind = reservation
            group = _Group(
                image_id=ami.id,
                image_name=ami.name or "",
                max_pods=own_pods if own_pods is not None else item.capacity.get("pods", 0),
                efa_count=item.capacity.get(EFA, 0) if wants_efa else 0,
                reservation_id=identifier,
                reservation_type=None if kind is None else ReservationType(kind),
            )
            groups.setdefault(group, []).append((item, offers))
    return groups


def _by_reservation(
    item: InstanceType, capacity_type: CapacityType
) -> dict[tuple[str | None, str | None], tuple[Offering, ...]]:
    found: dict[tuple[str | None, str | None], list[Offering]] = {}
    for offer in item.offerings:
        if offer.capacity_type is capacity_type and offer.available:
            found.setdefault((offer.reservation_id, offer.reservation_type), []).append(offer)
    return {key: tuple(offers) for key, offers in found.items()}


def _overrides(
    launch: LaunchInput, group: _Group, pools: Iterable[tuple[InstanceType, tuple[Offering, ...]]]
) -> tuple[Override, ...]:
    return tuple(
        Override(
            instance_type=item.name,
            zone=offer.zone,
            subnet=launch.subnets[offer.zone],
            image_id=group.image_id,
            price=offer.price or 0.0,
        )
        for item, offers in pools
        for offer in offers
        if offer.zone in launch.subnets
    )


def _template_options(launch: LaunchInput, group: _Group, tags: Mapping[str, str]) -> TemplateOptions:
    family = launch.node_class.spec.resolved_ami_family
    text = userdata.render(family, _bootstrap(launch, group, family))
    return TemplateOptions(
        node_class=launch.node_class,
        region=launch.cluster.region,
        image_id=group.image_id,
        user_data=userdata.encode(text) if text else "",
        capacity_type=launch.capacity_type,
        tenancy=launch.tenancy,
        efa_count=group.efa_count,
        ipv6=launch.cluster.ipv6,
        reservation_id=group.reservation_id,
        reservation_type=group.reservation_type,
        reserved_capacity=launch.cluster.reserved_capacity,
        tags=tags,
    )


def _bootstrap(launch: LaunchInput, group: _Group, family: AmiFamily) -> Bootstrap:
    spec = launch.node_class.spec
    return Bootstrap(
        cluster_name=launch.cluster.name,
        endpoint=launch.cluster.endpoint,
        ca_bundle=launch.cluster.ca_bundle,
        service_cidr=launch.cluster.service_cidr,
        labels=_kubelet_labels(launch, family),
        taints=_taints(launch.claim),
        kubelet=_kubelet(launch, group.max_pods),
        raid0=spec.instance_store_policy is InstanceStorePolicy.RAID0,
        image_version=_bottlerocket_version(launch.node_class, group.image_name),
        custom=spec.user_data,
    )


def _kubelet_labels(launch: LaunchInput, family: AmiFamily) -> dict[str, str]:
    found = {
        **launch.claim.metadata.labels,
        labels.CAPACITY_TYPE: launch.capacity_type.value,
    }
    if family is not AmiFamily.CUSTOM:
        found[labels.DO_NOT_SYNC_TAINTS] = "true"
    return {key: value for key, value in sorted(found.items()) if not _is_refused(key)}


def _is_refused(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    return bool(slash) and any(
        domain == refused or domain.endswith(f".{refused}") for refused in _NOT_BY_KUBELET
    )


def _taints(claim: NodeClaim) -> tuple[Taint, ...]:
    given = [Taint.from_spec(spec) for spec in (*claim.spec.taints, *claim.spec.startup_taints)]
    if not any(taint.key == _UNREGISTERED.key for taint in given):
        given.append(_UNREGISTERED)
    return tuple(given)


def _kubelet(launch: LaunchInput, max_pods: int) -> KubeletArgs:
    own = launch.node_class.spec.kubelet
    discovered = (launch.cluster.dns_ip,) if launch.cluster.dns_ip else ()
    if own is None:
        return KubeletArgs(max_pods=max_pods, cluster_dns=discovered)
    return KubeletArgs(
        max_pods=max_pods,
        cluster_dns=own.cluster_dns or discovered,
        pods_per_core=own.pods_per_core,
        system_reserved=own.system_reserved,
        kube_reserved=own.kube_reserved,
        eviction_hard=own.eviction_hard,
        eviction_soft=own.eviction_soft,
        eviction_soft_grace_period=own.eviction_soft_grace_period,
        eviction_max_pod_grace_period=own.eviction_max_pod_grace_period,
        image_gc_high_threshold_percent=own.image_gc_high_threshold_percent,
        image_gc_low_threshold_percent=own.image_gc_low_threshold_percent,
        cpu_cfs_quota=own.cpu_cfs_quota,
    )


_NEWEST: Final = (10**9,)


def _bottlerocket_version(node_class: EC2NodeClass, image_name: str) -> tuple[int, ...] | None:
    """Return the image's version from the alias, else from a name; None when none tells."""
    terms = node_class.spec.ami_selector_terms
    alias = next((term.alias_version for term in terms if term.alias), None)
    if alias is not None:
        return _NEWEST if alias == "latest" else _version(alias)
    names = [*(term.name for term in terms if term.name), image_name]
    names += [ami.name for ami in node_class.status.amis if ami.name]
    for name in names:
        for token in (name or "").split("-"):
            if token.startswith("v") and "." in token and (found := _version(token)) is not None:
                return found
    return None


def _version(text: str) -> tuple[int, ...] | None:
    parts = text.lstrip("v").split(".")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else None

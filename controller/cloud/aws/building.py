"""Puts the AWS provider together for `charpente run`.

Called once at start. Owns the order of construction and nothing after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import attrs
from prometheus_client import CollectorRegistry

from controller.clock import Clock
from controller.cloud.aws.catalogue import Catalogue
from controller.cloud.aws.clusterfacts import ClusterFacts
from controller.cloud.aws.discovery import CapacityDiscovery
from controller.cloud.aws.garbage import InstanceCollector, ProfileCollector
from controller.cloud.aws.gateway import Aws, connect
from controller.cloud.aws.images import Images
from controller.cloud.aws.instances import Instances
from controller.cloud.aws.instancetypes import InstanceTypes
from controller.cloud.aws.launcher import Launcher
from controller.cloud.aws.metrics import AwsMetrics
from controller.cloud.aws.nodeclass import NodeClassReconciler, class_of_gone_claim
from controller.cloud.aws.nodeclasshash import HashReconciler
from controller.cloud.aws.offeringmetrics import OfferingMetrics
from controller.cloud.aws.parts import Parts
from controller.cloud.aws.prices import Prices
from controller.cloud.aws.profiles import Profiles
from controller.cloud.aws.provider import AwsProvider
from controller.cloud.aws.refreshers import (
    CatalogueRefresher,
    ImageInvalidator,
    PriceRefresher,
    TemplateKeeper,
)
from controller.cloud.aws.reservations import CapacityTypeSync, ReservationExpiration
from controller.cloud.aws.selectors import Selectors
from controller.cloud.aws.settings import AwsSettings
from controller.cloud.aws.tagging import TaggingReconciler
from controller.cloud.aws.unavailable import UnavailableOfferings
from controller.cloud.aws.validation import DryRuns
from controller.cluster import Mirror
from controller.kube import Client, ControllerSpec, KubeError, Reconciler, Recorder, Watch, kinds

__all__ = ["AwsOperator", "Surroundings", "assemble", "build"]


@attrs.frozen(kw_only=True, eq=False)
class Surroundings:
    """What the provider lives in."""

    client: Client
    mirror: Mirror
    recorder: Recorder
    clock: Clock
    random: Random
    registry: CollectorRegistry
    """Where the provider's metrics go."""
    server_version: Callable[[], Awaitable[str]]
    """Asks the API server for its version, such as `v1.34.4`."""


@attrs.frozen(kw_only=True, eq=False)
class AwsOperator:
    """The provider and the controllers that keep it going."""

    provider: AwsProvider
    parts: Parts
    controllers: tuple[ControllerSpec, ...]


async def build(settings: AwsSettings, around: Surroundings) -> AwsOperator:
    """Connect to AWS and make the provider; no AWS call is made that could fail for good.

    Raises: ValueError without a region; AwsError when EC2 cannot be reached or read.
    """
    metrics = AwsMetrics(around.registry)
    aws = await asyncio.to_thread(
        connect,
        around.clock,
        user_agent=f"karpenter.sh-{settings.version}",
        region=settings.region,
        observe=metrics.observe_call,
    )
    await aws.ec2.probe()
    operator = assemble(settings, aws, around, metrics, dns_ip=await _dns_ip(around.client))
    await operator.parts.catalogue.refresh()
    return operator


def assemble(
    settings: AwsSettings, aws: Aws, around: Surroundings, metrics: AwsMetrics, *, dns_ip: str | None
) -> AwsOperator:
    """Return the provider and its controllers over a connection; nothing is asked of AWS."""
    parts = _parts(settings, aws, around, metrics, dns_ip=dns_ip)
    provider = AwsProvider(parts, around.mirror, around.clock)
    controllers = (
        *_object_controllers(parts, around),
        *_singletons(parts, provider, metrics, around),
    )
    return AwsOperator(provider=provider, parts=parts, controllers=controllers)


async def _dns_ip(client: Client) -> str | None:
    """Return the cluster IP of kube-dns, or None when it cannot be read."""
    try:
        service = await client.get(kinds.SERVICE, "kube-dns", "kube-system")
    except KubeError:
        return None
    address = service.get("spec", {}).get("clusterIP")
    return address if isinstance(address, str) and address not in ("", "None") else None


def _parts(
    settings: AwsSettings, aws: Aws, around: Surroundings, metrics: AwsMetrics, *, dns_ip: str | None
) -> Parts:
    clock = around.clock
    catalogue = Catalogue(aws.ec2)
    prices = Prices(aws.region, clock, aws.ec2, aws.prices, isolated=settings.isolated_vpc)
    unavailable = UnavailableOfferings(clock)
    types = InstanceTypes(settings, catalogue, prices, unavailable, clock)
    launcher = Launcher(settings, aws.ec2, types, unavailable, clock, metrics.observe_batch)
    return Parts(
        settings=settings,
        aws=aws,
        cluster=ClusterFacts(settings, aws.eks, clock, server_version=around.server_version, dns_ip=dns_ip),
        catalogue=catalogue,
        prices=prices,
        unavailable=unavailable,
        types=types,
        launcher=launcher,
        instances=Instances(aws.ec2, clock, cluster=settings.cluster_name, observe=metrics.observe_batch),
        images=Images(aws.ec2, aws.ssm, clock, ttl=settings.ami_refresh),
        selectors=Selectors(
            aws.ec2,
            clock,
            subnet_ttl=settings.subnet_refresh,
            seen_subnets=launcher.addresses.observe,
            seen_reservations=types.reserved.observe,
        ),
        profiles=Profiles(
            aws.iam,
            clock,
            region=aws.region,
            cluster=settings.cluster_name,
            new_id=lambda: f"{around.random.getrandbits(128):032x}",
        ),
    )


def _object_controllers(parts: Parts, around: Surroundings) -> tuple[ControllerSpec, ...]:
    client, mirror, clock = around.client, around.mirror, around.clock
    dry_runs = DryRuns(parts.settings, parts.aws.ec2, parts.types, parts.launcher.templates, clock)
    classes, claims = Watch(kind=kinds.EC2NODECLASS), Watch(kind=kinds.NODECLAIM)
    gone = Watch(kind=kinds.NODECLAIM, keys=class_of_gone_claim)
    return (
        ControllerSpec(
            reconciler=NodeClassReconciler(parts, dry_runs, client, mirror, around.recorder, clock),
            watches=(classes, gone),
        ),
        ControllerSpec(reconciler=HashReconciler(client, mirror), watches=(classes,)),
        ControllerSpec(
            reconciler=TaggingReconciler(parts, client, mirror, clock), watches=(claims,), workers=1
        ),
        ControllerSpec(
            reconciler=CapacityDiscovery(parts, mirror), watches=(Watch(kind=kinds.NODE),), workers=1
        ),
    )


def _singletons(
    parts: Parts, provider: AwsProvider, metrics: AwsMetrics, around: Surroundings
) -> tuple[ControllerSpec, ...]:
    client, mirror = around.client, around.mirror
    found: list[Reconciler] = [
        CatalogueRefresher(parts),
        PriceRefresher(parts),
        ImageInvalidator(parts),
        TemplateKeeper(parts),
        InstanceCollector(provider, client, mirror, around.clock),
        OfferingMetrics(parts, metrics, mirror),
    ]
    if not parts.settings.isolated_vpc:
        found.append(ProfileCollector(parts, mirror))
    if parts.settings.reserved_capacity:
        found += [CapacityTypeSync(provider, client, mirror), ReservationExpiration(client, mirror)]
    return tuple(ControllerSpec(reconciler=item, singleton=True, workers=1) for item in found)

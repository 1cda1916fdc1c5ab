"""Launches an instance for a claim: filter, choose, make templates, ask for a fleet, read the answer.

Called by the provider's `create` (spec aws/launch §2, §6 to §8). Owns the batching of CreateFleet and
what its errors teach: unavailable offerings, full reservations, subnets without addresses.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import attrs

from controller.clock import Clock
from controller.cloud.aws import fleet, launchfilters
from controller.cloud.aws.addresses import SubnetAddresses
from controller.cloud.aws.batcher import Batcher, ObserveBatch, ignore_batches
from controller.cloud.aws.capacity import EFA
from controller.cloud.aws.errors import AwsError, AwsNotFound
from controller.cloud.aws.gateway import Ec2
from controller.cloud.aws.gateway.records import FleetError, FleetInstance
from controller.cloud.aws.instancetypes import InstanceTypes
from controller.cloud.aws.launchplan import ClusterInput, LaunchInput, LaunchPlan, launch_digest, plan_launch
from controller.cloud.aws.launchtemplates import Templates
from controller.cloud.aws.settings import AwsSettings
from controller.cloud.aws.ttl import TtlCache
from controller.cloud.aws.unavailable import UnavailableOfferings
from controller.cloud.provider import CreateFailed, InsufficientCapacity
from controller.scheduling import CapacityType, InstanceType, Requirements
from framework.api import NodeClaim, labels, parse_resources
from framework.api.ec2nodeclass import EC2NodeClass
from framework.iam.calls import Service, call

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import CreateFleetRequestTypeDef

__all__ = ["LaunchWish", "Launched", "Launcher"]

_PLAN_TTL: Final = timedelta(seconds=30)
_TEMPLATE_GONE: Final = "InvalidLaunchTemplateName.NotFoundException"


@attrs.frozen(kw_only=True, eq=False)
class LaunchWish:
    """Who wants an instance, and what it may be made from."""

    claim: NodeClaim
    node_class: EC2NodeClass
    cluster: ClusterInput
    types: tuple[InstanceType, ...]
    """All types of the class, with the prices that hold for the claim's pool."""


@attrs.frozen(kw_only=True)
class Launched:
    """What a launch brought."""

    instance: FleetInstance
    instance_type: InstanceType
    capacity_type: CapacityType
    tenancy: str
    efa: bool
    reservation_id: str | None
    reservation_type: str | None


@attrs.frozen(kw_only=True, eq=False)
class _Ticket:
    """One claim's share of a fleet request."""

    request: CreateFleetRequestTypeDef
    key: str
    uid: str
    attempt: int
    plan: LaunchPlan
    capacity_type: CapacityType


@attrs.frozen(kw_only=True)
class _Share:
    instance: FleetInstance | None
    errors: tuple[FleetError, ...]


class Launcher:
    """Turns claims into instances."""

    def __init__(
        self,
        settings: AwsSettings,
        ec2: Ec2,
        types: InstanceTypes,
        unavailable: UnavailableOfferings,
        clock: Clock,
        observe: ObserveBatch = ignore_batches,
    ) -> None:
        """Start with no template known and every address free as EC2 says."""
        batch = call(Service.EC2, "CreateFleet").batch
        if batch is None:
            raise ValueError("the call table gives CreateFleet no batch")
        self._settings = settings
        self._ec2 = ec2
        self._types = types
        self._unavailable = unavailable
        self.templates = Templates(ec2, clock, cluster=settings.cluster_name)
        self.addresses = SubnetAddresses(clock)
        self._fleets: Batcher[_Ticket, _Share] = Batcher(
            batch, lambda ticket: ticket.key, self._create_fleet, clock, observe
        )
        self._attempts: dict[str, int] = {}
        self._filtered_from: tuple[InstanceType, ...] = ()
        self._filtered_types: dict[tuple[object, ...], launchfilters.LaunchTypes] = {}
        """Results for claims that are alike, as long as no offering changes."""
        self._plans: TtlCache[tuple[object, ...], tuple[launchfilters.LaunchTypes, LaunchPlan, str]]
        self._plans = TtlCache(clock, _PLAN_TTL)
        """Plans of like launches; each holds its types, whose identity is part of the key."""

    async def launch(self, wanted: LaunchWish) -> Launched:
        """Launch one instance. Raises: InsufficientCapacity, CreateFailed, AwsError."""
        try:
            return await self._launch(wanted)
        except AwsNotFound as exc:
            if exc.code != _TEMPLATE_GONE:
                raise
            return await self._launch(wanted)

    async def _launch(self, wanted: LaunchWish) -> Launched:
        claim, node_class = wanted.claim, wanted.node_class
        requirements = Requirements.from_specs(claim.spec.requirements)
        types = self._filtered(claim, wanted.types, requirements)
        capacity_type = launchfilters.choose_capacity_type(types)
        choice = self.addresses.choose(node_class.status.subnets, _pods_by_zone(types, capacity_type))
        launch = LaunchInput(
            claim=claim,
            node_class=node_class,
            cluster=wanted.cluster,
            types=types,
            capacity_type=capacity_type,
            tenancy=_tenancy(requirements),
            subnets=choice.by_zone,
        )
        used: tuple[str, ...] = ()
        try:
            share = await self._ask(claim, launch)
            if share.instance is not None:
                used = (share.instance.subnet,)
        finally:
            self.addresses.give_back(choice, used)
        if share.instance is None:
            raise _refusal(share.errors)
        return self._launched(launch, share.instance)

    def _filtered(
        self, claim: NodeClaim, types: tuple[InstanceType, ...], requirements: Requirements
    ) -> launchfilters.LaunchTypes:
        requests = parse_resources(claim.spec.resources.requests)
        key = (requirements, tuple(sorted(requests.items())))
        if self._filtered_from is not types:
            self._filtered_from, self._filtered_types = types, {}
        kept = self._filtered_types.get(key)
        if kept is None:
            kept = launchfilters.truncate(launchfilters.filter_types(types, requirements, requests))
            self._filtered_types[key] = kept
        if not kept:
            raise InsufficientCapacity("all requested instance types were unavailable during launch")
        problem = launchfilters.too_few_values(kept, requirements)
        relaxed = claim.metadata.annotations.get(labels.MIN_VALUES_RELAXED) == "true"
        if problem and self._settings.min_values_strict and not relaxed:
            raise CreateFailed("InstanceTypeFilteringFailed", problem)
        return kept

    async def _ask(self, claim: NodeClaim, launch: LaunchInput) -> _Share:
        plan, key = self._plan(launch)
        if plan.fleet is None:
            raise InsufficientCapacity("no capacity offerings are left that have an image and a subnet")
        await asyncio.gather(*(self.templates.ensure(request) for request in plan.templates))
        uid = claim.metadata.uid
        self._attempts[uid] = self._attempts.get(uid, 0) + 1
        share = await self._fleets.submit(
            _Ticket(
                request=plan.fleet,
                key=key,
                uid=uid,
                attempt=self._attempts[uid],
                plan=plan,
                capacity_type=launch.capacity_type,
            )
        )
        if share.instance is not None or all(fleet.is_shortage(error) for error in share.errors):
            del self._attempts[uid]  # this claim will not be launched again
        return share

    def _plan(self, launch: LaunchInput) -> tuple[LaunchPlan, str]:
        """Return the plan of a launch and the name of its request; alike launches share both."""
        key = (
            launch_digest(launch.claim, launch.node_class.metadata.name),
            id(launch.types),
            launch.capacity_type,
            launch.tenancy,
            launch.node_class.metadata.resource_version,
            tuple(sorted(launch.subnets.items())),
            tuple(sorted(launch.claim.metadata.annotations.items())),
            launch.cluster,
            EFA in launch.claim.spec.resources.requests,
        )
        known = self._plans.get(key)
        if known is None:
            plan = plan_launch(launch)
            name = "" if plan.fleet is None else fleet.request_key(plan.fleet)
            known = self._plans.put(key, (launch.types, plan, name))
            self._plans.purge()
        return known[1:]

    async def _create_fleet(self, tickets: Sequence[_Ticket]) -> Sequence[_Share | BaseException]:
        first = tickets[0]
        text = "\n".join(sorted(f"{ticket.uid} {ticket.attempt}" for ticket in tickets))
        token = hashlib.sha256(f"{first.key}\n{text}".encode()).hexdigest()
        try:
            result = await self._ec2.create_fleet(fleet.with_count(first.request, len(tickets), token))
        except AwsError as exc:
            self._learn_from_call(first, exc)
            raise
        self._learn(first, result.errors)
        shares: list[_Share | BaseException] = [
            _Share(instance=instance, errors=result.errors) for instance in result.instances[: len(tickets)]
        ]
        shares += [_Share(instance=None, errors=result.errors)] * (len(tickets) - len(shares))
        return shares

    def _learn_from_call(self, ticket: _Ticket, error: AwsError) -> None:
        if error.code == _TEMPLATE_GONE:
            for request in ticket.plan.templates:
                self.templates.forget(request["LaunchTemplateName"])
        if error.code == fleet.SLR_DENIED:
            self._unavailable.mark_capacity_type(CapacityType.SPOT)

    def _learn(self, ticket: _Ticket, errors: Sequence[FleetError]) -> None:
        for error in errors:
            if ticket.capacity_type is CapacityType.RESERVED:
                reservation = ticket.plan.reservations.get(error.template)
                if reservation is not None:
                    self._types.reserved.exhausted(reservation)
                continue
            if error.code == _TEMPLATE_GONE:
                self.templates.forget(error.template)
            if error.code == fleet.SLR_DENIED:
                self._unavailable.mark_capacity_type(CapacityType.SPOT)
            if error.code == fleet.NO_ADDRESSES and error.zone:
                self._unavailable.mark_zone(error.zone)
            if fleet.is_shortage(error):
                self._unavailable.mark(ticket.capacity_type, error.instance_type, error.zone)

    def _launched(self, launch: LaunchInput, instance: FleetInstance) -> Launched:
        chosen = next(item for item in launch.types if item.name == instance.instance_type)
        offer = next(
            (
                offer
                for offer in chosen.offerings
                if offer.zone == instance.zone and offer.capacity_type is launch.capacity_type
            ),
            None,
        )
        reserved = launch.capacity_type is CapacityType.RESERVED and offer is not None
        reservation_id = offer.reservation_id if reserved and offer else None
        if reservation_id is not None:
            self._types.reserved.launched(reservation_id)
        self._unavailable.launched(launch.capacity_type, instance.instance_type, instance.zone)
        return Launched(
            instance=instance,
            instance_type=chosen,
            capacity_type=launch.capacity_type,
            tenancy=launch.tenancy,
            efa=bool(parse_resources(launch.claim.spec.resources.requests).get(EFA)),
            reservation_id=reservation_id,
            reservation_type=offer.reservation_type if reserved and offer else None,
        )


def _tenancy(requirements: Requirements) -> str:
    wanted = requirements.get(labels.INSTANCE_TENANCY)
    return "default" if wanted is None or wanted.has("default") else "dedicated"


def _pods_by_zone(types: launchfilters.LaunchTypes, capacity_type: CapacityType) -> dict[str, int]:
    least: dict[str, int] = {}
    for item in types:
        pods = item.capacity.get("pods", 0)
        for offer in item.offerings:
            if offer.capacity_type is capacity_type:
                least[offer.zone] = min(least.get(offer.zone, pods), pods)
    return least


def _refusal(errors: Sequence[FleetError]) -> Exception:
    """Return what a fleet without an instance means: try elsewhere, or a reason to show."""
    texts = [f"{error.code}: {error.message}" for error in errors]
    if not texts:
        return CreateFailed("LaunchFailed", "EC2 returned too few instances and named no error")
    if all(fleet.is_shortage(error) or error.code == fleet.SLR_DENIED for error in errors):
        return InsufficientCapacity(fleet.launch_message(texts))
    if any(error.code == _TEMPLATE_GONE for error in errors):
        return AwsNotFound("ec2:CreateFleet", _TEMPLATE_GONE, fleet.launch_message(texts))
    text = fleet.launch_message(texts)
    return CreateFailed(fleet.launch_reason(text), text)

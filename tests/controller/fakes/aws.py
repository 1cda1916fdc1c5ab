"""An AWS account in memory, behind the same methods as the gateways: it keeps state and sends nothing.

For tests that need EC2 to answer in a certain way and no server: request counts, shortages, selectors.
What EC2 really does is the business of the tests against `sandbox.aws`.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from random import Random
from typing import Any

import attrs

from controller.clock import Clock
from controller.cloud.aws import AwsOperator, AwsSettings, Surroundings
from controller.cloud.aws.building import assemble
from controller.cloud.aws.errors import AwsAlreadyExists, AwsDenied, AwsError, AwsNotFound
from controller.cloud.aws.gateway import Aws, Filter, Message
from controller.cloud.aws.gateway.others import ClusterRecord
from controller.cloud.aws.gateway.records import (
    FleetError,
    FleetInstance,
    FleetResult,
    ImageRecord,
    InstanceRecord,
    ProfileRecord,
    ReservationRecord,
    SecurityGroupRecord,
    SubnetRecord,
    TemplateRecord,
)
from controller.cloud.aws.metrics import AwsMetrics
from controller.cloud.aws.shape import TypeShape
from controller.cluster import Shell
from framework.api import labels

Request = Mapping[str, Any]
Tags = Mapping[str, str]


@attrs.frozen(kw_only=True)
class Shortage:
    """Pools without capacity; patterns are shell-style."""

    instance_type: str = "*"
    zone: str = "*"
    capacity_type: str = "*"
    code: str = "InsufficientInstanceCapacity"

    def covers(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        """Tell whether a pool is one of them."""
        mine = (self.instance_type, self.zone, self.capacity_type)
        return all(map(fnmatchcase, (instance_type, zone, capacity_type), mine))


@attrs.define(kw_only=True, eq=False)
class Account:
    """What there is, and what was asked for."""

    clock: Clock
    region: str = "eu-west-2"
    cluster: str = "demo"
    vpc: str | None = "vpc-1"
    shapes: Sequence[TypeShape] = ()
    zones: Sequence[str] = ()
    on_demand: Mapping[str, float] = attrs.Factory(dict)
    spot: Mapping[tuple[str, str], float] = attrs.Factory(dict)
    subnets: list[tuple[SubnetRecord, Tags]] = attrs.Factory(list)
    groups: list[tuple[SecurityGroupRecord, Tags]] = attrs.Factory(list)
    images: dict[str, ImageRecord] = attrs.Factory(dict)
    image_facts: dict[str, Mapping[str, str]] = attrs.Factory(dict)
    """Owner and tags (as `tag:<key>`) of an image, for filters."""
    reservations: list[tuple[ReservationRecord, Tags]] = attrs.Factory(list)
    parameters: dict[str, str] = attrs.Factory(dict)
    has_aliases: bool = True
    """Every public parameter names an image, made when it is first asked for."""
    roles: frozenset[str] | None = None
    """None: every role exists."""
    profiles: dict[str, ProfileRecord] = attrs.Factory(dict)
    queues: frozenset[str] = frozenset()
    messages: list[Message] = attrs.Factory(list)
    instances: dict[str, InstanceRecord] = attrs.Factory(dict)
    ended: set[str] = attrs.Factory(set)
    """Ids of instances that were terminated, which EC2 goes on to know for an hour."""
    answers: dict[str, list[str]] = attrs.Factory(dict)
    """By instance, the states that successive reads of it find, the last one for good; `NotFound` is
    the answer of a replica that does not know it."""
    hidden: set[str] = attrs.Factory(set)
    """Instances that the last read did not find."""
    templates: dict[str, TemplateRecord] = attrs.Factory(dict)
    template_data: dict[str, Request] = attrs.Factory(dict)
    shortages: list[Shortage] = attrs.Factory(list)
    fleet_errors: tuple[str, ...] = ()
    """Codes with which every override fails, in turn."""
    tags_demanded: Mapping[str, Sequence[str]] = attrs.Factory(dict)
    """By action, the condition keys `aws:RequestTag/...` that its policy asks for."""
    calls: list[tuple[str, Any]] = attrs.Factory(list)
    """Every call in order, with its request or first argument."""
    _numbers: itertools.count[int] = attrs.Factory(lambda: itertools.count(1))

    def asked(self, operation: str) -> list[Any]:
        """Return the requests of one operation."""
        return [request for name, request in self.calls if name == operation]

    def answer(self, identifier: str) -> str:
        """Take what the next read of an instance finds, and make it so."""
        states = self.answers[identifier]
        state = states.pop(0) if len(states) > 1 else states[0]
        record = self.instances.get(identifier)
        self.hidden.discard(identifier)
        if state == "NotFound":
            self.hidden.add(identifier)
        if state == "terminated":
            self.ended.add(identifier)
            self.instances.pop(identifier, None)
        elif record is not None and state != "NotFound":
            self.instances[identifier] = attrs.evolve(record, state=state)
        return state

    def next_id(self, prefix: str) -> str:
        """Return a fresh id, such as `i-00000000000000001`."""
        return f"{prefix}-{next(self._numbers):017x}"

    def image(self, name: str, architecture: str) -> str:
        """Return the id of the image of a public parameter, made on first sight."""
        identifier = f"ami-{hashlib.sha256(name.encode()).hexdigest()[:17]}"
        self.images.setdefault(
            identifier,
            ImageRecord(
                id=identifier,
                name=name.strip("/").replace("/", "-"),
                architecture=architecture,
                created=self.clock.now(),
                deprecated_at=None,
            ),
        )
        return identifier

    def gateways(self) -> Aws:
        """Return the account as the provider takes it."""
        doubles: Any = {
            "ec2": FakeEc2(self),
            "iam": FakeIam(self),
            "eks": FakeEks(self),
            "sqs": FakeSqs(self),
            "ssm": FakeSsm(self),
            "prices": FakePriceList(self),
            "caller": None,
        }
        return Aws(region=self.region, **doubles)


def _fits(filters: Iterable[Filter], facts: Mapping[str, str]) -> bool:
    """Tell whether facts (fields by filter name, tags by `tag:<key>`) pass every filter."""
    return all(_passes(each, facts) for each in filters)


def _passes(wanted: Filter, facts: Mapping[str, str]) -> bool:
    if wanted.name == "state":
        return True  # only what is usable is kept
    if wanted.name == "tag-key":
        return any(f"tag:{key}" in facts for key in wanted.values)
    found = facts.get(wanted.name)
    return found is not None and any(fnmatchcase(found, value) for value in wanted.values)


def _tagged(tags: Tags, **fields: str) -> dict[str, str]:
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return {**named, **{f"tag:{key}": value for key, value in tags.items()}}


def request_tags(request: Request, resource: str) -> dict[str, str]:
    """Return the tags that a request gives to one kind of resource."""
    return {
        tag["Key"]: tag["Value"]
        for each in request.get("TagSpecifications", ())
        if each["ResourceType"] == resource
        for tag in each["Tags"]
    }


class FakeEc2:
    def __init__(self, account: Account) -> None:
        self._account = account

    def _note(self, operation: str, request: Any = None) -> None:
        self._account.calls.append((operation, request))

    async def probe(self) -> None:
        return None

    async def instance_types(self) -> tuple[TypeShape, ...]:
        return tuple(sorted(self._account.shapes, key=lambda shape: shape.name))

    async def zone_offerings(self) -> Mapping[str, frozenset[str]]:
        return {shape.name: frozenset(self._account.zones) for shape in self._account.shapes}

    async def spot_prices(self, now: object) -> Mapping[tuple[str, str], float]:
        return self._account.spot

    async def subnets(self, filters: Sequence[Filter]) -> tuple[SubnetRecord, ...]:
        self._note("DescribeSubnets", filters)
        return tuple(
            record
            for record, tags in self._account.subnets
            if _fits(filters, _tagged(tags, subnet_id=record.id, vpc_id=record.vpc))
        )

    async def security_groups(self, filters: Sequence[Filter]) -> tuple[SecurityGroupRecord, ...]:
        self._note("DescribeSecurityGroups", filters)
        return tuple(
            record
            for record, tags in self._account.groups
            if _fits(filters, _tagged(tags, group_id=record.id, group_name=record.name))
        )

    async def images(self, filters: Sequence[Filter], owners: Sequence[str] = ()) -> tuple[ImageRecord, ...]:
        self._note("DescribeImages", (tuple(filters), tuple(owners)))
        found = []
        for identifier, record in sorted(self._account.images.items()):
            facts = {"image-id": identifier, "name": record.name, **self._facts(identifier)}
            if _fits(filters, facts) and (not owners or facts["owner"] in owners):
                found.append(record)
        return tuple(found)

    def _facts(self, identifier: str) -> Mapping[str, str]:
        return {"owner": "amazon", **self._account.image_facts.get(identifier, {})}

    async def reservations(self, filters: Sequence[Filter]) -> tuple[ReservationRecord, ...]:
        self._note("DescribeCapacityReservations", filters)
        return tuple(
            record
            for record, tags in self._account.reservations
            if _fits(
                filters, _tagged(tags, owner_id=record.owner, instance_match_criteria=record.match_criteria)
            )
        )

    async def reservation(self, identifier: str) -> ReservationRecord | None:
        self._note("DescribeCapacityReservations", identifier)
        return next((record for record, _ in self._account.reservations if record.id == identifier), None)

    async def instances(
        self, filters: Sequence[Filter], ids: Sequence[str] = ()
    ) -> tuple[InstanceRecord, ...]:
        self._note("DescribeInstances", tuple(ids))
        known = self._account.instances
        told = {each: self._account.answer(each) for each in ids if each in self._account.answers}
        unknown = set(ids) - set(known) - self._account.ended
        missing = sorted(unknown | {each for each, state in told.items() if state == "NotFound"})
        if missing:
            raise AwsNotFound("ec2:DescribeInstances", "InvalidInstanceID.NotFound", ", ".join(missing))
        return tuple(
            record
            for identifier, record in sorted(known.items())
            if (not ids or identifier in ids)
            and identifier not in self._account.hidden
            and _fits(filters, _tagged(record.tags, instance_id=record.id))
        )

    async def terminate(self, ids: Sequence[str]) -> Mapping[str, str]:
        self._note("TerminateInstances", tuple(ids))
        for identifier in ids:
            if identifier in self._account.answers:
                continue  # its states are given
            if self._account.instances.pop(identifier, None) is not None:
                self._account.ended.add(identifier)
            elif identifier not in self._account.ended:
                raise AwsNotFound("ec2:TerminateInstances", "InvalidInstanceID.NotFound", identifier)
        return dict.fromkeys(ids, "shutting-down")

    async def tag(self, identifier: str, tags: Tags) -> None:
        self._note("CreateTags", (identifier, dict(tags)))
        record = self._account.instances[identifier]
        self._account.instances[identifier] = attrs.evolve(record, tags={**record.tags, **tags})

    async def check_fleet(self, request: Request) -> None:
        self._note("CreateFleet/dry", request)
        self._authorize("ec2:CreateFleet", request, ("fleet", "instance", "volume"))

    async def check_run(self, request: Request) -> None:
        self._note("RunInstances/dry", request)
        self._authorize("ec2:RunInstances", request, ("instance", "volume", "network-interface"))

    def _authorize(self, action: str, request: Request, resources: Iterable[str]) -> None:
        for key in self._account.tags_demanded.get(action, ()):
            tag = key.removeprefix("aws:RequestTag/")
            for resource in resources:
                if tag not in request_tags(request, resource):
                    text = f"no identity-based policy allows {action} on {resource} without {key}"
                    raise AwsDenied(action, "UnauthorizedOperation", text)

    async def create_fleet(self, request: Request) -> FleetResult:
        self._note("CreateFleet", request)
        self._authorize("ec2:CreateFleet", request, ("fleet", "instance", "volume"))
        target = request["TargetCapacitySpecification"]
        kind = "spot" if target["DefaultTargetCapacityType"] == "spot" else "on-demand"
        pools = [
            (override["Priority"], override["InstanceType"], override["AvailabilityZone"], config, override)
            for config in request["LaunchTemplateConfigs"]
            for override in config["Overrides"]
        ]
        errors, chosen = [], None
        for place, (_, name, zone, config, override) in enumerate(sorted(pools, key=lambda each: each[:3])):
            code = self._refusal(place, name, zone, kind)
            template = config["LaunchTemplateSpecification"]["LaunchTemplateName"]
            if code is not None:
                errors.append(
                    FleetError(
                        code=code,
                        message=f"{name} in {zone}: {code}",
                        instance_type=name,
                        zone=zone,
                        subnet=override["SubnetId"],
                        template=template,
                    )
                )
            else:
                chosen = (template, override)
                break
        launched = (
            []
            if chosen is None
            else [self._launch(request, *chosen, kind) for _ in range(target["TotalTargetCapacity"])]
        )
        return FleetResult(instances=tuple(launched), errors=tuple(errors))

    def _refusal(self, place: int, name: str, zone: str, kind: str) -> str | None:
        codes = self._account.fleet_errors
        if codes:
            return codes[place % len(codes)]
        short = next((each for each in self._account.shortages if each.covers(name, zone, kind)), None)
        return None if short is None else short.code

    def _launch(self, request: Request, template: str, override: Request, kind: str) -> FleetInstance:
        identifier = self._account.next_id("i")
        data = self._account.template_data[template]["LaunchTemplateData"]
        reservation = data.get("CapacityReservationSpecification", {})
        target = reservation.get("CapacityReservationTarget", {}).get("CapacityReservationId", "")
        groups = {group for each in data["NetworkInterfaces"] for group in each["Groups"]}
        self._account.instances[identifier] = InstanceRecord(
            id=identifier,
            instance_type=override["InstanceType"],
            image_id=override["ImageId"],
            zone=override["AvailabilityZone"],
            zone_id="",
            state="running",
            launched=self._account.clock.now(),
            subnet=override["SubnetId"],
            security_groups=frozenset(groups),
            tags=request_tags(request, "instance"),
            spot=kind == "spot",
            reservation_id=target,
            reservations_only=bool(target),
            capacity_block=False,
            tenancy=data["Placement"]["Tenancy"],
            efa_interfaces=sum(each.get("InterfaceType") == "efa" for each in data["NetworkInterfaces"]),
        )
        return FleetInstance(
            id=identifier,
            instance_type=override["InstanceType"],
            zone=override["AvailabilityZone"],
            subnet=override["SubnetId"],
            image_id=override["ImageId"],
            template=template,
            spot=kind == "spot",
        )

    async def create_template(self, request: Request) -> TemplateRecord:
        self._note("CreateLaunchTemplate", request)
        self._authorize("ec2:CreateLaunchTemplate", request, ("launch-template",))
        name = request["LaunchTemplateName"]
        if name in self._account.templates:
            code = "InvalidLaunchTemplateName.AlreadyExistsException"
            raise AwsAlreadyExists("ec2:CreateLaunchTemplate", code, name)
        record = TemplateRecord(
            id=self._account.next_id("lt"), name=name, tags=request_tags(request, "launch-template")
        )
        self._account.templates[name] = record
        self._account.template_data[name] = request
        return record

    async def template(self, name: str) -> TemplateRecord | None:
        return self._account.templates.get(name)

    async def templates(self, filters: Sequence[Filter]) -> tuple[TemplateRecord, ...]:
        return tuple(
            record
            for _, record in sorted(self._account.templates.items())
            if _fits(filters, _tagged(record.tags))
        )

    async def delete_template(self, identifier: str) -> None:
        self._note("DeleteLaunchTemplate", identifier)
        kept = {name: each for name, each in self._account.templates.items() if each.id != identifier}
        self._account.templates = kept


class FakeIam:
    def __init__(self, account: Account) -> None:
        self._account = account

    async def profile(self, name: str) -> ProfileRecord | None:
        return self._account.profiles.get(name)

    async def profiles(self, path_prefix: str) -> tuple[ProfileRecord, ...]:
        found = sorted(self._account.profiles.items())
        return tuple(record for _, record in found if record.path.startswith(path_prefix))

    async def create_profile(self, name: str, path: str, tags: Tags) -> None:
        self._account.calls.append(("CreateInstanceProfile", (name, path, dict(tags))))
        self._account.profiles.setdefault(name, ProfileRecord(name=name, path=path, roles=()))

    async def add_role(self, profile: str, role: str) -> None:
        if self._account.roles is not None and role not in self._account.roles:
            text = f"The role with name {role} cannot be found."
            raise AwsNotFound("iam:AddRoleToInstanceProfile", "NoSuchEntity", text)
        self._account.profiles[profile] = attrs.evolve(self._account.profiles[profile], roles=(role,))

    async def remove_role(self, profile: str, role: str) -> None:
        self._account.profiles[profile] = attrs.evolve(self._account.profiles[profile], roles=())

    async def delete_profile(self, profile: str) -> None:
        self._account.calls.append(("DeleteInstanceProfile", profile))
        self._account.profiles.pop(profile, None)


class FakeEks:
    def __init__(self, account: Account) -> None:
        self._account = account

    async def cluster(self, name: str) -> ClusterRecord:
        if name != self._account.cluster:
            raise AwsError("eks:DescribeCluster", "ResourceNotFoundException", f"No cluster found: {name}")
        return ClusterRecord(
            endpoint=f"https://{name}.example",
            version="1.34",
            service_cidr="10.100.0.0/16",
            vpc=self._account.vpc,
        )


class FakeSsm:
    def __init__(self, account: Account) -> None:
        self._account = account

    async def parameter(self, name: str) -> str | None:
        self._account.calls.append(("GetParameter", name))
        known = self._account.parameters.get(name)
        if known is None and self._account.has_aliases and name.startswith("/aws/service/"):
            return self._account.image(name, "arm64" if "arm64" in name else "x86_64")
        return known


class FakePriceList:
    def __init__(self, account: Account) -> None:
        self._account = account

    async def on_demand(self, *, tenancy: str, family: str) -> Mapping[str, float]:
        self._account.calls.append(("GetProducts", family))
        metal = "bare metal" in family
        found = {name: price for name, price in self._account.on_demand.items() if ("metal" in name) is metal}
        return found or {"none.metal": 1.0}


class FakeSqs:
    """A queue that hands out ten messages a call and keeps what was not deleted."""

    def __init__(self, account: Account) -> None:
        self._account = account

    async def queue_url(self, name: str, account: str | None = None) -> str:
        self._account.calls.append(("GetQueueUrl", name))
        if name not in self._account.queues:
            text = "The specified queue does not exist."
            raise AwsNotFound("sqs:GetQueueUrl", "AWS.SimpleQueueService.NonExistentQueue", text)
        return f"https://sqs.{self._account.region}.amazonaws.com/111122223333/{name}"

    async def receive(self, url: str) -> tuple[Message, ...]:
        return tuple(self._account.messages[:10])

    async def delete(self, url: str, receipt: str) -> None:
        self._account.calls.append(("DeleteMessage", receipt))
        self._account.messages = [each for each in self._account.messages if each.receipt != receipt]


def an_operator(
    account: Account, settings: AwsSettings, shell: Shell, *, version: Callable[[], str] = lambda: "1.34"
) -> AwsOperator:
    """Return the real provider and its controllers over the account; `version` is the control plane's."""

    async def server_version() -> str:
        return f"v{version()}.0"

    return assemble(
        settings,
        account.gateways(),
        Surroundings(
            client=shell.client,
            mirror=shell.mirror,
            recorder=shell.recorder,
            clock=shell.clock,
            random=Random(7),  # noqa: S311 - equal names in every run
            registry=shell.metrics.registry,
            server_version=server_version,
        ),
        AwsMetrics(shell.metrics.registry),
        dns_ip=None,
    )


def a_platform(account: Account, *, discovery: str = "demo") -> Account:
    """Give the account a subnet in each zone and one security group, all tagged for discovery."""
    tags = {labels.DISCOVERY_TAG: discovery}
    network = account.vpc or "vpc-1"
    for place, zone in enumerate(account.zones, 1):
        record = SubnetRecord(
            id=f"subnet-{zone[-1]}", zone=zone, zone_id=zone_id(zone, place), vpc=network, free_addresses=4000
        )
        account.subnets.append((record, tags))
    account.groups.append((SecurityGroupRecord(id="sg-1", name="nodes", vpc=network), tags))
    return account


def zone_id(zone: str, place: int) -> str:
    """Return an id for a zone, such as `euw2-az1`."""
    area, side, number = zone[:-1].split("-")
    return f"{area}{side[0]}{number}-az{place}"

"""Every EC2 call the controller makes: plain values in, records out.

Used by the provider's modules; each method names its row in `framework.iam.calls`, so a call without
a permission cannot be written. Owns paging and page sizes. Never batches (see `batcher`), never
caches, never decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import attrs

from controller.cloud.aws.errors import DRY_RUN_OK, AwsError, AwsNotFound
from controller.cloud.aws.gateway import parse
from controller.cloud.aws.gateway.caller import AwsSession, Caller
from controller.cloud.aws.gateway.records import (
    FleetResult,
    ImageRecord,
    InstanceRecord,
    ReservationRecord,
    SecurityGroupRecord,
    StatusRecord,
    SubnetRecord,
    TemplateRecord,
)
from controller.cloud.aws.shape import TypeShape
from framework.iam.calls import Call, Service, call

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import (
        CreateFleetRequestTypeDef,
        CreateLaunchTemplateRequestTypeDef,
        FilterTypeDef,
        PaginatorConfigTypeDef,
        RunInstancesRequestTypeDef,
        TagTypeDef,
    )

__all__ = ["LIVE_STATES", "Ec2", "Filter", "tag_filters"]

LIVE_STATES: Final = ("pending", "running", "shutting-down", "stopped", "stopping")
"""Every state but terminated (spec aws/launch §10)."""

_SPOT_PRODUCTS: Final = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")


@attrs.frozen
class Filter:
    """One filter of a describe call: a name and the values that match."""

    name: str
    values: tuple[str, ...]

    def to_wire(self) -> FilterTypeDef:
        """Return the filter as EC2 takes it."""
        return {"Name": self.name, "Values": list(self.values)}


def tag_filters(tags: Mapping[str, str]) -> tuple[Filter, ...]:
    """Return a filter per tag, sorted by key; the value ``*`` asks only that the key is there."""
    return tuple(
        Filter("tag-key", (key,)) if value == "*" else Filter(f"tag:{key}", (value,))
        for key, value in sorted(tags.items())
    )


def _wire(filters: Iterable[Filter]) -> list[FilterTypeDef]:
    return [item.to_wire() for item in filters]


def _page(row: Call) -> PaginatorConfigTypeDef:
    return {"PageSize": row.page_size} if row.page_size else {}


class Ec2:
    """The EC2 gateway."""

    def __init__(self, session: AwsSession, caller: Caller) -> None:
        """Make the two clients: one that retries, one for dry runs that does not."""
        self._client: EC2Client = session.boto.client("ec2", config=session.config())
        self._single: EC2Client = session.boto.client("ec2", config=session.config(retries=False))
        self._caller = caller

    # Discovery

    async def probe(self) -> None:
        """Ask whether EC2 can be reached and read, changing nothing. Raises: AwsError."""
        row = call(Service.EC2, "DescribeInstanceTypes")
        await self._dry_run(row, lambda: self._client.describe_instance_types(DryRun=True))

    async def instance_types(self) -> tuple[TypeShape, ...]:
        """Return every type that Kubernetes nodes can run on, by name (spec aws/instances §1)."""
        row = call(Service.EC2, "DescribeInstanceTypes")
        wanted = (
            Filter("supported-virtualization-type", ("hvm",)),
            Filter("processor-info.supported-architecture", ("x86_64", "arm64")),
        )

        def read() -> tuple[TypeShape, ...]:
            pages = self._client.get_paginator("describe_instance_types").paginate(
                Filters=_wire(wanted), PaginationConfig=_page(row)
            )
            shapes = [parse.to_shape(item) for page in pages for item in page["InstanceTypes"]]
            return tuple(sorted(shapes, key=lambda shape: shape.name))

        return await self._caller.run(row, read)

    async def zone_offerings(self) -> Mapping[str, frozenset[str]]:
        """Return the zones that offer each type."""
        row = call(Service.EC2, "DescribeInstanceTypeOfferings")

        def read() -> dict[str, frozenset[str]]:
            pages = self._client.get_paginator("describe_instance_type_offerings").paginate(
                LocationType="availability-zone", PaginationConfig=_page(row)
            )
            zones: dict[str, set[str]] = {}
            for page in pages:
                for item in page["InstanceTypeOfferings"]:
                    zones.setdefault(item["InstanceType"], set()).add(item["Location"])
            return {name: frozenset(found) for name, found in sorted(zones.items())}

        return await self._caller.run(row, read)

    async def spot_prices(self, now: datetime) -> Mapping[tuple[str, str], float]:
        """Return the current Linux spot price, USD an hour, by (type, zone)."""
        row = call(Service.EC2, "DescribeSpotPriceHistory")

        def read() -> dict[tuple[str, str], float]:
            pages = self._client.get_paginator("describe_spot_price_history").paginate(
                ProductDescriptions=list(_SPOT_PRODUCTS), StartTime=now, PaginationConfig=_page(row)
            )
            newest: dict[tuple[str, str], tuple[datetime, float]] = {}
            for page in pages:
                for item in page["SpotPriceHistory"]:
                    key = (item["InstanceType"], item["AvailabilityZone"])
                    found = (item["Timestamp"], float(item["SpotPrice"]))
                    if key not in newest or newest[key] < found:
                        newest[key] = found
            return {key: price for key, (_, price) in sorted(newest.items()) if price > 0}

        return await self._caller.run(row, read)

    async def subnets(self, filters: Sequence[Filter]) -> tuple[SubnetRecord, ...]:
        """Return the subnets that pass every filter, by id."""
        row = call(Service.EC2, "DescribeSubnets")

        def read() -> tuple[SubnetRecord, ...]:
            pages = self._client.get_paginator("describe_subnets").paginate(
                Filters=_wire(filters), PaginationConfig=_page(row)
            )
            found = [parse.to_subnet(item) for page in pages for item in page["Subnets"]]
            return tuple(sorted(found, key=lambda subnet: subnet.id))

        return await self._caller.run(row, read)

    async def security_groups(self, filters: Sequence[Filter]) -> tuple[SecurityGroupRecord, ...]:
        """Return the security groups that pass every filter, by id."""
        row = call(Service.EC2, "DescribeSecurityGroups")

        def read() -> tuple[SecurityGroupRecord, ...]:
            pages = self._client.get_paginator("describe_security_groups").paginate(
                Filters=_wire(filters), PaginationConfig=_page(row)
            )
            found = [parse.to_security_group(item) for page in pages for item in page["SecurityGroups"]]
            return tuple(sorted(found, key=lambda group: group.id))

        return await self._caller.run(row, read)

    async def images(self, filters: Sequence[Filter], owners: Sequence[str] = ()) -> tuple[ImageRecord, ...]:
        """Return the available images that pass every filter, deprecated ones included, by id."""
        row = call(Service.EC2, "DescribeImages")
        wanted = (*filters, Filter("state", ("available",)))

        def read() -> tuple[ImageRecord, ...]:
            paginator = self._client.get_paginator("describe_images")
            if owners:
                pages = paginator.paginate(
                    Filters=_wire(wanted),
                    Owners=list(owners),
                    IncludeDeprecated=True,
                    PaginationConfig=_page(row),
                )
            else:
                pages = paginator.paginate(
                    Filters=_wire(wanted), IncludeDeprecated=True, PaginationConfig=_page(row)
                )
            found = [parse.to_image(item) for page in pages for item in page["Images"]]
            return tuple(sorted(found, key=lambda image: image.id))

        return await self._caller.run(row, read)

    async def reservations(self, filters: Sequence[Filter]) -> tuple[ReservationRecord, ...]:
        """Return the active capacity reservations that pass every filter, by id."""
        row = call(Service.EC2, "DescribeCapacityReservations")
        wanted = (*filters, Filter("state", ("active",)))

        def read() -> tuple[ReservationRecord, ...]:
            pages = self._client.get_paginator("describe_capacity_reservations").paginate(
                Filters=_wire(wanted), PaginationConfig=_page(row)
            )
            found = [parse.to_reservation(item) for page in pages for item in page["CapacityReservations"]]
            return tuple(sorted(found, key=lambda item: item.id))

        return await self._caller.run(row, read)

    async def reservation(self, identifier: str) -> ReservationRecord | None:
        """Return one active capacity reservation, or None when there is none of that id."""
        row = call(Service.EC2, "DescribeCapacityReservations")
        wanted = _wire([Filter("state", ("active",))])

        def read() -> list[ReservationRecord]:
            answer = self._client.describe_capacity_reservations(
                CapacityReservationIds=[identifier], Filters=wanted
            )
            return [parse.to_reservation(item) for item in answer["CapacityReservations"]]

        try:
            found = await self._caller.run(row, read)
        except AwsNotFound:
            return None
        return found[0] if found else None

    # Instances

    async def instances(
        self, filters: Sequence[Filter], ids: Sequence[str] = ()
    ) -> tuple[InstanceRecord, ...]:
        """Return the instances not terminated that pass every filter; of these ids when any are given.

        Raises: AwsNotFound when EC2 knows one of the ids not (yet).
        """
        row = call(Service.EC2, "DescribeInstances")
        wanted = _wire((*filters, Filter("instance-state-name", LIVE_STATES)))

        def read() -> tuple[InstanceRecord, ...]:
            paginator = self._client.get_paginator("describe_instances")
            if ids:
                pages = paginator.paginate(InstanceIds=list(ids), Filters=wanted)
            else:
                pages = paginator.paginate(Filters=wanted, PaginationConfig=_page(row))
            found = [
                parse.to_instance(item)
                for page in pages
                for group in page["Reservations"]
                for item in group["Instances"]
            ]
            return tuple(sorted(found, key=lambda instance: instance.id))

        return await self._caller.run(row, read)

    async def statuses(self, filters: Sequence[Filter]) -> tuple[StatusRecord, ...]:
        """Return the status checks of running instances that pass every filter, by id."""
        row = call(Service.EC2, "DescribeInstanceStatus")

        def read() -> tuple[StatusRecord, ...]:
            pages = self._client.get_paginator("describe_instance_status").paginate(
                Filters=_wire(filters), PaginationConfig=_page(row)
            )
            found = [parse.to_status(item) for page in pages for item in page["InstanceStatuses"]]
            return tuple(sorted(found, key=lambda status: status.id))

        return await self._caller.run(row, read)

    async def terminate(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Start ending instances; return the state of each that EC2 answered for. Raises: AwsNotFound."""
        row = call(Service.EC2, "TerminateInstances")

        def act() -> dict[str, str]:
            answer = self._client.terminate_instances(InstanceIds=list(ids))
            return {
                item["InstanceId"]: item["CurrentState"]["Name"] for item in answer["TerminatingInstances"]
            }

        return await self._caller.run(row, act)

    async def tag(self, identifier: str, tags: Mapping[str, str]) -> None:
        """Put tags on one resource; existing keys are overwritten."""
        row = call(Service.EC2, "CreateTags")
        wire: list[TagTypeDef] = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
        await self._caller.run(row, lambda: self._client.create_tags(Resources=[identifier], Tags=wire))

    # Launches

    async def create_fleet(self, request: CreateFleetRequestTypeDef) -> FleetResult:
        """Launch at once what the request asks for; capacity errors are in the answer, not raised."""
        row = call(Service.EC2, "CreateFleet")
        return await self._caller.run(
            row, lambda: parse.to_fleet_result(self._client.create_fleet(**request))
        )

    async def check_fleet(self, request: CreateFleetRequestTypeDef) -> None:
        """Ask whether this CreateFleet would be allowed. Raises: AwsDenied, AwsError."""
        row = call(Service.EC2, "CreateFleet")
        wire: CreateFleetRequestTypeDef = {**request, "DryRun": True}
        await self._dry_run(row, lambda: self._single.create_fleet(**wire))

    async def check_run(self, request: RunInstancesRequestTypeDef) -> None:
        """Ask whether this RunInstances would be allowed. Raises: AwsDenied, AwsError."""
        row = call(Service.EC2, "RunInstances")
        wire: RunInstancesRequestTypeDef = {**request, "DryRun": True}
        await self._dry_run(row, lambda: self._single.run_instances(**wire))

    async def create_template(self, request: CreateLaunchTemplateRequestTypeDef) -> TemplateRecord:
        """Make a launch template. Raises: AwsAlreadyExists, AwsDenied, AwsError."""
        row = call(Service.EC2, "CreateLaunchTemplate")

        def act() -> TemplateRecord:
            return parse.to_template(self._client.create_launch_template(**request)["LaunchTemplate"])

        return await self._caller.run(row, act)

    async def template(self, name: str) -> TemplateRecord | None:
        """Return the launch template of that name, or None."""
        row = call(Service.EC2, "DescribeLaunchTemplates")

        def read() -> list[TemplateRecord]:
            answer = self._client.describe_launch_templates(LaunchTemplateNames=[name])
            return [parse.to_template(item) for item in answer["LaunchTemplates"]]

        try:
            found = await self._caller.run(row, read)
        except AwsNotFound:
            return None
        if len(found) != 1:
            raise AwsError(row.key, "UnexpectedAnswer", f"{len(found)} launch templates are named {name}")
        return found[0]

    async def templates(self, filters: Sequence[Filter]) -> tuple[TemplateRecord, ...]:
        """Return the launch templates that pass every filter, by name."""
        row = call(Service.EC2, "DescribeLaunchTemplates")

        def read() -> tuple[TemplateRecord, ...]:
            pages = self._client.get_paginator("describe_launch_templates").paginate(
                Filters=_wire(filters), PaginationConfig=_page(row)
            )
            found = [parse.to_template(item) for page in pages for item in page["LaunchTemplates"]]
            return tuple(sorted(found, key=lambda item: item.name))

        return await self._caller.run(row, read)

    async def delete_template(self, identifier: str) -> None:
        """Delete a launch template by id; one that is gone already is fine."""
        row = call(Service.EC2, "DeleteLaunchTemplate")
        try:
            await self._caller.run(row, self._client.delete_launch_template, LaunchTemplateId=identifier)
        except AwsNotFound:
            return

    async def _dry_run(self, row: Call, act: Callable[[], object]) -> None:
        try:
            await self._caller.run(row, act)
        except AwsError as exc:
            if exc.code != DRY_RUN_OK:
                raise
        else:
            raise AwsError(row.key, "UnexpectedAnswer", "a dry run was carried out")

"""Capacity reservations and placement groups, which moto does not have at all."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from moto.ec2.exceptions import EC2ClientError

from sandbox.aws.ec2.actions import Ec2Actions, Fields
from sandbox.aws.ec2.records import CapacityReservation, PlacementGroup
from sandbox.aws.market import is_offered
from sandbox.aws.world import ACCOUNT

__all__ = ["CapacityActions"]

PAGE = 1000


_RESERVATION_FIELDS: Fields[CapacityReservation] = {
    "availability-zone": lambda r: r.zone,
    "instance-match-criteria": lambda r: r.match_criteria,
    "instance-type": lambda r: r.instance_type,
    "owner-id": lambda r: r.owner_id,
    "state": lambda r: r.state,
    "tenancy": lambda r: r.tenancy,
}
_GROUP_FIELDS: Fields[PlacementGroup] = {
    "group-id": lambda g: g.id,
    "group-name": lambda g: g.name,
    "state": lambda _: "available",
    "strategy": lambda g: g.strategy,
}


class CapacityActions(Ec2Actions):
    """Create, describe and cancel capacity reservations; create, describe and delete placement groups."""

    def create_capacity_reservation(self) -> str:
        """Reserve capacity of one type in one zone."""
        zone_name, instance_type = self.parameter("AvailabilityZone"), self.parameter("InstanceType")
        if not is_offered(self.region, instance_type, zone_name):
            raise EC2ClientError(
                "Unsupported", f"The instance type {instance_type} is not supported in {zone_name}."
            )
        self.error_on_dryrun()
        reservation = CapacityReservation(
            id=f"cr-{uuid.uuid4().hex[:17]}",
            region=self.region,
            owner_id=ACCOUNT,
            instance_type=instance_type,
            zone=zone_name,
            zone_id=self.ec2_backend.get_zone_by_name(zone_name).zone_id,
            total=int(self.parameter("InstanceCount")),
            created=self.world.now(),
            match_criteria=self.parameter("InstanceMatchCriteria") or "open",
            tenancy=self.parameter("Tenancy") or "default",
            platform=self.parameter("InstancePlatform") or "Linux/UNIX",
            end=self._end_date(),
        )
        self.world.capacity_reservations[reservation.id] = reservation
        for tags in self._parse_tag_specification("capacity-reservation").values():
            self.ec2_backend.tags[reservation.id].update(tags)
        if reservation.end is not None:
            self.world.lifecycle.schedule(reservation.end, lambda: _expire(reservation))
        return self.answer(
            "CreateCapacityReservation", {"CapacityReservation": self._reservation_shown(reservation)}
        )

    def _end_date(self) -> datetime | None:
        raw = self.parameter("EndDate")
        end = datetime.fromisoformat(raw) if isinstance(raw, str) else raw
        return end.replace(tzinfo=self.world.now().tzinfo) if end is not None and end.tzinfo is None else end

    def describe_capacity_reservations(self) -> str:
        """Return reservations by id or filters, paged."""
        self.error_on_dryrun()
        ids = self.parameter("CapacityReservationIds") or []
        mine = {k: r for k, r in self.world.capacity_reservations.items() if r.region == self.region}
        missing = [i for i in ids if i not in mine]
        if missing:
            raise self._unknown(missing[0])
        found = [mine[i] for i in ids] if ids else list(mine.values())
        selected = self.request_filters().select(found, _RESERVATION_FIELDS, self.tags_by_id)
        page, following = self.page(selected, PAGE)
        answer = {"CapacityReservations": [self._reservation_shown(r) for r in page], "NextToken": following}
        return self.answer("DescribeCapacityReservations", answer)

    def modify_capacity_reservation(self) -> str:
        """Change the count or the end."""
        reservation = self._find_reservation()
        if self.parameter("InstanceCount"):
            reservation.total = int(self.parameter("InstanceCount"))
        if self.parameter("EndDate"):
            reservation.end = self._end_date()
        return self.answer("ModifyCapacityReservation", {"Return": True})

    def cancel_capacity_reservation(self) -> str:
        """End a reservation; instances in it run on."""
        reservation = self._find_reservation()
        self.error_on_dryrun()
        reservation.state = "cancelled"
        return self.answer("CancelCapacityReservation", {"Return": True})

    def _find_reservation(self) -> CapacityReservation:
        wanted = self.parameter("CapacityReservationId")
        reservation = self.world.capacity_reservations.get(wanted)
        if reservation is None or reservation.region != self.region:
            raise self._unknown(wanted)
        return reservation

    @staticmethod
    def _unknown(wanted: str) -> EC2ClientError:
        return EC2ClientError(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{wanted}' does not exist."
        )

    def _reservation_shown(self, reservation: CapacityReservation) -> dict[str, Any]:
        return {
            "CapacityReservationId": reservation.id,
            "OwnerId": reservation.owner_id,
            "CapacityReservationArn": f"{_arn(self.region)}:capacity-reservation/{reservation.id}",
            "InstanceType": reservation.instance_type,
            "InstancePlatform": reservation.platform,
            "AvailabilityZone": reservation.zone,
            "AvailabilityZoneId": reservation.zone_id,
            "Tenancy": reservation.tenancy,
            "TotalInstanceCount": reservation.total,
            "AvailableInstanceCount": reservation.available if reservation.state == "active" else 0,
            "EbsOptimized": False,
            "EphemeralStorage": False,
            "State": reservation.state,
            "StartDate": reservation.created,
            "EndDate": reservation.end,
            "EndDateType": "limited" if reservation.end else "unlimited",
            "InstanceMatchCriteria": reservation.match_criteria,
            "CreateDate": reservation.created,
            "ReservationType": reservation.reservation_type,
            "Tags": self.tag_list(reservation.id),
        }

    def create_placement_group(self) -> str:
        """Create a cluster, partition or spread group."""
        name = self.parameter("GroupName")
        if name in {g.name for g in self._groups()}:
            raise EC2ClientError(
                "InvalidPlacementGroup.Duplicate", f"The placement group '{name}' already exists."
            )
        self.error_on_dryrun()
        strategy = self.parameter("Strategy") or "cluster"
        count = self.parameter("PartitionCount")
        group = PlacementGroup(
            id=f"pg-{uuid.uuid4().hex[:17]}",
            region=self.region,
            name=name,
            strategy=strategy,
            partition_count=int(count) if count else (2 if strategy == "partition" else None),
            spread_level=self.parameter("SpreadLevel") or ("rack" if strategy == "spread" else None),
        )
        self.world.placement_groups[group.id] = group
        for tags in self._parse_tag_specification("placement-group").values():
            self.ec2_backend.tags[group.id].update(tags)
        return self.answer("CreatePlacementGroup", {"PlacementGroup": self._group_shown(group)})

    def describe_placement_groups(self) -> str:
        """Return groups by name, id or filters."""
        self.error_on_dryrun()
        names, ids = set(self.parameter("GroupNames") or ()), set(self.parameter("GroupIds") or ())
        groups = self._groups()
        missing = sorted((names - {g.name for g in groups}) | (ids - {g.id for g in groups}))
        if missing:
            raise EC2ClientError(
                "InvalidPlacementGroup.Unknown", f"The Placement Group '{missing[0]}' is unknown."
            )
        wanted = [g for g in groups if not (names or ids) or g.name in names or g.id in ids]
        selected = self.request_filters().select(wanted, _GROUP_FIELDS, self.tags_by_id)
        answer = {"PlacementGroups": [self._group_shown(g) for g in selected]}
        return self.answer("DescribePlacementGroups", answer)

    def delete_placement_group(self) -> str:
        """Delete a group by name."""
        name = self.parameter("GroupName")
        group = next((g for g in self._groups() if g.name == name), None)
        if group is None:
            raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
        self.error_on_dryrun()
        del self.world.placement_groups[group.id]
        self.ec2_backend.tags.pop(group.id, None)
        return self.answer("DeletePlacementGroup", {})

    def _groups(self) -> list[PlacementGroup]:
        return [g for g in self.world.placement_groups.values() if g.region == self.region]

    def _group_shown(self, group: PlacementGroup) -> dict[str, Any]:
        return {
            "GroupId": group.id,
            "GroupName": group.name,
            "GroupArn": f"{_arn(self.region)}:placement-group/{group.name}",
            "State": "available",
            "Strategy": group.strategy,
            "PartitionCount": group.partition_count,
            "SpreadLevel": group.spread_level,
            "Tags": self.tag_list(group.id),
        }


def _arn(region: str) -> str:
    return f"arn:aws:ec2:{region}:{ACCOUNT}"


def _expire(reservation: CapacityReservation) -> None:
    if reservation.state == "active":
        reservation.state = "expired"

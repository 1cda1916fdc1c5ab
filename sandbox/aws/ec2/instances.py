"""Instances: run, describe, stop, terminate.

DescribeInstances keeps the XML of each instance until its state or tags change: moto scans all tags of the
account for every instance it writes, which takes minutes for 5,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError

from sandbox.aws.ec2 import states, xml
from sandbox.aws.ec2.fleet import FleetActions, launch_tags
from sandbox.aws.ec2.instance_answers import described, filter_fields, record_of, state
from sandbox.aws.ec2.launching import Launch, all_instances, check, launch, merged
from sandbox.aws.errors import AwsError
from sandbox.aws.world import ACCOUNT

__all__ = ["InstanceActions"]

PAGE = 1000
"""EC2's largest page of instances."""
_REQUEST_KEYS = (
    "BlockDeviceMappings",
    "CapacityReservationSpecification",
    "EbsOptimized",
    "IamInstanceProfile",
    "ImageId",
    "InstanceMarketOptions",
    "InstanceType",
    "KeyName",
    "MetadataOptions",
    "Monitoring",
    "NetworkInterfaces",
    "Placement",
    "SecurityGroupIds",
    "UserData",
)


class InstanceActions(FleetActions):
    """RunInstances, DescribeInstances and what ends instances."""

    def run_instances(self) -> str:
        """Launch instances from the request laid over its launch template; all of them or none."""
        wanted, count = self._wanted()
        check(self.world, self.ec2_backend, wanted)
        self._check_capacity(wanted)
        self.error_on_dryrun()

        def make() -> list[str]:
            made = launch(self.world, self.ec2_backend, wanted, count, one_reservation=True)
            return [instance.id for instance in made]

        ids = self.once("RunInstances", self.parameter("ClientToken"), make)
        found = self._instances_by_id(ids)
        reservation_id = next(
            (r.id for r in self.ec2_backend.reservations.values() if found[0] in r.instances), ""
        )
        shown = [described(self.world, instance, self.tags_of(instance.id)) for instance in found]
        answer = {"ReservationId": reservation_id, "OwnerId": ACCOUNT, "Groups": [], "Instances": shown}
        return self.answer("RunInstances", answer)

    def _wanted(self) -> tuple[Launch, int]:
        specification = self.parameter("LaunchTemplate") or {}
        version = self.template_version(specification) if specification else None
        request = {key: self.parameter(key) for key in _REQUEST_KEYS}
        data = merged(version.data if version else {}, request)
        interfaces = data.get("NetworkInterfaces") or []
        subnet_id = self.parameter("SubnetId") or next(
            (n["SubnetId"] for n in interfaces if n.get("SubnetId")), None
        )
        subnet = self.ec2_backend.get_subnet(subnet_id) if subnet_id else None
        zone = subnet.availability_zone if subnet else (data.get("Placement") or {}).get("AvailabilityZone")
        market = (data.get("InstanceMarketOptions") or {}).get("MarketType") or "on-demand"
        wanted = Launch(
            region=self.region,
            instance_type=data.get("InstanceType") or "m1.small",
            image_id=data.get("ImageId") or "",
            zone=zone or f"{self.region}a",
            subnet=subnet,
            capacity_type=market,
            data=data,
            tags=launch_tags(
                version.data if version else {}, self.parameter("TagSpecifications", []), version, None
            ),
            client_token=self.parameter("ClientToken"),
        )
        return wanted, int(self.parameter("MaxCount") or self.parameter("MinCount") or 1)

    def _check_capacity(self, wanted: Launch) -> None:
        shortage = self.world.shortages.find(wanted.instance_type, wanted.zone, wanted.capacity_type)
        if shortage is not None and shortage.remaining <= 0:
            raise AwsError(shortage.code, shortage.explained(wanted.instance_type, wanted.zone))

    def describe_instances(self) -> str:
        """Return instances by id or filters, one reservation each, paged."""
        ids = self.parameter("InstanceIds") or []
        if ids and self.parameter("MaxResults"):
            raise EC2ClientError(
                "InvalidParameterCombination",
                "The parameter instancesSet cannot be used with the parameter maxResults",
            )
        self.error_on_dryrun()
        found = self._instances_by_id(ids) if ids else all_instances(self.ec2_backend)
        selected = self.request_filters().select(found, filter_fields(self.world), self.tags_by_id)
        page, following = self.page(selected, PAGE)
        reservations = {i.id: r.id for r in list(self.ec2_backend.reservations.values()) for i in r.instances}
        written = xml.items([self._written(i, reservations[i.id]) for i in page])
        return self.answer("DescribeInstances", {"Reservations": written, "NextToken": following})

    def _written(self, instance: Any, reservation_id: str) -> str:
        """Return the `<item>` of an instance's reservation, kept until something shown changes."""
        tags = self.tags_of(instance.id)
        record = record_of(self.world, instance)
        key = (instance.id, instance.state_code, record.version, tuple(tags.items()))
        if record.rendered is not None and record.rendered[0] == key:
            return record.rendered[1]
        shape = xml.output_shape("DescribeInstances").members["Reservations"].member
        answer = {
            "ReservationId": reservation_id,
            "OwnerId": ACCOUNT,
            "Groups": [],
            "Instances": [described(self.world, instance, tags)],
        }
        text = xml.element("item", shape, answer)
        record.rendered = (key, text)
        return text

    def _instances_by_id(self, ids: Sequence[str]) -> list[Any]:
        known = {instance.id: instance for instance in all_instances(self.ec2_backend)}
        missing = [name for name in ids if name not in known]
        if missing:
            plural = "IDs" if len(missing) > 1 else "ID"
            verb = "do" if len(missing) > 1 else "does"
            raise EC2ClientError(
                "InvalidInstanceID.NotFound", f"The instance {plural} '{', '.join(missing)}' {verb} not exist"
            )
        return [known[name] for name in ids]

    def terminate_instances(self) -> str:
        """Begin ending instances: shutting-down now, terminated after the shutdown time."""
        return self._end("TerminateInstances", "TerminatingInstances", states.begin_termination)

    def stop_instances(self) -> str:
        """Begin stopping instances."""
        return self._end("StopInstances", "StoppingInstances", states.begin_stop)

    def _end(self, operation: str, key: str, begin: Any) -> str:
        found = self._instances_by_id(self.parameter("InstanceIds") or [])
        if not found:
            raise EC2ClientError("InvalidParameterCombination", "No instances specified")
        self.error_on_dryrun()
        for instance in found:
            if operation == "TerminateInstances" and instance.disable_api_termination:
                raise EC2ClientError(
                    "OperationNotPermitted",
                    f"The instance '{instance.id}' may not be terminated. Modify its 'disableApiTermination' "
                    "instance attribute and try again.",
                )
        changes = []
        for instance in found:
            before = state(instance)
            begin(self.world, instance)
            changes.append(
                {"InstanceId": instance.id, "CurrentState": state(instance), "PreviousState": before}
            )
        return self.answer(operation, {key: changes})

    def describe_instance_attribute(self) -> ActionResult | str:
        """Return one attribute; user data without moto's search through all instances."""
        attribute = self.parameter("Attribute")
        if attribute != "userData":
            return super().describe_instance_attribute()
        instance = self._instances_by_id([self.parameter("InstanceId")])[0]
        value = str(instance.user_data) if instance.user_data else None
        answer = {"InstanceId": instance.id, "UserData": {"Value": value}}
        return self.answer("DescribeInstanceAttribute", answer)

    def describe_spot_instance_requests(self) -> str:
        """Return the spot requests behind the live spot instances."""
        wanted = self.parameter("SpotInstanceRequestIds") or []
        found = [
            (record, instance)
            for instance in all_instances(self.ec2_backend)
            if (record := record_of(self.world, instance)).spot_request_id
            and (not wanted or record.spot_request_id in wanted)
        ]
        rows = [
            {
                "SpotInstanceRequestId": record.spot_request_id,
                "InstanceId": instance.id,
                "State": "active" if instance.state in ("pending", "running") else "closed",
                "Type": "one-time",
                "CreateTime": instance.launch_time,
                "LaunchedAvailabilityZone": instance.availability_zone,
                "ProductDescription": "Linux/UNIX",
                "InstanceInterruptionBehavior": "terminate",
            }
            for record, instance in found
        ]
        return self.answer("DescribeSpotInstanceRequests", {"SpotInstanceRequests": rows})

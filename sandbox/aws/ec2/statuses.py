"""DescribeInstanceStatus from the instances' real state and the troubles that were switched on.

moto knows no impaired instance and fails on the filters that ask for one.
"""

from __future__ import annotations

from typing import Any

from sandbox.aws.ec2.actions import Ec2Actions, Fields
from sandbox.aws.ec2.launching import all_instances
from sandbox.aws.ec2.records import Impairment

__all__ = ["StatusActions"]

PAGE = 1000


_FIELDS: Fields[dict[str, Any]] = {
    "event.code": lambda row: [event["Code"] for event in row["Events"]],
    "instance-state-name": lambda row: row["InstanceState"]["Name"],
    "instance-status.status": lambda row: row["InstanceStatus"]["Status"],
    "system-status.status": lambda row: row["SystemStatus"]["Status"],
}


class StatusActions(Ec2Actions):
    """DescribeInstanceStatus."""

    def describe_instance_status(self) -> str:
        """Return the checks of running instances, of the asked-for ones when ids are given."""
        self.error_on_dryrun()
        ids = self.parameter("InstanceIds") or ()
        rows = [
            self._row(each)
            for each in sorted(all_instances(self.ec2_backend), key=lambda instance: str(instance.id))
            if each.state == "running" and (not ids or each.id in ids)
        ]
        page, following = self.page(self.request_filters().select(rows, _FIELDS), PAGE)
        return self.answer("DescribeInstanceStatus", {"InstanceStatuses": page, "NextToken": following})

    def _row(self, instance: Any) -> dict[str, Any]:
        trouble = self.world.impairments.get(instance.id)
        event = trouble.event if trouble is not None else ""
        return {
            "AvailabilityZone": instance.availability_zone,
            "InstanceId": instance.id,
            "InstanceState": {"Code": instance.state_code, "Name": instance.state},
            "InstanceStatus": _summary(trouble, "instance"),
            "SystemStatus": _summary(trouble, "system"),
            "Events": [{"Code": event, "Description": event, "NotBefore": trouble.since}]
            if trouble is not None and event
            else [],
        }


def _summary(trouble: Impairment | None, check: str) -> dict[str, Any]:
    if trouble is None or trouble.check != check:
        return {"Status": "ok", "Details": [{"Name": "reachability", "Status": "passed"}]}
    detail = {"Name": "reachability", "Status": "failed", "ImpairedSince": trouble.since}
    return {"Status": "impaired", "Details": [detail]}

"""Instance types and offerings of a region: filtered, paged, written once per process.

moto answers every region with all types, ignores MaxResults, and takes seconds for the full list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES, InstanceType

from sandbox.aws.ec2 import xml
from sandbox.aws.ec2.actions import Ec2Actions, Fields
from sandbox.aws.market import offered_types

__all__ = ["InstanceTypeActions"]

PAGE = 100
OFFERINGS_PAGE = 1000


@cache
def _written(name: str) -> str:
    shape = xml.output_shape("DescribeInstanceTypes").members["InstanceTypes"].member
    known = shape.members.keys()
    return xml.element(
        "item", shape, _pruned(shape, {k: v for k, v in INSTANCE_TYPES[name].items() if k in known})
    )


def _pruned(shape: Any, value: Any) -> Any:
    """Drop what botocore's model does not have: moto's data file is from another day."""
    if shape.type_name == "structure" and isinstance(value, Mapping):
        return {k: _pruned(shape.members[k], v) for k, v in value.items() if k in shape.members}
    if shape.type_name == "list":
        return [_pruned(shape.member, part) for part in value]
    return value


def _type_field(name: str) -> Callable[[str], object]:
    return lambda instance_type: InstanceType(instance_type).get_filter_value(name)


_TYPE_FIELDS: Fields[str] = {name: _type_field(name) for name in InstanceType._filter_attributes}
_OFFERING_FIELDS: Fields[Mapping[str, str]] = {
    "instance-type": lambda row: row["InstanceType"],
    "location": lambda row: row["Location"],
}


class InstanceTypeActions(Ec2Actions):
    """DescribeInstanceTypes and DescribeInstanceTypeOfferings."""

    def describe_instance_types(self) -> str:
        """Return the types offered in the region, by name, in pages of at most 100."""
        names = self.parameter("InstanceTypes") or []
        self.error_on_dryrun()
        offered = offered_types(self.region)
        unknown = sorted(set(names) - set(offered))
        if unknown:
            raise EC2ClientError(
                "InvalidInstanceType",
                f"The following supplied instance types do not exist: [{', '.join(unknown)}]",
            )
        candidates = [name for name in offered if not names or name in names]
        selected = self.request_filters().select(candidates, _TYPE_FIELDS)
        page, following = self.page(selected, PAGE)
        answer = {"InstanceTypes": xml.items([_written(name) for name in page]), "NextToken": following}
        return self.answer("DescribeInstanceTypes", answer)

    def describe_instance_type_offerings(self) -> str:
        """Return the offerings by location, paged."""
        self.error_on_dryrun()
        kind = self.parameter("LocationType") or "region"
        if kind not in INSTANCE_TYPE_OFFERINGS:
            raise EC2ClientError("InvalidParameterValue", f"'{kind}' is not a valid LocationType.")
        rows = sorted(
            INSTANCE_TYPE_OFFERINGS[kind].get(self.region, ()),
            key=lambda r: (r["InstanceType"], r["Location"]),
        )
        page, following = self.page(self.request_filters().select(rows, _OFFERING_FIELDS), OFFERINGS_PAGE)
        return self.answer(
            "DescribeInstanceTypeOfferings", {"InstanceTypeOfferings": page, "NextToken": following}
        )

"""How an EC2NodeClass picks subnets, security groups, reservations and images (aws/ec2nodeclass §2.1).

Called by `framework.api.ec2nodeclass` and by the look-ups of the AWS provider. Owns the terms and the
rules on lists of them. Terms in a list are ORed, fields and tags inside one term are ANDed.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import attrs

from framework.api.schema import Rule, field, items, mapping
from framework.api.wire import Wire

__all__ = [
    "AmiSelectorTerm",
    "CapacityReservationSelectorTerm",
    "InstanceMatchCriteria",
    "SecurityGroupSelectorTerm",
    "SubnetSelectorTerm",
    "ami_terms",
    "reservation_terms",
    "security_group_terms",
    "subnet_terms",
]

MAX_TERMS: Final = 30
MAX_TERM_TAGS: Final = 20


class InstanceMatchCriteria(StrEnum):
    """Which launches a capacity reservation takes in."""

    OPEN = "open"
    TARGETED = "targeted"


def _tags(what: str) -> Any:
    return mapping(
        f"Tags that the {what} must carry, all of them; * as value takes any value.",
        max_properties=MAX_TERM_TAGS,
        rules=(
            Rule(
                cel="self.all(k, k != '' && self[k] != '')",
                message="a selector tag has an empty key or value; fill it in, or write * for any value",
            ),
        ),
    )


@attrs.frozen(kw_only=True)
class SubnetSelectorTerm(Wire):
    """Picks subnets by tags or by id."""

    tags: Mapping[str, str] = _tags("subnet")
    id: str | None = field("Id of the subnet.", default=None, pattern="subnet-[0-9a-z]+")


@attrs.frozen(kw_only=True)
class SecurityGroupSelectorTerm(Wire):
    """Picks security groups by tags, by id or by name."""

    tags: Mapping[str, str] = _tags("security group")
    id: str | None = field("Id of the security group.", default=None, pattern="sg-[0-9a-z]+")
    name: str | None = field("Name of the security group (the field, not the tag).", default=None)


@attrs.frozen(kw_only=True)
class CapacityReservationSelectorTerm(Wire):
    """Picks capacity reservations by tags, by id or by how they match instances."""

    tags: Mapping[str, str] = _tags("capacity reservation")
    id: str | None = field("Id of the capacity reservation.", default=None, pattern="^cr-[0-9a-z]+$")
    owner_id: str | None = field(
        "Account that owns the reservation; narrows tags and instanceMatchCriteria.",
        default=None,
        name="ownerID",
        pattern="^[0-9]{12}$",
    )
    instance_match_criteria: InstanceMatchCriteria | None = field(
        "Whether the reservation takes any matching instance (open) or only those that name it (targeted).",
        default=None,
    )


ALIAS_FAMILIES: Final[Mapping[str, str]] = {
    "al2": "AL2",
    "al2023": "AL2023",
    "bottlerocket": "Bottlerocket",
    "windows2019": "Windows2019",
    "windows2022": "Windows2022",
    "windows2025": "Windows2025",
}
"""Family part of an alias and the AMI family it stands for."""


@attrs.frozen(kw_only=True)
class AmiSelectorTerm(Wire):
    """Picks machine images by alias, tags, id, name or SSM parameter."""

    alias: str | None = field(
        "Family and version of an EKS optimized image, such as al2023@latest or bottlerocket@v1.20.3.",
        default=None,
        max_length=30,
        pattern="^[a-zA-Z0-9]+@.+$",
        rules=(
            Rule(
                cel=f"self.matches('^({'|'.join(ALIAS_FAMILIES)})@')",
                message="the alias names no known family; "
                f"use one of {', '.join(ALIAS_FAMILIES)} before the @",
            ),
            Rule(
                cel="!self.startsWith('windows') || self.endsWith('@latest')",
                message="Windows images can only be had in the latest version; write @latest",
            ),
        ),
    )
    tags: Mapping[str, str] = _tags("image")
    id: str | None = field("Id of the image.", default=None, pattern="ami-[0-9a-z]+")
    name: str | None = field("Name of the image (the field, not the tag); * and ? match.", default=None)
    owner: str | None = field(
        "Account id or alias that owns the image; narrows name and tags. "
        "Names without an owner look in self and amazon.",
        default=None,
    )
    ssm_parameter: str | None = field("Name or ARN of an SSM parameter that holds an image id.", default=None)

    @property
    def alias_family(self) -> str | None:
        """Return the AMI family that the alias stands for, or None without an alias or for an unknown one."""
        return None if self.alias is None else ALIAS_FAMILIES.get(self.alias.partition("@")[0])

    @property
    def alias_version(self) -> str | None:
        """Return the version after the `@`, or None without an alias."""
        return None if self.alias is None else self.alias.partition("@")[2]


def _terms(description: str, *rules: Rule, optional: bool = False) -> Any:
    schema: dict[str, Any] = {"max_items": MAX_TERMS, "rules": rules}
    if not optional:
        schema |= {"required": True, "min_items": 1}
    return items(description, **schema)


def subnet_terms() -> Any:
    """Declare the list of subnet terms."""
    return _terms(
        "Subnets that nodes may be launched into. A subnet that any of the terms picks counts.",
        Rule(
            cel="self.all(x, has(x.tags) || has(x.id))",
            message="a subnet term picks nothing; give it tags or id",
        ),
        Rule(
            cel="!self.all(x, has(x.id) && has(x.tags))",
            message="a subnet term with id has tags as well; make them two terms",
        ),
    )


def security_group_terms() -> Any:
    """Declare the list of security group terms."""
    return _terms(
        "Security groups of the nodes: all that any of the terms picks.",
        Rule(
            cel="self.all(x, has(x.tags) || has(x.id) || has(x.name))",
            message="a security group term picks nothing; give it tags, id or name",
        ),
        Rule(
            cel="!self.all(x, has(x.id) && (has(x.tags) || has(x.name)))",
            message="a security group term with id has tags or name as well; make them separate terms",
        ),
        Rule(
            cel="!self.all(x, has(x.name) && (has(x.tags) || has(x.id)))",
            message="a security group term with name has tags or id as well; make them separate terms",
        ),
    )


def reservation_terms() -> Any:
    """Declare the list of capacity reservation terms."""
    return _terms(
        "Capacity reservations that nodes may use, ahead of spot and on-demand.",
        Rule(
            cel="self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))",
            message="a capacity reservation term picks nothing; give it tags, id or instanceMatchCriteria",
        ),
        Rule(
            cel="!self.all(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))",
            message="a capacity reservation term with id has other fields as well; make them separate terms",
        ),
        optional=True,
    )


def ami_terms() -> Any:
    """Declare the list of image terms."""
    return _terms(
        "Machine images of the nodes. Per instance type the newest image that suits it is taken.",
        Rule(
            cel="self.all(x, has(x.tags) || has(x.id) || has(x.name) || has(x.alias) || has(x.ssmParameter))",
            message="an image term picks nothing; give it alias, tags, id, name or ssmParameter",
        ),
        Rule(
            cel="!self.exists(x, has(x.id) && (has(x.alias) || has(x.tags) || has(x.name) || has(x.owner)))",
            message="an image term with id has other fields as well; make them separate terms",
        ),
        Rule(
            cel="!self.exists(x, has(x.alias) && (has(x.id) || has(x.tags) || has(x.name) || has(x.owner)))",
            message="an image term with alias has other fields as well; keep the alias alone",
        ),
        Rule(
            cel="!(self.exists(x, has(x.alias)) && self.size() != 1)",
            message="an alias must be the only image term; remove the others or the alias",
        ),
    )

"""What one resource type has to say for itself.

Called by the provider, implemented by the modules named after services. Owns the
contract: a type declares what forces replacement and what is filled in, and makes,
reads, changes and removes one object with boto3.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from sandbox.pulumi_aws.session import Session
from sandbox.pulumi_aws.wire import Properties, Value

GONE = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "InvalidAllocationID.NotFound",
        "InvalidAssociationID.NotFound",
        "InvalidGroup.NotFound",
        "InvalidInternetGatewayID.NotFound",
        "InvalidRoute.NotFound",
        "InvalidRouteTableID.NotFound",
        "InvalidSubnetID.NotFound",
        "InvalidVpcEndpointId.NotFound",
        "InvalidVpcID.NotFound",
        "NatGatewayNotFound",
        "NoSuchEntity",
        "NotFoundException",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
    }
)
"""Error codes with which AWS says that an object is not there."""


class Resource(abc.ABC):
    """One resource type of the AWS provider."""

    type: ClassVar[str]
    """Such as `aws:ec2/vpc:Vpc`."""
    force_new: ClassVar[frozenset[str]] = frozenset()
    """Inputs whose change replaces the object."""
    defaults: ClassVar[Mapping[str, Value]] = {}
    """Values of inputs that the program did not give."""
    autoname: ClassVar[str | None] = None
    """The input that gets a generated name when the program gave none."""

    @abc.abstractmethod
    def create(self, session: Session, inputs: Properties) -> str:
        """Make the object and return its id."""

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:  # noqa: B027 (most types have nothing to finish)
        """Finish a new object; when this fails the id is kept and the next update tries again."""

    @abc.abstractmethod
    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The object's outputs, or None when it is gone. An import has empty inputs."""

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Change the object in place; by default whatever is not ForceNew is set again."""
        self.configure(session, identifier, new)

    @abc.abstractmethod
    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the object; `state` is its last outputs. A missing object is fine."""


def tag_list(tags: Mapping[str, str], key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    """Tags in the list form that most services take."""
    return [{key: name, value: text} for name, text in sorted(tags.items())]


def tag_map(tags: list[dict[str, str]] | None) -> dict[str, str]:
    """Tags from the list form; those of AWS itself are left out."""
    return {tag["Key"]: tag["Value"] for tag in tags or [] if not tag["Key"].startswith("aws:")}


def declared_tags(inputs: Mapping[str, Value], found: Mapping[str, str], session: Session) -> dict[str, str]:
    """The `tags` output: without the provider's default tags unless the program declared them too."""
    wanted = inputs.get("tags") or {}
    return {
        key: value for key, value in found.items() if key in wanted or session.default_tags.get(key) != value
    }


def changed_tags(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Keys to remove and tags to set."""
    gone = sorted(key for key in old if key not in new)
    return gone, {key: value for key, value in new.items() if old.get(key) != value}


def picked(values: Mapping[str, Value], names: Mapping[str, str]) -> dict[str, Any]:
    """The values that are there, renamed: wire name → name in the API."""
    return {name: values[key] for key, name in names.items() if values.get(key) is not None}


Function = Callable[[Session, Properties], Properties]
"""A function of the provider: arguments in, result out."""

"""EC2 put together: the actions of this package in front of moto's, bound to a world."""

from __future__ import annotations

from typing import Any

import moto.ec2.urls
from moto.ec2.models.core import TaggedEC2Resource

from sandbox.aws.ec2.capacity import CapacityActions
from sandbox.aws.ec2.images import ImageActions
from sandbox.aws.ec2.instance_types import InstanceTypeActions
from sandbox.aws.ec2.instances import InstanceActions
from sandbox.aws.ec2.launch_templates import LaunchTemplateActions
from sandbox.aws.ec2.network import NetworkActions
from sandbox.aws.ec2.spot_prices import SpotPriceActions
from sandbox.aws.ec2.statuses import StatusActions
from sandbox.aws.world import World

__all__ = ["install"]


class Ec2(
    InstanceActions,
    StatusActions,
    InstanceTypeActions,
    LaunchTemplateActions,
    ImageActions,
    SpotPriceActions,
    CapacityActions,
    NetworkActions,
):
    """Every EC2 action of the sandbox."""


def _tags_of(resource: Any) -> list[dict[str, str]]:
    """Return a resource's tags in moto's form.

    moto looks for them among all tags of the region by regular expression, for every resource it filters.
    """
    tags = resource.ec2_backend.tags.get(resource.id, {})
    return [
        {"resource_id": resource.id, "key": key, "value": value, "resource_type": ""}
        for key, value in tags.items()
    ]


def install(world: World) -> None:
    """Let moto's EC2 address answer with these actions. Call before the application is made."""
    Ec2.world = world
    moto.ec2.urls.url_paths["{0}/"] = Ec2.dispatch
    TaggedEC2Resource.get_tags = _tags_of

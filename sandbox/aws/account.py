"""The account as a whole: regions with images and parameters, and starting over."""

from __future__ import annotations

import attrs
from moto.core.base_backend import BackendDict
from moto.ec2 import ec2_backends

from sandbox.aws.ec2.images import load_images
from sandbox.aws.errors import NotModelled
from sandbox.aws.iam import load_managed_policies
from sandbox.aws.parameters import load_parameters
from sandbox.aws.world import ACCOUNT, World

__all__ = ["empty", "prepare_region"]

_SETTINGS = frozenset({"now", "region", "lock", "timings", "node_boot", "cluster_endpoint", "requests"})
"""What starting over keeps: how the sandbox behaves, not what the account holds."""


def prepare_region(world: World, region: str) -> None:
    """Load a region's images and parameters at its first use. Raises NotModelled for an unknown region."""
    if region in world.prepared_regions:
        return
    try:
        backend = ec2_backends[ACCOUNT][region]
    except KeyError as exc:
        raise NotModelled(f"region {region}") from exc
    load_images(world, backend, region)
    load_parameters(world, region)
    world.prepared_regions.add(region)


def empty(world: World) -> None:
    """Throw away every resource, fault and shortage, moto's state of this process included."""
    BackendDict.reset()
    fresh = World(now=world.now, region=world.region)
    for field in attrs.fields(World):
        if field.name not in _SETTINGS:
            setattr(world, field.name, getattr(fresh, field.name))
    load_managed_policies()
    prepare_region(world, world.region)

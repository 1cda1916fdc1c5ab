"""SSM parameters under /aws, which users cannot write: loaded from the catalogue, changed by control."""

from __future__ import annotations

from moto.ssm import ssm_backends
from moto.ssm.models import Parameter

from sandbox.aws.image_catalogue import catalogue
from sandbox.aws.world import ACCOUNT, World

__all__ = ["load_parameters", "set_parameter"]


def load_parameters(world: World, region: str) -> None:
    """Put the parameters that name the EKS images of a region into moto's backend."""
    for image in catalogue(region):
        for name in image.parameters:
            set_parameter(world, region, name, image.id)


def set_parameter(world: World, region: str, name: str, value: str) -> None:
    """Write a parameter of any path, past moto's guard of /aws, as its owner would; versions count up."""
    stored = ssm_backends[ACCOUNT][region]._parameters
    versions = dict.get(stored, name) or []
    parameter = Parameter(
        account_id=ACCOUNT,
        name=name,
        value=value,
        parameter_type="String",
        description="",
        allowed_pattern=None,
        keyid=None,
        last_modified_date=world.now(),
        version=len(versions) + 1,
        data_type="text",
    )
    dict.__setitem__(stored, name, [*versions, parameter])

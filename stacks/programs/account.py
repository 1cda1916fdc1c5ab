"""Where a program runs: account, region, partition, zones.

Called by the programs. Owns the look-ups that are known at every preview.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import pulumi_aws as aws
from pulumi.runtime import config as pulumi_config

from framework.api import UserError
from stacks.programs.config import NAMESPACE, StackConfig

_ZONES = 3


class NoAccount(UserError):
    """AWS cannot be asked, or does not accept the credentials."""

    def __init__(self, problem: str) -> None:
        """Say what AWS, or the way to it, answered."""
        super().__init__(f"AWS does not say who is calling: {problem}; check credentials, region and network")


@attrs.frozen(kw_only=True)
class Account:
    """The account and region of the AWS provider in use."""

    number: str
    region: str
    partition: str


def stack_config() -> StackConfig:
    """The configuration of the running stack. Raises InvalidConfig."""
    prefix = f"{NAMESPACE}:"
    found: Mapping[str, str] = {**pulumi_config.get_config_env(), **pulumi_config.CONFIG.get()}
    return StackConfig.read(
        {key.removeprefix(prefix): str(value) for key, value in found.items() if key.startswith(prefix)}
    )


def current_account() -> Account:
    """The account that the credentials belong to. Raises NoAccount."""
    try:
        number = aws.get_caller_identity().account_id
    except Exception as error:
        raise NoAccount(str(error)) from error
    return Account(
        number=number,
        region=aws.get_region().region,
        partition=aws.get_partition().partition,
    )


def zones(config: StackConfig) -> Sequence[str]:
    """The zones to use: those configured, else the region's first three; local zones are left out."""
    if config.zones:
        return config.zones
    found = aws.get_availability_zones(
        state="available",
        filters=[aws.GetAvailabilityZonesFilterArgs(name="opt-in-status", values=["opt-in-not-required"])],
    )
    return sorted(found.names)[:_ZONES]

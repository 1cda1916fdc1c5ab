"""The network that the cluster stands in: made here, or found by id or tag.

Called by the cluster's program. Owns the look-up of a network that exists and what it must have; tags and
changes nothing there.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pulumi
import pulumi_aws as aws

from framework.api import labels
from framework.components import Network, NetworkArgs
from stacks.programs.account import Account, zones
from stacks.programs.config import InvalidConfig, StackConfig

_ZONES = 2
"""EKS puts its interfaces into two zones or more."""


@attrs.frozen(kw_only=True)
class NetworkFacts:
    """A network, wherever it comes from."""

    vpc_id: pulumi.Input[str]
    private_subnet_ids: pulumi.Input[Sequence[str]]
    public_subnet_ids: pulumi.Input[Sequence[str]] | None
    """None for a network that exists: nothing here uses them."""
    made: Sequence[pulumi.Resource] = ()
    """What must be there before anything starts in it."""


def declare_network(config: StackConfig, account: Account) -> NetworkFacts:
    """Declare the network, or find the one that `charpente:vpc` names. Raises InvalidConfig."""
    if config.vpc is not None:
        return _existing(config, config.vpc)
    network = Network(
        "network",
        NetworkArgs(
            cluster_name=config.cluster_name,
            region=account.region,
            zones=zones(config),
            cidr=config.vpc_cidr,
            nat=config.nat_gateways,
            tags=config.tags,
        ),
    )
    return NetworkFacts(
        vpc_id=network.vpc_id,
        private_subnet_ids=network.private_subnet_ids,
        public_subnet_ids=network.public_subnet_ids,
        made=[network],
    )


def _existing(config: StackConfig, vpc: str) -> NetworkFacts:
    key, separator, value = vpc.partition("=")
    try:
        found = aws.ec2.get_vpc(tags={key: value}) if separator else aws.ec2.get_vpc(id=vpc)
    except Exception as error:
        raise InvalidConfig("vpc", vpc, f"the id of a VPC, or key=value of a tag on one ({error})") from error
    tag = {labels.DISCOVERY_TAG: config.cluster_name}
    inside = aws.ec2.GetSubnetsFilterArgs(name="vpc-id", values=[found.id])
    subnets = sorted(aws.ec2.get_subnets(filters=[inside], tags=tag).ids)
    there = {aws.ec2.get_subnet(id=subnet).availability_zone for subnet in subnets}
    if len(there) < _ZONES:
        raise InvalidConfig(
            "vpc",
            vpc,
            "a VPC with subnets in two zones or more that carry "
            f"{labels.DISCOVERY_TAG}={config.cluster_name} "
            f"(found {', '.join(subnets) or 'none'} in {', '.join(sorted(there)) or 'no zone'}); tag the "
            "private subnets for nodes",
        )
    return NetworkFacts(vpc_id=found.id, private_subnet_ids=subnets, public_subnet_ids=None)

"""The network of a cluster: a VPC with public and private subnets over the zones.

Called by the programs in `stacks/`. Owns routes, the way out and the tags by which
load balancers and node classes find subnets (spec aws/iam-and-bootstrap section 4).
Tags exactly the private subnets for discovery; never tags a security group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import attrs
import pulumi
import pulumi_aws as aws

from framework.api import labels
from framework.components.addresses import ZonePlan, plan_zones
from framework.components.endpoints import Endpoints, EndpointsArgs

_INTERNAL_LOAD_BALANCERS = "kubernetes.io/role/internal-elb"
_PUBLIC_LOAD_BALANCERS = "kubernetes.io/role/elb"
_ANYWHERE = "0.0.0.0/0"


class NatMode(StrEnum):
    """How private subnets reach the internet."""

    SINGLE = "single"
    """One gateway for all zones: cheapest, lost with its zone."""
    PER_ZONE = "per-zone"
    """A gateway in each zone."""
    NONE = "none"
    """No way out: a private cluster with endpoints."""


@attrs.frozen(kw_only=True)
class NetworkArgs:
    """What a network is made from."""

    cluster_name: str
    region: str
    zones: Sequence[str]
    cidr: str = "10.0.0.0/16"
    nat: NatMode = attrs.field(default=NatMode.SINGLE, converter=NatMode)
    tags: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class _Zone:
    """The resources of one zone that others refer to."""

    plan: ZonePlan
    public: aws.ec2.Subnet
    private: aws.ec2.Subnet


class Network(pulumi.ComponentResource):
    """A VPC. Outputs: `vpc_id`, `private_subnet_ids`, `public_subnet_ids`."""

    vpc_id: pulumi.Output[str]
    private_subnet_ids: pulumi.Output[Sequence[str]]
    public_subnet_ids: pulumi.Output[Sequence[str]]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the network. Raises UnplannableNetwork for a network or zones that cannot be laid out."""
        super().__init__("charpente:aws:Network", name, None, opts)
        plans = plan_zones(args.cidr, args.zones)
        self._name, self._args = name, args
        self._vpc = aws.ec2.Vpc(
            f"{name}-vpc",
            cidr_block=args.cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=self._tags(args.cluster_name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        gateway = aws.ec2.InternetGateway(
            f"{name}-internet",
            vpc_id=self._vpc.id,
            tags=self._tags(args.cluster_name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        zones = [self._subnets(plan) for plan in plans]
        public_table = self._public_routes(gateway, zones)
        nat_gateways = self._nat_gateways(zones, gateway)
        private_tables = [self._private_routes(zone, nat_gateways) for zone in zones]
        self._storage_endpoint([public_table, *private_tables])

        self.vpc_id = self._vpc.id
        self.private_subnet_ids = pulumi.Output.all(*[zone.private.id for zone in zones])
        self.public_subnet_ids = pulumi.Output.all(*[zone.public.id for zone in zones])
        if args.nat is NatMode.NONE:
            self._endpoints()
        self.register_outputs(
            {
                "vpc_id": self.vpc_id,
                "private_subnet_ids": self.private_subnet_ids,
                "public_subnet_ids": self.public_subnet_ids,
            }
        )

    def _tags(self, title: str, **extra: str) -> dict[str, str]:
        return {**self._args.tags, **extra, "Name": title}

    def _subnets(self, plan: ZonePlan) -> _Zone:
        cluster = self._args.cluster_name
        options = pulumi.ResourceOptions(parent=self)
        public = aws.ec2.Subnet(
            f"{self._name}-public-{plan.zone}",
            vpc_id=self._vpc.id,
            cidr_block=plan.public_cidr,
            availability_zone=plan.zone,
            map_public_ip_on_launch=False,
            tags={**self._tags(f"{cluster}-public-{plan.zone}"), _PUBLIC_LOAD_BALANCERS: "1"},
            opts=options,
        )
        private = aws.ec2.Subnet(
            f"{self._name}-private-{plan.zone}",
            vpc_id=self._vpc.id,
            cidr_block=plan.private_cidr,
            availability_zone=plan.zone,
            map_public_ip_on_launch=False,
            tags={
                **self._tags(f"{cluster}-private-{plan.zone}"),
                _INTERNAL_LOAD_BALANCERS: "1",
                labels.DISCOVERY_TAG: cluster,
            },
            opts=options,
        )
        return _Zone(plan=plan, public=public, private=private)

    def _table(self, suffix: str, subnets: Mapping[str, aws.ec2.Subnet]) -> aws.ec2.RouteTable:
        table = aws.ec2.RouteTable(
            f"{self._name}-{suffix}",
            vpc_id=self._vpc.id,
            tags=self._tags(f"{self._args.cluster_name}-{suffix}"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        for zone, subnet in subnets.items():
            aws.ec2.RouteTableAssociation(
                f"{self._name}-{suffix.split('-')[0]}-{zone}",
                route_table_id=table.id,
                subnet_id=subnet.id,
                opts=pulumi.ResourceOptions(parent=self),
            )
        return table

    def _public_routes(self, gateway: aws.ec2.InternetGateway, zones: Sequence[_Zone]) -> aws.ec2.RouteTable:
        table = self._table("public", {zone.plan.zone: zone.public for zone in zones})
        aws.ec2.Route(
            f"{self._name}-public-out",
            route_table_id=table.id,
            destination_cidr_block=_ANYWHERE,
            gateway_id=gateway.id,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return table

    def _nat_gateways(
        self, zones: Sequence[_Zone], gateway: aws.ec2.InternetGateway
    ) -> Mapping[str, aws.ec2.NatGateway]:
        """The gateway that each zone uses, by zone."""
        if self._args.nat is NatMode.NONE:
            return {}
        homes = zones if self._args.nat is NatMode.PER_ZONE else zones[:1]
        made = {}
        for zone in homes:
            title = f"{self._args.cluster_name}-nat-{zone.plan.zone}"
            address = aws.ec2.Eip(
                f"{self._name}-nat-{zone.plan.zone}",
                domain="vpc",
                tags=self._tags(title),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[gateway]),
            )
            made[zone.plan.zone] = aws.ec2.NatGateway(
                f"{self._name}-nat-{zone.plan.zone}",
                allocation_id=address.id,
                subnet_id=zone.public.id,
                tags=self._tags(title),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[gateway]),
            )
        shared = made[homes[0].plan.zone]
        return {zone.plan.zone: made.get(zone.plan.zone, shared) for zone in zones}

    def _private_routes(self, zone: _Zone, gateways: Mapping[str, aws.ec2.NatGateway]) -> aws.ec2.RouteTable:
        name = zone.plan.zone
        table = self._table(f"private-{name}", {name: zone.private})
        if name in gateways:
            aws.ec2.Route(
                f"{self._name}-private-out-{name}",
                route_table_id=table.id,
                destination_cidr_block=_ANYWHERE,
                nat_gateway_id=gateways[name].id,
                opts=pulumi.ResourceOptions(parent=self),
            )
        return table

    def _endpoints(self) -> None:
        args = self._args
        Endpoints(
            f"{self._name}-endpoints",
            EndpointsArgs(
                cluster_name=args.cluster_name,
                region=args.region,
                cidr=args.cidr,
                vpc_id=self.vpc_id,
                subnet_ids=self.private_subnet_ids,
                tags=args.tags,
            ),
            pulumi.ResourceOptions(parent=self),
        )

    def _storage_endpoint(self, tables: Sequence[aws.ec2.RouteTable]) -> None:
        """Image layers come from S3: through an endpoint they cost nothing and need no way out."""
        aws.ec2.VpcEndpoint(
            f"{self._name}-s3",
            vpc_id=self._vpc.id,
            service_name=f"com.amazonaws.{self._args.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=pulumi.Output.all(*[table.id for table in tables]).apply(sorted),
            tags=self._tags(f"{self._args.cluster_name}-s3"),
            opts=pulumi.ResourceOptions(parent=self),
        )

"""The ways to AWS's services that a cluster needs which has no way out.

Called by `framework.components.network` for a network without NAT. Owns the list of services (spec
aws/iam-and-bootstrap section 9) and the group through which they are reached. IAM and Pricing have no such
endpoint: the controller then runs with `isolatedVpc` and an instance profile made beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import pulumi
import pulumi_aws as aws

SERVICES = ("ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts")
_HTTPS = 443


@attrs.frozen(kw_only=True)
class EndpointsArgs:
    """Where the endpoints are."""

    cluster_name: str
    region: str
    cidr: str
    """Who may use them: the whole network."""
    vpc_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[str]]
    tags: Mapping[str, str] = attrs.field(factory=dict)


class Endpoints(pulumi.ComponentResource):
    """Interface endpoints under the services' own names. Has no outputs."""

    def __init__(self, name: str, args: EndpointsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare group and endpoints."""
        super().__init__("charpente:aws:Endpoints", name, None, opts)
        group = aws.ec2.SecurityGroup(
            f"{name}-group",
            description=f"HTTPS to AWS from the network of {args.cluster_name}",
            vpc_id=args.vpc_id,
            ingress=[
                aws.ec2.SecurityGroupIngressArgs(
                    protocol="tcp", from_port=_HTTPS, to_port=_HTTPS, cidr_blocks=[args.cidr]
                )
            ],
            tags={**args.tags, "Name": f"{args.cluster_name}-endpoints"},
            opts=pulumi.ResourceOptions(parent=self),
        )
        for service in SERVICES:
            aws.ec2.VpcEndpoint(
                f"{name}-{service}",
                vpc_id=args.vpc_id,
                service_name=f"com.amazonaws.{args.region}.{service}",
                vpc_endpoint_type="Interface",
                subnet_ids=args.subnet_ids,
                security_group_ids=[group.id],
                private_dns_enabled=True,
                tags={**args.tags, "Name": f"{args.cluster_name}-{service}"},
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})

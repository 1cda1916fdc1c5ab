"""Fargate for the controller and the cluster's DNS, instead of nodes of their own.

Called by the programs in `stacks/`. Owns the profile and the role that pulls images. Pods on Fargate have no
pod identity: the controller's role comes by IRSA.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import pulumi
import pulumi_aws as aws

from framework.components.deployment import SELECTOR
from framework.iam.trust import fargate_trust

_POLICY = "AmazonEKSFargatePodExecutionRolePolicy"
DNS_SETTINGS = '{"computeType":"Fargate"}'
"""What makes the add-on of the cluster's DNS run there."""


@attrs.frozen(kw_only=True)
class FargateCapacityArgs:
    """What runs on Fargate, and where."""

    cluster: pulumi.Input[str]
    partition: str
    subnet_ids: pulumi.Input[Sequence[str]]
    """Private ones; Fargate takes no others."""
    namespace: str = "kube-system"
    """The controller's."""
    tags: Mapping[str, str] = attrs.field(factory=dict)


class FargateCapacity(pulumi.ComponentResource):
    """A Fargate profile. Output: `role_arn`."""

    role_arn: pulumi.Output[str]
    profile: aws.eks.FargateProfile

    def __init__(
        self, name: str, args: FargateCapacityArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare role and profile."""
        super().__init__("charpente:aws:FargateCapacity", name, None, opts)
        role = aws.iam.Role(
            f"{name}-role",
            assume_role_policy=fargate_trust().to_json(),
            tags=dict(args.tags),
            opts=pulumi.ResourceOptions(parent=self),
        )
        attachment = aws.iam.RolePolicyAttachment(
            f"{name}-{_POLICY}",
            role=role.name,
            policy_arn=f"arn:{args.partition}:iam::aws:policy/{_POLICY}",
            opts=pulumi.ResourceOptions(parent=role),
        )
        selectors = ((args.namespace, dict(SELECTOR)), ("kube-system", {"k8s-app": "kube-dns"}))
        self.profile = aws.eks.FargateProfile(
            f"{name}-profile",
            cluster_name=args.cluster,
            pod_execution_role_arn=role.arn,
            subnet_ids=args.subnet_ids,
            selectors=[
                aws.eks.FargateProfileSelectorArgs(namespace=namespace, labels=labels)
                for namespace, labels in selectors
            ],
            tags=dict(args.tags),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[attachment]),
        )
        self.role_arn = role.arn
        self.register_outputs({"role_arn": self.role_arn})

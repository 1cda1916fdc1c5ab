"""The nodes on which the controller itself runs.

Called by the programs in `stacks/`. Owns a small managed node group over two zones;
the controller must not run on nodes that it manages (spec aws/iam-and-bootstrap
section 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import pulumi
import pulumi_aws as aws

from framework.components.node_role import attach_node_policies
from framework.iam.trust import node_trust

TAINT = "CriticalAddonsOnly"


@attrs.frozen(kw_only=True)
class FirstCapacityArgs:
    """What the first nodes are made from."""

    cluster: pulumi.Input[str]
    partition: str
    subnet_ids: pulumi.Input[Sequence[str]]
    instance_types: Sequence[str] = ("t3.medium",)
    ami_type: str = "AL2023_x86_64_STANDARD"
    size: int = attrs.field(default=2, validator=attrs.validators.ge(2))
    """Two replicas of the controller on two hosts need two nodes."""
    tainted: bool = True
    """Whether only critical add-ons may run there."""
    tags: Mapping[str, str] = attrs.field(factory=dict)


class FirstCapacity(pulumi.ComponentResource):
    """A managed node group. Outputs: `name`, `role_arn`."""

    name: pulumi.Output[str]
    role_arn: pulumi.Output[str]
    node_group: aws.eks.NodeGroup

    def __init__(
        self, name: str, args: FirstCapacityArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare the node group."""
        super().__init__("charpente:aws:FirstCapacity", name, None, opts)
        role = aws.iam.Role(
            f"{name}-role",
            assume_role_policy=node_trust(args.partition).to_json(),
            tags=dict(args.tags),
            opts=pulumi.ResourceOptions(parent=self),
        )
        attachments = attach_node_policies(name, role, args.partition)
        taint = aws.eks.NodeGroupTaintArgs(key=TAINT, value="true", effect="NO_SCHEDULE")
        self.node_group = aws.eks.NodeGroup(
            f"{name}-nodes",
            cluster_name=args.cluster,
            node_role_arn=role.arn,
            subnet_ids=args.subnet_ids,
            instance_types=list(args.instance_types),
            ami_type=args.ami_type,
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                min_size=args.size, desired_size=args.size, max_size=args.size + 1
            ),
            update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            taints=[taint] if args.tainted else None,
            tags=dict(args.tags),
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(attachments)),
        )
        self.name = self.node_group.node_group_name
        self.role_arn = role.arn
        self.register_outputs({"name": self.name, "role_arn": self.role_arn})

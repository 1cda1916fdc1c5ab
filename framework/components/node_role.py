"""The role of the nodes that the controller launches, and its way into the cluster.

Called by the programs in `stacks/`. Owns trust, policies and the access entry (spec
aws/iam-and-bootstrap section 1). Makes no instance profile unless asked: the
controller makes one for each node class.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import attrs
import pulumi
import pulumi_aws as aws

from framework.components.role_names import node_role_name
from framework.iam.trust import NODE_POLICIES, node_trust


class NodeKind(StrEnum):
    """The kind of access entry; a role can have one only."""

    LINUX = "EC2_LINUX"
    WINDOWS = "EC2_WINDOWS"


@attrs.frozen(kw_only=True)
class NodeRoleArgs:
    """What a node role is made from."""

    cluster_name: str
    """Known before the cluster is: the role's name follows from it."""
    cluster: pulumi.Input[str]
    """The cluster to enter: its name as an output of the cluster, so that it is there first."""
    partition: str
    role_name: str | None = None
    kind: NodeKind = attrs.field(default=NodeKind.LINUX, converter=NodeKind)
    instance_profile: bool = False
    """For private clusters, from which IAM cannot be reached (section 9)."""
    tags: Mapping[str, str] = attrs.field(factory=dict)


class NodeRole(pulumi.ComponentResource):
    """KarpenterNodeRole. Outputs: `name`, `arn`, `unique_id`, `instance_profile_name`."""

    name: pulumi.Output[str]
    arn: pulumi.Output[str]
    unique_id: pulumi.Output[str]
    instance_profile_name: pulumi.Output[str] | None
    instance_profile: aws.iam.InstanceProfile | None
    access_entry: aws.eks.AccessEntry
    attachments: tuple[aws.iam.RolePolicyAttachment, ...]

    def __init__(self, name: str, args: NodeRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the role. Raises RoleNameTooLong."""
        super().__init__("charpente:aws:NodeRole", name, None, opts)
        role = aws.iam.Role(
            f"{name}-role",
            name=node_role_name(args.cluster_name, args.role_name),
            assume_role_policy=node_trust(args.partition).to_json(),
            tags=dict(args.tags),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.attachments = attach_node_policies(name, role, args.partition)
        self.access_entry = aws.eks.AccessEntry(
            f"{name}-access",
            cluster_name=args.cluster,
            principal_arn=role.arn,
            type=args.kind.value,
            tags=dict(args.tags),
            opts=pulumi.ResourceOptions(parent=role),
        )
        self.name, self.arn, self.unique_id = role.name, role.arn, role.unique_id
        self.instance_profile_name = self.instance_profile = None
        if args.instance_profile:
            self.instance_profile = profile = aws.iam.InstanceProfile(
                f"{name}-profile",
                name=f"KarpenterNodeInstanceProfile-{args.cluster_name}",
                role=role.name,
                tags=dict(args.tags),
                opts=pulumi.ResourceOptions(parent=role),
            )
            self.instance_profile_name = profile.name
        self.register_outputs(
            {
                "name": self.name,
                "arn": self.arn,
                "unique_id": self.unique_id,
                "instance_profile_name": self.instance_profile_name,
            }
        )


def attach_node_policies(
    name: str, role: aws.iam.Role, partition: str
) -> tuple[aws.iam.RolePolicyAttachment, ...]:
    """Give a role what every node needs."""
    return tuple(
        aws.iam.RolePolicyAttachment(
            f"{name}-{policy}",
            role=role.name,
            policy_arn=f"arn:{partition}:iam::aws:policy/{policy}",
            opts=pulumi.ResourceOptions(parent=role),
        )
        for policy in NODE_POLICIES
    )

"""The controller's role: what it may do in the account, and which pod may take it.

Called by the programs in `stacks/`. Owns the role, its policies (generated in
`framework.iam`) and the tie to the service account, by pod identity or IRSA (spec
aws/iam-and-bootstrap section 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import attrs
import pulumi
import pulumi_aws as aws

from framework.components.role_names import controller_role_name
from framework.iam import PolicyPart, Scope, controller_policies, policy_name
from framework.iam.trust import irsa_trust, pod_identity_trust


class IdentityKind(StrEnum):
    """How the service account gets the role."""

    POD_IDENTITY = "pod-identity"
    IRSA = "irsa"


@attrs.frozen(kw_only=True)
class Irsa:
    """The cluster's issuer as an identity provider of the account."""

    provider_arn: pulumi.Input[str]
    issuer: pulumi.Input[str]


@attrs.frozen(kw_only=True)
class ControllerIdentityArgs:
    """What the identity is made from."""

    cluster_name: str
    cluster: pulumi.Input[str]
    """The cluster's name as an output of the cluster, so that it is there first."""
    partition: str
    region: str
    account: str
    node_role_arn: pulumi.Input[str]
    queue_arn: pulumi.Input[str] | None
    namespace: str = "kube-system"
    service_account: str = "karpenter"
    irsa: Irsa | None = None
    """None for pod identity."""
    tags: Mapping[str, str] = attrs.field(factory=dict)


class ControllerIdentity(pulumi.ComponentResource):
    """The controller's role. Outputs: `role_arn`, `role_name`, `kind`."""

    role_arn: pulumi.Output[str]
    role_name: pulumi.Output[str]
    role_unique_id: pulumi.Output[str]
    policy_arns: pulumi.Output[Mapping[str, str]]
    """Part of the policy → ARN."""
    kind: IdentityKind
    ready: tuple[pulumi.Resource, ...]
    """What the controller needs before it starts."""

    def __init__(
        self, name: str, args: ControllerIdentityArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare role, policies and association. Raises RoleNameTooLong."""
        super().__init__("charpente:aws:ControllerIdentity", name, None, opts)
        self._name, self._args = name, args
        self.kind = IdentityKind.POD_IDENTITY if args.irsa is None else IdentityKind.IRSA
        role = aws.iam.Role(
            f"{name}-role",
            name=controller_role_name(args.cluster_name),
            assume_role_policy=self._trust(),
            tags=dict(args.tags),
            opts=pulumi.ResourceOptions(parent=self),
        )
        attachments = {part: self._policy(role, part) for part in self._parts()}
        ready: list[pulumi.Resource] = list(attachments.values())
        if args.irsa is None:
            ready.append(self._association(role))
        self.ready = tuple(ready)
        self.role_arn, self.role_name, self.role_unique_id = role.arn, role.name, role.unique_id
        self.policy_arns = pulumi.Output.all(
            **{part.value: each.policy_arn for part, each in attachments.items()}
        )
        self.register_outputs(
            {"role_arn": self.role_arn, "role_name": self.role_name, "kind": self.kind.value}
        )

    def _trust(self) -> pulumi.Input[str]:
        args = self._args
        if args.irsa is None:
            return pod_identity_trust().to_json()
        return pulumi.Output.all(args.irsa.provider_arn, args.irsa.issuer).apply(
            lambda found: irsa_trust(
                provider_arn=found[0],
                issuer=found[1],
                namespace=args.namespace,
                service_account=args.service_account,
            ).to_json()
        )

    def _parts(self) -> tuple[PolicyPart, ...]:
        """The parts there will be, known before any ARN is."""
        without = set() if self._args.queue_arn is not None else {PolicyPart.INTERRUPTION}
        return tuple(part for part in PolicyPart if part not in without)

    def _scope(self, node_role_arn: str, queue_arn: str | None) -> Scope:
        args = self._args
        return Scope(
            partition=args.partition,
            region=args.region,
            account=args.account,
            cluster=args.cluster_name,
            node_role_arn=node_role_arn,
            queue_arn=queue_arn,
        )

    def _policy(self, role: aws.iam.Role, part: PolicyPart) -> aws.iam.RolePolicyAttachment:
        args = self._args
        document = pulumi.Output.all(args.node_role_arn, args.queue_arn).apply(
            lambda arns: controller_policies(self._scope(*arns))[part].to_json()
        )
        policy = aws.iam.Policy(
            f"{self._name}-{part}",
            name=policy_name(part, args.cluster_name),
            policy=document,
            tags=dict(args.tags),
            opts=pulumi.ResourceOptions(parent=self),
        )
        return aws.iam.RolePolicyAttachment(
            f"{self._name}-{part}",
            role=role.name,
            policy_arn=policy.arn,
            opts=pulumi.ResourceOptions(parent=role),
        )

    def _association(self, role: aws.iam.Role) -> aws.eks.PodIdentityAssociation:
        args = self._args
        return aws.eks.PodIdentityAssociation(
            f"{self._name}-association",
            cluster_name=args.cluster,
            namespace=args.namespace,
            service_account=args.service_account,
            role_arn=role.arn,
            tags=dict(args.tags),
            opts=pulumi.ResourceOptions(parent=role),
        )

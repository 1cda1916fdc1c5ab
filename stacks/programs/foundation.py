"""What the controller stands on: a cluster, roles and a queue.

Handed from the program that makes or finds them to the one that installs the
controller. Owns the three ways to get it: made here, from another stack's outputs,
or around a cluster that something else made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import pulumi
import pulumi_aws as aws

from framework.components import (
    ControllerIdentity,
    ControllerIdentityArgs,
    InterruptionQueue,
    InterruptionQueueArgs,
    Irsa,
    NodeRole,
    NodeRoleArgs,
    SpotRole,
    SpotRoleArgs,
)
from framework.components.controller_identity import IdentityKind
from stacks.programs.account import Account
from stacks.programs.config import InvalidConfig, StackConfig


@attrs.frozen(kw_only=True)
class ClusterFacts:
    """A cluster, wherever it comes from."""

    name: pulumi.Input[str]
    arn: pulumi.Input[str]
    endpoint: pulumi.Input[str]
    certificate_authority: pulumi.Input[str]
    oidc_issuer: pulumi.Input[str]
    oidc_provider_arn: pulumi.Input[str]


@attrs.frozen(kw_only=True)
class Foundation:
    """What the controller's program needs to know."""

    cluster: ClusterFacts
    node_role_name: str
    queue_name: pulumi.Input[str] | None
    irsa_role_arn: pulumi.Input[str] | None
    needs: Sequence[pulumi.Resource] = ()
    """What must be there before the controller starts, and outlive it."""
    pools_need: Sequence[pulumi.Resource] = ()
    """What must be there before the first pool, and outlive the last: the node role's way in."""
    control_plane: pulumi.Resource | None = None
    """The cluster's resource when it is in the same stack."""


@attrs.frozen(kw_only=True)
class Access:
    """Roles and queue around a cluster."""

    node_role: NodeRole
    identity: ControllerIdentity
    queue: InterruptionQueue | None

    def foundation(self, cluster: ClusterFacts, node_role_name: str) -> Foundation:
        """The foundation, without what depends on how the cluster came to be."""
        irsa = self.identity.kind is IdentityKind.IRSA
        return Foundation(
            cluster=cluster,
            node_role_name=node_role_name,
            queue_name=None if self.queue is None else self.queue.name,
            irsa_role_arn=self.identity.role_arn if irsa else None,
            needs=self.identity.ready,
            pools_need=(self.node_role.access_entry, *self.node_role.attachments),
        )

    def export(self) -> None:
        """Export what Terraform's module for Karpenter on EKS gives."""
        outputs: Mapping[str, pulumi.Input[object] | None] = {
            "controllerRoleName": self.identity.role_name,
            "controllerRoleArn": self.identity.role_arn,
            "controllerRoleUniqueId": self.identity.role_unique_id,
            "controllerPolicyArns": self.identity.policy_arns,
            "nodeRoleName": self.node_role.name,
            "nodeRoleArn": self.node_role.arn,
            "nodeRoleUniqueId": self.node_role.unique_id,
            "nodeAccessEntryArn": self.node_role.access_entry.access_entry_arn,
            "queueName": None if self.queue is None else self.queue.name,
            "queueArn": None if self.queue is None else self.queue.arn,
            "queueUrl": None if self.queue is None else self.queue.url,
            "eventRules": None if self.queue is None else self.queue.rule_names,
        }
        profile = self.node_role.instance_profile
        if profile is not None:
            pulumi.export("instanceProfileName", profile.name)
            pulumi.export("instanceProfileArn", profile.arn)
            pulumi.export("instanceProfileUniqueId", profile.unique_id)
        for name, value in outputs.items():
            if value is not None:
                pulumi.export(name, value)


def declare_access(config: StackConfig, account: Account, cluster: ClusterFacts) -> Access:
    """Declare roles, queue and the spot role around a cluster."""
    tags = config.tags
    queue = None
    if config.interruption_queue:
        queue = InterruptionQueue(
            "interruption", InterruptionQueueArgs(queue_name=config.cluster_name, tags=tags)
        )
    node_role = NodeRole(
        "node",
        NodeRoleArgs(
            cluster_name=config.cluster_name,
            cluster=cluster.name,
            partition=account.partition,
            role_name=config.node_role_name,
            kind=config.node_access,
            instance_profile=config.instance_profile,
            tags=tags,
        ),
    )
    irsa = Irsa(provider_arn=cluster.oidc_provider_arn, issuer=cluster.oidc_issuer)
    identity = ControllerIdentity(
        "controller",
        ControllerIdentityArgs(
            cluster_name=config.cluster_name,
            cluster=cluster.name,
            partition=account.partition,
            region=account.region,
            account=account.number,
            node_role_arn=node_role.arn,
            queue_arn=None if queue is None else queue.arn,
            irsa=irsa if config.identity is IdentityKind.IRSA else None,
            tags=tags,
        ),
    )
    SpotRole("spot", SpotRoleArgs(cluster_name=config.cluster_name, tags=tags))
    return Access(node_role=node_role, identity=identity, queue=queue)


def existing_cluster(config: StackConfig, account: Account) -> ClusterFacts:
    """A cluster that something else made, by its name. Raises InvalidConfig when there is none."""
    try:
        found = aws.eks.get_cluster(name=config.cluster_name)
    except Exception as error:
        raise InvalidConfig(
            "clusterName",
            config.cluster_name,
            f"the name of a cluster in {account.region}, or set clusterStack ({error})",
        ) from error
    issuer = found.identities[0].oidcs[0].issuer
    provider = f"arn:{account.partition}:iam::{account.number}:oidc-provider/"
    return ClusterFacts(
        name=found.name,
        arn=found.arn,
        endpoint=found.endpoint,
        certificate_authority=found.certificate_authorities[0].data,
        oidc_issuer=issuer,
        oidc_provider_arn=provider + issuer.removeprefix("https://"),
    )


def from_stack(config: StackConfig, reference: pulumi.StackReference, node_role_name: str) -> Foundation:
    """The foundation that another stack exported."""

    def output(name: str) -> pulumi.Output[str]:
        return reference.require_output(name).apply(str)

    return Foundation(
        cluster=ClusterFacts(
            name=output("clusterName"),
            arn=output("clusterArn"),
            endpoint=output("clusterEndpoint"),
            certificate_authority=output("clusterCertificateAuthority"),
            oidc_issuer=output("oidcIssuer"),
            oidc_provider_arn=output("oidcProviderArn"),
        ),
        node_role_name=node_role_name,
        queue_name=output("queueName") if config.interruption_queue else None,
        irsa_role_arn=output("controllerRoleArn") if config.identity is IdentityKind.IRSA else None,
    )

"""The cluster's program: network, EKS, roles, queue, and the controller's own nodes.

Called by `stacks/cluster`, and by the platform's program as its first half.
"""

from __future__ import annotations

import attrs
import pulumi

from framework.components import (
    Cluster,
    ClusterArgs,
    FargateCapacity,
    FargateCapacityArgs,
    FirstCapacity,
    FirstCapacityArgs,
)
from framework.components.fargate_capacity import DNS_SETTINGS
from framework.components.role_names import node_role_name
from stacks.programs.account import Account, current_account, stack_config
from stacks.programs.config import FirstCapacityKind, StackConfig
from stacks.programs.foundation import ClusterFacts, Foundation, declare_access
from stacks.programs.network import NetworkFacts, declare_network

_CLUSTER_DNS = "coredns"


def cluster_program() -> None:
    """Declare the cluster and export what the controller's stack needs."""
    declare_cluster(stack_config(), current_account())


def declare_cluster(config: StackConfig, account: Account) -> Foundation:
    """Declare everything up to the controller."""
    role_name = node_role_name(config.cluster_name, config.node_role_name)
    network = declare_network(config, account)
    cluster = _cluster(config, account, network)
    facts = ClusterFacts(
        name=cluster.name,
        arn=cluster.arn,
        endpoint=cluster.endpoint,
        certificate_authority=cluster.certificate_authority,
        oidc_issuer=cluster.oidc_issuer,
        oidc_provider_arn=cluster.oidc_provider_arn,
    )
    access = declare_access(config, account, facts)
    first = _first_capacity(config, account, cluster, network)
    fargate = config.first_capacity is FirstCapacityKind.FARGATE
    dns = cluster.addon(_CLUSTER_DNS, depends_on=[first], settings=DNS_SETTINGS if fargate else None)
    _export(cluster, network, facts)
    access.export()
    found = access.foundation(facts, role_name)
    return attrs.evolve(
        found, needs=(*found.needs, first, dns, *network.made), control_plane=cluster.control_plane
    )


def _cluster(config: StackConfig, account: Account, network: NetworkFacts) -> Cluster:
    return Cluster(
        "cluster",
        ClusterArgs(
            cluster_name=config.cluster_name,
            partition=account.partition,
            kubernetes_version=config.kubernetes_version,
            subnet_ids=network.private_subnet_ids,
            public_access_cidrs=config.public_access_cidrs,
            admin_principals=config.admin_principals,
            secrets_key=config.secrets_key,
            log_retention_days=config.log_retention_days or None,
            tags=config.tags,
        ),
    )


def _first_capacity(
    config: StackConfig, account: Account, cluster: Cluster, network: NetworkFacts
) -> pulumi.Resource:
    """Nodes come after the network's way out and the add-on that gives pods their addresses."""
    after = pulumi.ResourceOptions(depends_on=[*network.made, *cluster.addons])
    if config.first_capacity is FirstCapacityKind.FARGATE:
        fargate = FargateCapacityArgs(
            cluster=cluster.name,
            partition=account.partition,
            subnet_ids=network.private_subnet_ids,
            tags=config.tags,
        )
        profile: pulumi.Resource = FargateCapacity("first-capacity", fargate, after).profile
        return profile
    group: pulumi.Resource = FirstCapacity(
        "first-capacity",
        FirstCapacityArgs(
            cluster=cluster.name,
            partition=account.partition,
            subnet_ids=network.private_subnet_ids,
            instance_types=config.first_capacity_types,
            ami_type=config.first_capacity_ami,
            size=config.first_capacity_size,
            tags=config.tags,
        ),
        after,
    ).node_group
    return group


def _export(cluster: Cluster, network: NetworkFacts, facts: ClusterFacts) -> None:
    pulumi.export("clusterName", facts.name)
    pulumi.export("clusterArn", facts.arn)
    pulumi.export("clusterEndpoint", facts.endpoint)
    pulumi.export("clusterCertificateAuthority", facts.certificate_authority)
    pulumi.export("clusterSecurityGroupId", cluster.security_group_id)
    pulumi.export("oidcIssuer", facts.oidc_issuer)
    pulumi.export("oidcProviderArn", facts.oidc_provider_arn)
    pulumi.export("vpcId", network.vpc_id)
    pulumi.export("privateSubnetIds", network.private_subnet_ids)
    if network.public_subnet_ids is not None:
        pulumi.export("publicSubnetIds", network.public_subnet_ids)

"""The controller's program: definitions, controller, pools.

Called by `stacks/karpenter` on a cluster that exists, and by the platform's program
as its second half.
"""

from __future__ import annotations

from importlib.metadata import version

import pulumi
import pulumi_kubernetes as k8s

from framework.components import Controller, ControllerArgs, Crds, Pools, PoolsArgs
from framework.components.kubeconfig import kubeconfig
from framework.components.role_names import node_role_name
from stacks.programs.account import Account, current_account, stack_config
from stacks.programs.config import StackConfig
from stacks.programs.discovery import check_discovery
from stacks.programs.foundation import Foundation, declare_access, existing_cluster, from_stack
from stacks.programs.manifests import check_against_cluster, read_manifests

VERSION = version("charpente")
_IMAGE = f"charpente/controller:{VERSION}"


def karpenter_program() -> None:
    """Declare the controller on another stack's cluster, or on any cluster by its name."""
    config, account = stack_config(), current_account()
    role_name = node_role_name(config.cluster_name, config.node_role_name)
    if config.cluster_stack is not None:
        reference = pulumi.StackReference(config.cluster_stack)
        declare_controller(config, account, from_stack(config, reference, role_name))
        return
    facts = existing_cluster(config, account)
    access = declare_access(config, account, facts)
    access.export()
    declare_controller(config, account, access.foundation(facts, role_name))


def declare_controller(config: StackConfig, account: Account, foundation: Foundation) -> None:
    """Declare definitions, controller and pools, in this order; they are removed in reverse."""
    manifests = read_manifests(config.node_pools, config.cluster_name)
    check_against_cluster(manifests, config.cluster_name, foundation.node_role_name)
    if foundation.control_plane is None:
        check_discovery(manifests, config.cluster_name)
    settings = config.controller_settings()
    provider = _provider(config, account, foundation)

    gates = frozenset(name for name, on in settings.feature_gates.items() if on)
    crds = Crds("crds", _in_cluster(provider, foundation), gates)
    controller = Controller(
        "karpenter",
        ControllerArgs(
            cluster_name=foundation.cluster.name,
            cluster_endpoint=foundation.cluster.endpoint,
            queue_name=foundation.queue_name,
            irsa_role_arn=foundation.irsa_role_arn,
            image=config.image or _IMAGE,
            version=VERSION,
            region=account.region,
            replicas=config.replicas,
            settings=settings,
            skip_await=config.skip_await,
        ),
        pulumi.ResourceOptions.merge(
            _in_cluster(provider, foundation),
            pulumi.ResourceOptions(depends_on=[*foundation.needs, *crds.resources]),
        ),
    )
    Pools(
        "pools",
        PoolsArgs(manifests=manifests),
        pulumi.ResourceOptions(provider=provider),
        needs=[*crds.resources, controller.deployment, *foundation.needs, *foundation.pools_need],
    )
    pulumi.export("namespace", controller.namespace)
    pulumi.export("serviceAccount", controller.service_account)


def _in_cluster(provider: k8s.Provider, foundation: Foundation) -> pulumi.ResourceOptions:
    """For what needs no removal of its own when the whole cluster goes."""
    return pulumi.ResourceOptions(provider=provider, deleted_with=foundation.control_plane)


def _provider(config: StackConfig, account: Account, foundation: Foundation) -> k8s.Provider:
    cluster = foundation.cluster
    built = pulumi.Output.all(cluster.endpoint, cluster.certificate_authority).apply(
        lambda found: kubeconfig(
            name=config.cluster_name,
            endpoint=found[0],
            certificate_authority=found[1],
            command=config.token_command.arguments(config.cluster_name, account.region),
        )
    )
    return k8s.Provider(
        "kubernetes",
        kubeconfig=config.kubeconfig or built,
        cluster_identifier=cluster.arn,
        enable_server_side_apply=True,
    )

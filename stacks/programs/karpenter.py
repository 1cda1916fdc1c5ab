"""The controller's program: definitions, controller, pools.

Called by `stacks/karpenter` on a cluster that exists, and by the platform's program
as its second half.
"""

from __future__ import annotations

from importlib.metadata import version

import pulumi
import pulumi_kubernetes as k8s

from framework.components import Controller, ControllerArgs, Crds, Pools, PoolsArgs, Teardown, TeardownArgs
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
    access = _kubeconfig(config, account, foundation)
    provider = _provider(access, foundation)

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
            service_monitor=config.service_monitor,
            skip_await=config.skip_await,
        ),
        pulumi.ResourceOptions.merge(
            _in_cluster(provider, foundation),
            pulumi.ResourceOptions(depends_on=[*foundation.needs, *crds.resources]),
        ),
    )
    needs = [*crds.resources, controller, *foundation.needs, *foundation.pools_need]
    pools = Pools("pools", PoolsArgs(manifests=manifests), _in_cluster(provider, foundation), needs=needs)
    Teardown(
        "teardown",
        TeardownArgs(
            cluster_name=config.cluster_name,
            region=account.region,
            kubeconfig=access,
            namespace=controller.namespace,
            patience=config.drain_timeout,
        ),
        pulumi.ResourceOptions(depends_on=[pools, *needs]),
    )
    pulumi.export("namespace", controller.namespace)
    pulumi.export("serviceAccount", controller.service_account)


def _in_cluster(provider: k8s.Provider, foundation: Foundation) -> pulumi.ResourceOptions:
    """For what goes with the whole cluster; nodes are taken down before that, by `Teardown`."""
    return pulumi.ResourceOptions(provider=provider, deleted_with=foundation.control_plane)


def _kubeconfig(config: StackConfig, account: Account, foundation: Foundation) -> pulumi.Input[str]:
    cluster = foundation.cluster
    built = pulumi.Output.all(cluster.endpoint, cluster.certificate_authority).apply(
        lambda found: kubeconfig(
            name=config.cluster_name,
            endpoint=found[0],
            certificate_authority=found[1],
            command=config.token_command.arguments(config.cluster_name, account.region),
        )
    )
    return config.kubeconfig or built


def _provider(access: pulumi.Input[str], foundation: Foundation) -> k8s.Provider:
    return k8s.Provider(
        "kubernetes",
        kubeconfig=access,
        cluster_identifier=foundation.cluster.arn,
        enable_server_side_apply=True,
    )

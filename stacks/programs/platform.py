"""The whole platform: from an empty account to nodes, in one program."""

from __future__ import annotations

from stacks.programs.account import current_account, stack_config
from stacks.programs.cluster import declare_cluster
from stacks.programs.karpenter import declare_controller


def platform_program() -> None:
    """Declare the cluster, then the controller and its pools on it."""
    config, account = stack_config(), current_account()
    declare_controller(config, account, declare_cluster(config, account))

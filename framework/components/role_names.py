"""Names of the roles that belong to a cluster.

Called by the components and by `stacks.checks`, which compares them with the node
classes. Owns IAM's length limit; pure.
"""

from __future__ import annotations

from framework.api import UserError

ROLE_NAME_LIMIT = 64


class RoleNameTooLong(UserError):
    """A role name that IAM would refuse."""

    def __init__(self, name: str, remedy: str) -> None:
        """Name the role, its length and the way out."""
        super().__init__(
            f"role name {name} has {len(name)} characters, {ROLE_NAME_LIMIT} are allowed; {remedy}"
        )


def node_role_name(cluster_name: str, override: str | None = None) -> str:
    """`KarpenterNodeRole-<cluster>` unless overridden. Raises RoleNameTooLong."""
    return _checked(override or f"KarpenterNodeRole-{cluster_name}", "set charpente:nodeRoleName")


def controller_role_name(cluster_name: str) -> str:
    """`<cluster>-karpenter`. Raises RoleNameTooLong."""
    return _checked(f"{cluster_name}-karpenter", "choose a shorter charpente:clusterName")


def _checked(name: str, remedy: str) -> str:
    if len(name) > ROLE_NAME_LIMIT:
        raise RoleNameTooLong(name, remedy)
    return name

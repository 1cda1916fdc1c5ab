"""Every resource type that the provider carries.

Called by the provider. Owns the one table of types and the words with which others
are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sandbox.pulumi_aws import ec2, eks, eks_access, iam, messaging, routes, schema, security
from sandbox.pulumi_aws.resource import Resource

_MODULES = (ec2, routes, iam, eks, eks_access, messaging, security)

RESOURCES: Mapping[str, Resource] = MappingProxyType(
    {resource.type: resource for module in _MODULES for resource in module.RESOURCES}
)
"""Resource types by token."""


class NotCarried(Exception):
    """A resource type or function that the sandbox's provider does not carry."""

    def __init__(self, token: str) -> None:
        """Say whether the SDK knows the type at all."""
        known = token in schema.tokens()
        why = (
            "the sandbox's AWS provider does not carry it"
            if known
            else f"pulumi_aws has no such resource type; misspelt? ({len(schema.tokens())} types known)"
        )
        super().__init__(f"{token}: {why}; add it to sandbox/pulumi_aws or use the official provider")


def resource(token: str) -> Resource:
    """The resource type. Raises NotCarried."""
    if token not in RESOURCES:
        raise NotCarried(token)
    return RESOURCES[token]

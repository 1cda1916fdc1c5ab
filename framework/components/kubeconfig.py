"""How Pulumi's Kubernetes provider reaches the cluster.

Called by the programs in `stacks/`. Owns the kubeconfig: built from the cluster's own
outputs, never from the environment, and with a command that fetches a token, so that
no token is kept in the state.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum


class TokenCommand(StrEnum):
    """The program that fetches a token."""

    AWS = "aws"
    """AWS's own command line."""
    CHARPENTE = "charpente"
    """`charpente-eks-token` of this package, where the AWS command line is not installed."""

    def arguments(self, cluster_name: str, region: str) -> tuple[str, ...]:
        """Program and arguments."""
        target = ("--cluster-name", cluster_name, "--region", region)
        if self is TokenCommand.AWS:
            return ("aws", "eks", "get-token", *target, "--output", "json")
        return ("charpente-eks-token", *target)


def kubeconfig(*, name: str, endpoint: str, certificate_authority: str, command: Sequence[str]) -> str:
    """A kubeconfig as JSON; `certificate_authority` is base64 of the PEM."""
    program, *arguments = command
    exec_command = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": program,
        "args": arguments,
        "interactiveMode": "Never",
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": endpoint, "certificate-authority-data": certificate_authority},
                }
            ],
            "users": [{"name": name, "user": {"exec": exec_command}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        },
        sort_keys=True,
    )

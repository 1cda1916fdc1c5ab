"""`charpente-eks-token`: a token for an EKS cluster, without the AWS command line.

Started by the Kubernetes provider through the kubeconfig that
`framework.components.kubeconfig` writes. The token is a presigned
`sts:GetCallerIdentity` request that names the cluster; EKS carries it out to learn
who is calling. Prints an ExecCredential, stores nothing.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import click

_CLUSTER_HEADER = "x-k8s-aws-id"
_PREFIX = "k8s-aws-v1."
_URL_LIFETIME_S = 60
_TOKEN_LIFETIME = timedelta(minutes=14)
"""EKS accepts a token for 15 minutes; a minute is left for slow clocks."""


def presigned_url(cluster_name: str, region: str) -> str:
    """The signed request, valid for a minute, whose signature covers the cluster's name."""
    client = boto3.Session(region_name=region).client("sts")

    def name_cluster(request: Any, **_: Any) -> None:
        request.headers[_CLUSTER_HEADER] = cluster_name

    client.meta.events.register("before-sign.sts.GetCallerIdentity", name_cluster)
    return str(
        client.generate_presigned_url("get_caller_identity", ExpiresIn=_URL_LIFETIME_S, HttpMethod="GET")
    )


def token(url: str) -> str:
    """The token for a presigned URL."""
    return _PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def credential(text: str, now: datetime) -> str:
    """An ExecCredential that holds the token."""
    expires = (now + _TOKEN_LIFETIME).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps(
        {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "kind": "ExecCredential",
            "spec": {},
            "status": {"token": text, "expirationTimestamp": expires},
        }
    )


@click.command()
@click.option("--cluster-name", required=True, help="Name of the EKS cluster.")
@click.option("--region", required=True, help="Region of the cluster.")
def main(cluster_name: str, region: str) -> None:
    """Print a token for an EKS cluster as an ExecCredential."""
    now = datetime.now(UTC)  # noqa: TID251 (a command of its own: nothing to pass a clock in)
    click.echo(credential(token(presigned_url(cluster_name, region)), now))


if __name__ == "__main__":
    main()

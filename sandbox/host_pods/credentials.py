"""AWS credentials for pods: what the EKS pod identity agent, or the IRSA webhook, gives a pod on a real node.

A pod whose service account has a pod identity association gets the address of `CredentialServer`, which
assumes the role for it; one whose service account is annotated with a role gets a token file for it; any
other pod gets no credentials at all, as in an account. Used by `sandbox.host_pods.host_pod`.
"""

from __future__ import annotations

import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

__all__ = ["ROLE_ANNOTATION", "CredentialServer"]

ROLE_ANNOTATION = "eks.amazonaws.com/role-arn"
PATH = "/v1/credentials"


class CredentialServer:
    """Serves credentials of pods' roles on loopback, to those who show the pod's token."""

    def __init__(self, endpoint: str, region: str) -> None:
        """Listen on a free port and answer in the background, with AWS at `endpoint`."""
        session = boto3.session.Session(
            aws_access_key_id="sandbox-pod-identity",
            aws_secret_access_key="sandbox",  # noqa: S106 - moto takes any
            region_name=region,
        )
        self._eks = session.client("eks", endpoint_url=endpoint)
        self._sts = session.client("sts", endpoint_url=endpoint)
        self._roles: dict[str, tuple[str, str]] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True, name="pod identity").start()

    @property
    def address(self) -> str:
        """What AWS_CONTAINER_CREDENTIALS_FULL_URI is set to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{PATH}"

    def associated_role(self, namespace: str, service_account: str) -> str | None:
        """Return the role that a pod identity association of any cluster here gives a service account."""
        for cluster in self._eks.list_clusters()["clusters"]:
            found = self._eks.list_pod_identity_associations(
                clusterName=cluster, namespace=namespace, serviceAccount=service_account
            )["associations"]
            for summary in found:
                described = self._eks.describe_pod_identity_association(
                    clusterName=cluster, associationId=summary["associationId"]
                )
                return described["association"]["roleArn"]
        return None

    def admit(self, role: str, pod: str) -> str:
        """Return a new token with which a pod may fetch credentials of a role."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._roles[token] = (role, pod)
        return token

    def dismiss(self, token: str) -> None:
        """Take a token back."""
        with self._lock:
            self._roles.pop(token, None)

    def credentials(self, token: str) -> dict[str, Any] | None:
        """Return fresh credentials for a token, as the container credential protocol wants them."""
        with self._lock:
            known = self._roles.get(token)
        if known is None:
            return None
        role, pod = known
        found = self._sts.assume_role(RoleArn=role, RoleSessionName=f"eks-sandbox-{pod}"[:64])["Credentials"]
        return {
            "AccessKeyId": found["AccessKeyId"],
            "SecretAccessKey": found["SecretAccessKey"],
            "Token": found["SessionToken"],
            "Expiration": found["Expiration"].strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


def _handler(owner: CredentialServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer one request for credentials."""
            try:
                found = owner.credentials(self.headers.get("Authorization", ""))
                status = 403 if found is None else 200
            except (ClientError, BotoCoreError) as exc:
                found, status = {"message": str(exc)}, 500
            content = json.dumps(found or {"message": "unknown token"}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Stay silent."""

    return Handler

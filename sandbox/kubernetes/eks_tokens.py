"""Who the bearer of an EKS token is: the webhook that the sandbox's API server asks.

A token is a presigned `sts:GetCallerIdentity` request. It is carried out against the sandbox's AWS, and the
caller is looked for in the access entries of its EKS clusters, all of which the one API server stands for.
Access policies become groups, bound to the cluster role that is nearest to the policy. Used by
`sandbox.daemon`.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import attrs
import boto3
import urllib3
from botocore.exceptions import BotoCoreError, ClientError

from sandbox.kubernetes.api import Api, ApiError, Object
from sandbox.kubernetes.certificates import Authority

__all__ = [
    "Caller",
    "TokenRefused",
    "TokenReviewer",
    "TokenWebhook",
    "answer",
    "bind_access_policies",
    "principal_of",
    "signed_request",
]

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
LIFETIME = timedelta(minutes=15)
"""EKS takes a token that long after it was signed, whatever the URL says."""
POLICY_ROLES = {
    "AmazonEKSClusterAdminPolicy": "cluster-admin",
    "AmazonEKSAdminPolicy": "admin",
    "AmazonEKSEditPolicy": "edit",
    "AmazonEKSViewPolicy": "view",
    "AmazonEKSAdminViewPolicy": "view",
}
"""Access policy → the cluster role that stands for it here."""
NODE_TYPES = ("EC2_LINUX", "EC2_WINDOWS")


class TokenRefused(Exception):
    """The token proves nothing; the text says why."""


@attrs.frozen(kw_only=True)
class Caller:
    """Whom the API server takes the bearer for."""

    username: str
    groups: tuple[str, ...]
    arn: str


def signed_request(token: str, now: datetime) -> Mapping[str, str]:
    """Return the query of the presigned request in a token. Raises: TokenRefused."""
    if not token.startswith(PREFIX):
        raise TokenRefused(f"the token does not begin with {PREFIX}")
    text = token.removeprefix(PREFIX)
    try:
        url = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
        query = dict(parse_qsl(url.query))
        signed = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except (ValueError, KeyError) as exc:
        raise TokenRefused("the token is not a presigned request") from exc
    if query.get("Action") != "GetCallerIdentity":
        raise TokenRefused(f"the token asks for {query.get('Action')}, not GetCallerIdentity")
    if CLUSTER_HEADER not in query.get("X-Amz-SignedHeaders", "").split(";"):
        raise TokenRefused(f"the signature does not cover {CLUSTER_HEADER}, the cluster's name")
    if not -LIFETIME < now - signed < LIFETIME:
        raise TokenRefused("the token has expired")
    return query


def principal_of(arn: str) -> tuple[str, str]:
    """Return the IAM principal behind a caller's ARN, and the session's name (empty for a user)."""
    role = re.fullmatch(r"arn:(aws[a-z-]*):sts::(\d+):assumed-role/([^/]+)/(.+)", arn)
    if role is not None:
        return f"arn:{role[1]}:iam::{role[2]}:role/{role[3]}", role[4]
    return arn.replace(":sts::", ":iam::", 1), ""


class TokenReviewer:
    """Turns tokens into callers."""

    def __init__(self, endpoint: str, region: str, now: Callable[[], datetime]) -> None:
        """Take AWS at `endpoint`; nothing is sent yet."""
        session = boto3.session.Session(
            aws_access_key_id="sandbox-eks",
            aws_secret_access_key="sandbox",  # noqa: S106 - moto takes any
            region_name=region,
        )
        self._endpoint = endpoint
        self._eks = session.client("eks", endpoint_url=endpoint)
        self._ec2 = session.client("ec2", endpoint_url=endpoint)
        self._http = urllib3.PoolManager(retries=False)
        self._now = now

    def review(self, token: str) -> Caller:
        """Return who bears the token.

        Raises: TokenRefused; ClientError and connection errors when AWS is away.
        """
        arn = self._caller_arn(signed_request(token, self._now()))
        principal, session = principal_of(arn)
        for cluster in sorted(self._eks.list_clusters()["clusters"]):
            for entry in self._eks.list_access_entries(clusterName=cluster)["accessEntries"]:
                # A role's path does not show in the ARN of its sessions.
                if entry == principal or _without_path(entry) == principal:
                    return self._admitted(cluster, entry, arn, session)
        raise TokenRefused(f"{principal} has no access entry in any cluster")

    def _caller_arn(self, query: Mapping[str, str]) -> str:
        authorization = (
            f"AWS4-HMAC-SHA256 Credential={query['X-Amz-Credential']}, "
            f"SignedHeaders={query['X-Amz-SignedHeaders']}, Signature={query.get('X-Amz-Signature', '')}"
        )
        headers = {
            "Authorization": authorization,
            "X-Amz-Date": query["X-Amz-Date"],
            "Content-Type": "application/x-www-form-urlencoded",
        }
        if "X-Amz-Security-Token" in query:
            headers["X-Amz-Security-Token"] = query["X-Amz-Security-Token"]
        answer = self._http.request(
            "POST",
            self._endpoint,
            headers=headers,
            body=b"Action=GetCallerIdentity&Version=2011-06-15",
            timeout=10,
        )
        if answer.status != 200:
            raise TokenRefused(f"STS does not know the caller: {answer.data.decode(errors='replace')[:200]}")
        arn = ElementTree.fromstring(answer.data).findtext(".//{*}Arn")  # noqa: S314 - the sandbox's own answer
        if arn is None:
            raise TokenRefused("STS names no caller")
        return arn

    def _admitted(self, cluster: str, principal: str, arn: str, session: str) -> Caller:
        entry = self._eks.describe_access_entry(clusterName=cluster, principalArn=principal)["accessEntry"]
        if entry["type"] in NODE_TYPES:
            found = self._ec2.describe_instances(InstanceIds=[session])["Reservations"]
            name = found[0]["Instances"][0]["PrivateDnsName"]
            return Caller(
                username=f"system:node:{name}", groups=("system:nodes", "system:bootstrappers"), arn=arn
            )
        policies = self._eks.list_associated_access_policies(clusterName=cluster, principalArn=principal)
        groups = [
            _group(policy["policyArn"].rpartition("/")[2])
            for policy in policies["associatedAccessPolicies"]
            if policy["accessScope"]["type"] == "cluster"
        ]
        return Caller(
            username=entry["username"].replace("{{SessionName}}", session),
            groups=(*entry.get("kubernetesGroups", ()), *groups),
            arn=arn,
        )


def bind_access_policies(api: Api) -> None:
    """Bind each access policy's group to its cluster role. Raises: ApiError."""
    for policy, role in POLICY_ROLES.items():
        body: Object = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": _group(policy)},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": _group(policy)}],
        }
        try:
            api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body)
        except ApiError as exc:
            if exc.status != 409:
                raise


class TokenWebhook:
    """The HTTPS server that answers TokenReviews on loopback."""

    def __init__(self, reviewer: TokenReviewer, authority: Authority, *, port: int, folder: Path) -> None:
        """Listen and answer in the background, with a certificate of the authority written to `folder`."""
        certificate, key = authority.issue("eks-token-webhook", hosts=("127.0.0.1",)).write(
            folder, "token-webhook"
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(reviewer))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True, name="eks tokens").start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


def answer(reviewer: TokenReviewer, review: Mapping[str, Any]) -> Object:
    """Return the TokenReview with its status filled in."""
    status: Object = {"authenticated": False}
    try:
        caller = reviewer.review(review["spec"]["token"])
        user = {
            "username": caller.username,
            "uid": caller.arn,
            "groups": list(caller.groups),
            "extra": {"arn": [caller.arn]},
        }
        status = {"authenticated": True, "user": user}
    except (TokenRefused, ClientError, BotoCoreError, urllib3.exceptions.HTTPError) as exc:
        status["error"] = str(exc)
    return {"apiVersion": review["apiVersion"], "kind": "TokenReview", "status": status}


def _group(policy: str) -> str:
    return f"eks-access-policy:{policy}"


def _without_path(arn: str) -> str:
    head, separator, tail = arn.partition(":role/")
    return f"{head}{separator}{tail.rpartition('/')[2]}" if separator else arn


def _handler(reviewer: TokenReviewer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 15

        def do_POST(self) -> None:
            """Answer one TokenReview."""
            try:
                review = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                content, status = json.dumps(answer(reviewer, review)).encode(), 200
            except (ValueError, KeyError, TypeError) as exc:
                content, status = f"not a TokenReview: {exc!r}".encode(), 400
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Stay silent."""

    return Handler

"""A small synchronous client of the API server, for the sandbox's own processes and tests.

Plain JSON objects in and out, one connection pool, optional impersonation (how a node's own identity is used
without a certificate per node). It is not the controller's client (`controller.kube`) and never retries.
"""

from __future__ import annotations

import json
import ssl
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import attrs
import urllib3

from sandbox.kubernetes.kubeconfig import Access

__all__ = ["Api", "ApiError", "Object"]

Object = dict[str, Any]
"""A Kubernetes object as JSON."""

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
CONNECTIONS = 32
"""Parallel requests of one client; more wait for a free connection."""
PAGE = 500
"""Objects of one page of a list, as client-go asks."""


@attrs.frozen
class ApiError(Exception):
    """The API server refused: `status` is the HTTP status, `reason` and `message` those of its answer."""

    request: str
    status: int
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.request}: {self.status} {self.reason}: {self.message}"


class Api:
    """The API server as seen by one identity."""

    def __init__(self, access: Access) -> None:
        """Prepare a connection pool; nothing is sent yet."""
        self.access = access
        self._headers: dict[str, str] = {"Accept": "application/json", "User-Agent": "charpente-sandbox"}
        if access.token is not None:
            self._headers["Authorization"] = f"Bearer {access.token}"
        self._pool = urllib3.PoolManager(
            num_pools=4, maxsize=CONNECTIONS, block=True, retries=False, ssl_context=_ssl_context(access)
        )

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Self:
        """Use the current context of a kubeconfig."""
        return cls(Access.read(path))

    def impersonating(self, user: str, groups: Sequence[str] = ()) -> Api:
        """Return a client that acts as `user` over the same connections (if allowed to)."""
        other = Api.__new__(Api)
        other.access = self.access
        other._pool = self._pool
        # A repeated header is the only way to name several groups.
        headers = urllib3.HTTPHeaderDict(self._headers)
        headers.add("Impersonate-User", user)
        for group in groups:
            headers.add("Impersonate-Group", group)
        other._headers = headers  # type: ignore[assignment] # a mapping with repeated keys, which urllib3 sends as such
        return other

    def as_node(self, name: str) -> Api:
        """Return a client that acts as the kubelet of node `name`, as the Node authorizer knows it."""
        return self.impersonating(f"system:node:{name}", ("system:nodes", "system:authenticated"))

    def get(self, path: str, **query: str) -> Object:
        """Read one object or one answer. Raises: ApiError."""
        return self._request("GET", path, query=query)

    def find(self, path: str) -> Object | None:
        """Read one object; None when it does not exist. Raises: ApiError for any other refusal."""
        try:
            return self.get(path)
        except ApiError as exc:
            if exc.status == 404:
                return None
            raise

    def list(self, path: str, **query: str) -> tuple[list[Object], str]:
        """Read a whole collection, page by page; returns the objects and the resource version to watch
        from.
        """
        items: list[Object] = []
        query = {**query, "limit": str(PAGE)}
        while True:
            page = self.get(path, **query)
            items += page["items"]
            onward = page["metadata"].get("continue")
            if not onward:
                return items, page["metadata"]["resourceVersion"]
            query["continue"] = onward

    def create(self, path: str, body: Object) -> Object:
        """POST an object (or a sub-resource such as `…/token`). Raises: ApiError."""
        return self._request("POST", path, body=body)

    def merge(self, path: str, body: Object) -> Object:
        """Apply a JSON merge patch. Raises: ApiError."""
        return self._request("PATCH", path, body=body, content_type=MERGE)

    def patch(self, path: str, body: Object) -> Object:
        """Apply a strategic merge patch (built-in kinds only: conditions merge by type). Raises: ApiError."""
        return self._request("PATCH", path, body=body, content_type=STRATEGIC)

    def replace(self, path: str, body: Object) -> Object:
        """PUT an object. Raises: ApiError."""
        return self._request("PUT", path, body=body)

    def delete(self, path: str, body: Object | None = None) -> Object:
        """DELETE an object; `body` holds DeleteOptions. Raises: ApiError."""
        return self._request("DELETE", path, body=body)

    def watch(
        self, path: str, resource_version: str, *, seconds: int = 30, **query: str
    ) -> Iterator[tuple[str, Object]]:
        """Yield (event type, object) for `seconds` or until the server ends the watch.

        Raises: ApiError with status 410 when the version is too old (list again), and for any other refusal.
        """
        query = {
            **query,
            "watch": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
            "allowWatchBookmarks": "true",
        }
        response = self._pool.request(
            "GET",
            self._url(path, query),
            headers=self._headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=5, read=seconds + 10),
        )
        try:
            if response.status != 200:
                raise _refused(f"WATCH {path}", response.status, response.read())
            for line in _lines(response):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise ApiError(
                        f"WATCH {path}", status.get("code", 500), status.get("reason", ""), status["message"]
                    )
                yield event["type"], event["object"]
        finally:
            response.close()
            response.release_conn()

    def is_ready(self) -> bool:
        """Whether the API server says that it is ready; False while nobody answers."""
        try:
            response = self._pool.request("GET", self._url("/readyz", {}), headers=self._headers, timeout=2)
        except urllib3.exceptions.HTTPError:
            return False
        return response.status == 200

    def _url(self, path: str, query: Mapping[str, str]) -> str:
        return f"{self.access.server}{path}" + (f"?{urlencode(query)}" if query else "")

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        headers = urllib3.HTTPHeaderDict(self._headers)
        if body is not None:
            headers["Content-Type"] = content_type
        response = self._pool.request(
            method,
            self._url(path, query or {}),
            headers=headers,
            body=None if body is None else json.dumps(body).encode(),
            timeout=urllib3.Timeout(connect=5, read=60),
        )
        if response.status >= 300:
            raise _refused(f"{method} {path}", response.status, response.data)
        content: Object = json.loads(response.data)
        return content


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    pending = b""
    for chunk in response.stream(amt=None):
        *complete, pending = (pending + chunk).split(b"\n")
        yield from (line for line in complete if line)


def _refused(request: str, status: int, content: bytes) -> ApiError:
    try:
        answer = json.loads(content)
        return ApiError(request, status, answer.get("reason", ""), answer.get("message", ""))
    except ValueError:
        return ApiError(request, status, "", content.decode(errors="replace")[:300])


def _ssl_context(access: Access) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=access.authority.decode())
    if access.client is not None:
        # The ssl module reads certificates from files only.
        with tempfile.NamedTemporaryFile("wb", suffix=".pem") as pair:
            pair.write(access.client.certificate + access.client.key)
            pair.flush()
            context.load_cert_chain(pair.name)
    return context

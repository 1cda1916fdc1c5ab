"""The asyncio client of the API server: plain JSON objects in and out.

Called by every controller that writes and by the mirror. Owns one pool of connections, the limit of
requests per second and the translation of answers to `KubeError`s; knows nothing about what objects
mean. Bodies are JSON dicts because this is the edge: typed objects are made by their `from_wire`.

Retries: an answer 429 that names a wait (priority and fairness) is waited for a few times, except on
evictions, where 429 is a disruption budget's answer. Everything else is the caller's to retry.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import attrs
import orjson

from controller.clock import Clock
from controller.kube.connection import Connection
from controller.kube.errors import KubeError, TooManyRequests, Unavailable, from_response
from controller.kube.kinds import POD, Kind
from controller.kube.ratelimit import TokenBucket
from controller.observability.metrics import Metrics

__all__ = ["Client", "ListPage", "PatchType", "WireObject"]

WireObject = dict[str, Any]
Patch = WireObject | list[WireObject]
"""A merge patch, or the operations of a JSON patch."""

_REQUEST_TIMEOUT_S: Final = 30.0
"""Longest wait for an answer; large lists are paged, so none should come near."""
_CONNECTIONS: Final = 128
"""Open requests at once; watches have a pool of their own."""
_TLS_LEAKS: Final = sys.version_info < (3, 12, 8)
"""A TLS connection closed in the middle of a stream may stay open (mended by CPython pull request 118960)."""
_BUSY_TRIES: Final = 4
_LONGEST_BUSY_WAIT_S: Final = 10.0
_PAGE: Final = 1000
"""Objects per page of a list: about 5 MB of pods."""


_VERSION: Final = Kind(group="", version="", kind="Version", plural="version", namespaced=False)
"""Not a kind, yet requests are named and counted by one."""


class PatchType(StrEnum):
    """How a patch body is to be read; the values are media types."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"


@attrs.frozen(kw_only=True)
class ListPage:
    """One page of a list."""

    items: tuple[WireObject, ...]
    resource_version: str
    continue_token: str


@attrs.frozen(kw_only=True)
class _Request:
    method: str
    kind: Kind
    path: str
    params: Mapping[str, str] | None = None
    body: Patch | None = None
    content_type: str = "application/json"

    def __str__(self) -> str:
        """Return verb, resource and object, as an operator would say it."""
        rest = self.path.rpartition(self.kind.plural)[2].strip("/")
        return f"{self.method.lower()} {self.kind.resource} {rest}".rstrip()


class Client:
    """Reads and writes objects of one API server. Every call raises the `KubeError` tree."""

    def __init__(
        self, connection: Connection, *, clock: Clock, metrics: Metrics, limit: TokenBucket, user_agent: str
    ) -> None:
        """Keep the arguments; connections are opened by `async with`."""
        self._connection = connection
        self._clock = clock
        self._metrics = metrics
        self._limit = limit
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the pool of connections."""
        connector = aiohttp.TCPConnector(
            limit=0,
            ssl=self._connection.tls(),
            keepalive_timeout=90,
            enable_cleanup_closed=_TLS_LEAKS,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._user_agent, "Accept": "application/json"},
            read_bufsize=2**20,
            trust_env=True,
        )
        self._slots = asyncio.Semaphore(_CONNECTIONS)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection, open watches included."""
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # an aborted connection goes in the loop's next turn

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> WireObject:
        """Return one object. Raises NotFound and the rest of the tree."""
        return await self._call(_Request(method="GET", kind=kind, path=kind.path(namespace, name)))

    async def list(
        self, kind: Kind, namespace: str | None = None, *, params: Mapping[str, str] | None = None
    ) -> tuple[WireObject, ...]:
        """Return every object, all pages read; `params` may hold selectors."""
        items: list[WireObject] = []
        token = ""
        while True:
            page = await self.list_page(kind, namespace, params=params, continue_token=token)
            items += page.items
            token = page.continue_token
            if not token:
                return tuple(items)

    async def list_page(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        params: Mapping[str, str] | None = None,
        continue_token: str = "",
    ) -> ListPage:
        """Return up to a page of objects and the token of the next one, empty at the end."""
        query = {"limit": str(_PAGE), **(params or {})}
        if continue_token:
            query["continue"] = continue_token
        answer = await self._call(_Request(method="GET", kind=kind, path=kind.path(namespace), params=query))
        meta = answer.get("metadata") or {}
        return ListPage(
            items=tuple(answer.get("items") or ()),
            resource_version=str(meta.get("resourceVersion") or ""),
            continue_token=str(meta.get("continue") or ""),
        )

    async def create(self, kind: Kind, body: WireObject, namespace: str | None = None) -> WireObject:
        """Create an object and return it as stored. Raises AlreadyExists, Invalid."""
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        return await self._call(_Request(method="POST", kind=kind, path=kind.path(namespace), body=body))

    async def replace(self, kind: Kind, body: WireObject, namespace: str | None = None) -> WireObject:
        """Replace a whole object, if its resource version still holds. Raises Conflict, NotFound."""
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        path = kind.path(namespace, body["metadata"]["name"])
        return await self._call(_Request(method="PUT", kind=kind, path=path, body=body))

    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Patch,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        patch_type: PatchType = PatchType.MERGE,
    ) -> WireObject:
        """Patch an object and return it as stored.

        Conditional when the body holds `metadata.resourceVersion`: raises Conflict if it no longer holds.
        """
        path = kind.path(namespace, name, subresource)
        return await self._call(
            _Request(method="PATCH", kind=kind, path=path, body=body, content_type=patch_type.value)
        )

    async def delete(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
    ) -> WireObject:
        """Delete an object, only that of the given UID if one is given. Raises NotFound, Conflict.

        Returns the object when it stays for its finalizers or grace period, else a `Status`.
        """
        options: WireObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        return await self._call(
            _Request(method="DELETE", kind=kind, path=kind.path(namespace, name), body=options)
        )

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """Ask for the eviction of that very pod.

        Raises TooManyRequests or SeveralBudgets when a disruption budget forbids it, NotFound or
        Conflict when the pod is gone or another one has its name.
        """
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = POD.path(namespace, name, "eviction")
        await self._call(_Request(method="POST", kind=POD, path=path, body=body), waits_when_busy=False)

    async def server_version(self) -> str:
        """Return the API server's version, such as `v1.34.4`."""
        answer = await self._call(_Request(method="GET", kind=_VERSION, path="/version"))
        return str(answer["gitVersion"])

    async def watch(self, kind: Kind, resource_version: str, *, timeout_s: int) -> AsyncIterator[WireObject]:
        """Yield the watch events after that version until the server ends the stream.

        Events are as on the wire: `type` and `object`. Raises Gone when the version is too old, and
        Unavailable when the connection breaks.
        """
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_s),
        }
        request = f"watch {kind.resource}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=timeout_s + 30)
        try:
            async with self._open.get(
                self._connection.server + kind.path(),
                params=params,
                timeout=timeout,
                headers=await self._headers(),
                server_hostname=self._connection.server_name,
            ) as response:
                if response.status >= 400:
                    raise from_response(request, response.status, _decoded(await response.read()))
                async for line in _lines(response.content):
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise from_response(request, int(status.get("code") or 500), status)
                    yield event
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            raise Unavailable(request, _words(exc)) from exc

    async def _call(self, request: _Request, *, waits_when_busy: bool = True) -> WireObject:
        for left in range(_BUSY_TRIES - 1, -1, -1):
            try:
                return await self._once(request)
            except TooManyRequests as exc:
                if not left or not waits_when_busy or exc.retry_after is None:
                    raise
                await self._clock.sleep(min(exc.retry_after, _LONGEST_BUSY_WAIT_S))
        raise AssertionError("the last try returns or raises")

    async def _once(self, request: _Request) -> WireObject:
        await self._limit.take()
        headers = {**await self._headers(), "Content-Type": request.content_type}
        started = self._clock.monotonic()
        code = "<error>"
        try:
            async with (
                self._slots,
                self._open.request(
                    request.method,
                    self._connection.server + request.path,
                    params=request.params,
                    data=None if request.body is None else orjson.dumps(request.body),
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT_S, sock_connect=10),
                    server_hostname=self._connection.server_name,
                ) as response,
            ):
                code = str(response.status)
                raw = await response.read()
                if response.status >= 400:
                    raise _refusal(str(request), response, raw)
                answer: WireObject = orjson.loads(raw) if raw else {}
                return answer
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            raise Unavailable(str(request), _words(exc)) from exc
        finally:
            kind, seconds = request.kind, self._clock.monotonic() - started
            self._metrics.runtime.observe_request(
                request.method, kind.group, kind.version, kind.kind, code=code, seconds=seconds
            )

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client is used outside `async with`")
        return self._session

    async def _headers(self) -> dict[str, str]:
        value = await self._connection.authorization()
        return {"Authorization": value} if value else {}


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the stream's lines; of any length, which `readline` is not."""
    rest = bytearray()
    async for chunk in content.iter_any():
        rest += chunk
        if b"\n" not in chunk:
            continue
        *whole, tail = rest.split(b"\n")
        rest = bytearray(tail)
        for line in whole:
            if line:
                yield bytes(line)


def _refusal(request: str, response: aiohttp.ClientResponse, raw: bytes) -> KubeError:
    wait = response.headers.get("Retry-After", "")
    return from_response(request, response.status, _decoded(raw), float(wait) if wait.isdigit() else None)


def _decoded(raw: bytes) -> WireObject | None:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return {"message": raw[:200].decode(errors="replace").strip()}
    return body if isinstance(body, dict) else None


def _words(exc: BaseException) -> str:
    return str(exc) or type(exc).__name__

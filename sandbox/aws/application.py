"""The WSGI application in front of moto: control, faults, recorder, own services, errors clients can read.

Each request is read into a `Call`, may be hit by a fault rule, is answered by an own service (EKS, pricing)
or by moto, and is recorded. Whatever moto cannot do or fails at leaves as an AWS-shaped error that names the
operation, never as HTML and never as an empty success. It holds the world's lock around every call but long
polls, since moto's backends are not made for threads.
"""

from __future__ import annotations

import contextlib
import io
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moto.core.exceptions import ServiceException
from moto.ec2.exceptions import FilterNotImplementedError

from controller.clock import Clock
from sandbox.aws import control_api, pricing
from sandbox.aws.account import prepare_region
from sandbox.aws.calls import Call, read_call
from sandbox.aws.eks import service as eks
from sandbox.aws.errors import AwsError, NotModelled, Protocol, Response, rendered
from sandbox.aws.faults import Fault
from sandbox.aws.recorder import RequestRecord
from sandbox.aws.world import World

__all__ = ["Application"]

StartResponse = Callable[..., Any]
LONG_POLLS = frozenset({"ReceiveMessage"})
"""Calls that wait on purpose: they run without the lock."""
_PREPARED = frozenset({"ec2", "ssm", "eks"})
"""Services that need the region's images and parameters."""


class Application:
    """Answers every request of the server."""

    def __init__(self, world: World, moto: Callable[..., Iterable[bytes]], clock: Clock) -> None:
        """Put the application in front of moto's WSGI application."""
        self._world = world
        self._moto = moto
        self._clock = clock

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        path = str(environ.get("PATH_INFO", "/"))
        if path.startswith(control_api.PREFIX):
            response = control_api.answer(self._world, environ["REQUEST_METHOD"], path, environ, body)
        else:
            response = self._recorded(read_call(environ, body, self._world.region), environ)
        headers = [
            ("Content-Type", response.content_type),
            *response.headers,
            ("Content-Length", str(len(response.body))),
        ]
        start_response(f"{response.status} {'OK' if response.status < 400 else 'Error'}", headers)
        return [response.body]

    def _recorded(self, call: Call, environ: dict[str, Any]) -> Response:
        started = self._clock.monotonic()
        error: AwsError | None = None
        try:
            response = self._answered(call, environ)
        except AwsError as exc:
            error = exc
            response = rendered(exc, call.protocol)
        self._world.requests.add(
            RequestRecord(
                number=0,
                at=self._world.now().isoformat(),
                service=call.service,
                region=call.region,
                action=call.action,
                status=response.status,
                error=error.code if error else None,
                milliseconds=round((self._clock.monotonic() - started) * 1000, 1),
                parameters=call.parameters(),
            )
        )
        return response

    def _answered(self, call: Call, environ: dict[str, Any]) -> Response:
        fault = self._world.faults.take(call.service, call.action, call.region)
        if fault is None:
            return self._carried_out(call, environ)
        _suffer(fault)
        response = self._carried_out(call, environ)
        threading.Event().wait(fault.withheld_seconds)
        return response

    def _carried_out(self, call: Call, environ: dict[str, Any]) -> Response:
        lock = contextlib.nullcontext() if call.action in LONG_POLLS else self._world.lock
        with lock:
            self._world.lifecycle.advance(self._world.now())
            if call.service in _PREPARED:
                prepare_region(self._world, call.region)
            if call.service == "pricing":
                return _json_answer(
                    pricing.answer(call.action, call.parameters()), "application/x-amz-json-1.1"
                )
            if call.service == "eks":
                return _json_answer(eks.answer(self._world, call), "application/json")
            return self._from_moto(call, environ)

    def _from_moto(self, call: Call, environ: dict[str, Any]) -> Response:
        captured: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
            captured.update(status=int(status.split()[0]), headers=headers)

        try:
            body = b"".join(self._moto(environ, start_response))
        except Exception as exc:
            raise _translated(exc, call) from exc
        kinds = {k.lower(): v for k, v in captured["headers"]}
        kind = kinds.get("content-type", "text/xml")
        if captured["status"] >= 400 and kind.startswith("text/html") and b"<Error" not in body:
            raise NotModelled(f"{call.service or 'unsigned'} {call.action}")
        kept = tuple(
            (k, v) for k, v in captured["headers"] if k.lower() not in ("content-type", "content-length")
        )
        return Response(status=captured["status"], body=body, content_type=kind, headers=kept)


def _suffer(fault: Fault) -> None:
    """Wait as the fault says and raise its error, if it has one."""
    if fault.delay_seconds:
        threading.Event().wait(fault.delay_seconds)
    if fault.code:
        raise AwsError(fault.code, fault.message or f"Fault of the sandbox: {fault.code}", fault.status)


def _translated(exc: Exception, call: Call) -> AwsError:
    if isinstance(exc, AwsError):
        return exc
    if isinstance(exc, FilterNotImplementedError):
        name = str(exc).split("'")[1]
        return AwsError("InvalidParameterValue", f"The filter '{name}' is invalid")
    if isinstance(exc, ServiceException):
        return AwsError(exc.code, exc.message)
    if isinstance(exc, NotImplementedError):
        return NotModelled(f"{call.service} {call.action} ({exc})")
    code = "InternalFailure" if call.protocol in (Protocol.JSON, Protocol.QUERY) else "InternalError"
    return AwsError(
        code, f"The sandbox failed at {call.service} {call.action}: {type(exc).__name__}: {exc}", 500
    )


def _json_answer(document: Mapping[str, Any], kind: str) -> Response:
    return Response(status=200, body=json.dumps(document).encode(), content_type=kind)

"""Errors of the sandbox's AWS, and how each protocol writes them.

    AwsError            an answer the API defines: the caller's request was refused
      NotModelled       the sandbox does not model what was asked; never an empty success

Raised by the services here, by fault rules, and made from whatever moto raises; written by `rendered`.
"""

from __future__ import annotations

import json
from enum import StrEnum
from xml.sax.saxutils import escape

import attrs

__all__ = ["AwsError", "NotModelled", "Protocol", "Response", "rendered"]

REQUEST_ID = "00000000-0000-4000-8000-000000000000"
"""Errors carry one fixed id: nothing here looks requests up by id."""

_STATUS = {
    "AccessDenied": 403,
    "AccessDeniedException": 403,
    "InternalError": 500,
    "InternalFailure": 500,
    "NoSuchEntity": 404,
    "NotModelled": 501,
    "RequestLimitExceeded": 503,
    "ServiceUnavailable": 503,
    "Throttling": 400,
    "Unavailable": 503,
    "UnauthorizedOperation": 403,
    "DryRunOperation": 412,
}


class Protocol(StrEnum):
    """How a service writes requests and answers."""

    EC2 = "ec2"
    QUERY = "query"
    JSON = "json"
    REST_JSON = "rest-json"
    REST_XML = "rest-xml"


@attrs.frozen(kw_only=True)
class Response:
    """An HTTP answer: status, headers without Content-Length, body."""

    status: int
    body: bytes
    content_type: str
    headers: tuple[tuple[str, str], ...] = ()


class AwsError(Exception):
    """A refusal with an AWS error code, a message and an HTTP status (by code unless given)."""

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        """Keep the three parts; 400 for codes without a status of their own."""
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status or _STATUS.get(code, 400)


class NotModelled(AwsError):
    """The sandbox has no model of this operation, parameter or filter; the text names it."""

    def __init__(self, what: str) -> None:
        """Name what is missing, for example "ec2 CreateFleet Type=maintain"."""
        super().__init__("NotModelled", f"The sandbox does not model {what}.")


def rendered(error: AwsError, protocol: Protocol) -> Response:
    """Write an error as the protocol's clients expect it."""
    if protocol in (Protocol.JSON, Protocol.REST_JSON):
        return _json_error(error, protocol)
    code, message = escape(error.code), escape(error.message)
    inner = f"<Code>{code}</Code><Message>{message}</Message>"
    if protocol is Protocol.EC2:
        body = (
            f"<Response><Errors><Error>{inner}</Error></Errors><RequestID>{REQUEST_ID}</RequestID></Response>"
        )
    elif protocol is Protocol.QUERY:
        kind = "Receiver" if error.status >= 500 else "Sender"
        body = (
            f"<ErrorResponse><Error><Type>{kind}</Type>{inner}</Error>"
            f"<RequestId>{REQUEST_ID}</RequestId></ErrorResponse>"
        )
    else:
        body = f"<Error>{inner}<RequestId>{REQUEST_ID}</RequestId></Error>"
    text = f'<?xml version="1.0" encoding="UTF-8"?>{body}'
    return Response(status=error.status, body=text.encode(), content_type="text/xml")


def _json_error(error: AwsError, protocol: Protocol) -> Response:
    kind = "application/x-amz-json-1.1" if protocol is Protocol.JSON else "application/json"
    document = {"__type": error.code, "message": error.message}
    return Response(
        status=error.status,
        body=json.dumps(document).encode(),
        content_type=kind,
        headers=(("x-amzn-ErrorType", error.code),),
    )

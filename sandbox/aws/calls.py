"""What an HTTP request to the sandbox asks for: service, region, action, protocol, parameters.

`read_call` is used by the application once per request, before fault rules and the recorder look at it. It
reads the signature's credential scope but verifies nothing: any key is accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote

import attrs
from botocore.loaders import Loader

from sandbox.aws.errors import Protocol

__all__ = ["Call", "Route", "read_call", "rest_routes"]

_SCOPE = re.compile(r"Credential=[^/,]+/\d{8}/([^/,]+)/([^/,]+)/aws4_request")
_REST_SERVICES = {"eks": Protocol.REST_JSON, "s3": Protocol.REST_XML}
_QUERY_SERVICES = frozenset({"iam", "sts", "sqs", "sns", "autoscaling", "cloudformation", "monitoring"})


@attrs.frozen(kw_only=True)
class Call:
    """One request: `action` is the API's operation name, or "METHOD /path" where that is unknown."""

    service: str
    region: str
    action: str
    protocol: Protocol
    body: bytes = attrs.field(repr=False)
    path_parameters: Mapping[str, str] = attrs.field(factory=dict)
    query: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)

    def parameters(self) -> dict[str, Any]:
        """Return the request's parameters as the wire has them; {} when the body is not understood."""
        if self.protocol in (Protocol.JSON, Protocol.REST_JSON):
            try:
                found = json.loads(self.body) if self.body else {}
            except ValueError:
                return {}
            document = dict(found) if isinstance(found, dict) else {}
            return {**document, **{k: list(v) for k, v in self.query.items()}, **self.path_parameters}
        if self.protocol is Protocol.REST_XML:
            return {}
        text = self.body.decode("utf-8", "replace")
        pairs = parse_qs(text, keep_blank_values=True).items()
        return {key: values[0] for key, values in pairs if key not in ("Action", "Version")}


@attrs.frozen(kw_only=True)
class Route:
    """One operation of a REST service: method and path pattern with named groups."""

    operation: str
    method: str
    path: re.Pattern[str]
    queries: Mapping[str, str]
    """Name in the query string → parameter name."""


@cache
def rest_routes(service: str) -> tuple[Route, ...]:
    """Return the operations of a REST service from botocore's model, longest paths first."""
    model = Loader().load_service_model(service, "service-2")
    routes = []
    for name, operation in model["operations"].items():
        uri = operation["http"]["requestUri"].split("?")[0]
        members = model["shapes"].get(operation.get("input", {}).get("shape", ""), {}).get("members", {})
        located = {m.get("locationName", key): key for key, m in members.items() if m.get("location")}
        queries = {
            m.get("locationName", key): key
            for key, m in members.items()
            if m.get("location") == "querystring"
        }
        routes.append(_route(name, operation["http"]["method"], uri, located, queries))
    return tuple(sorted(routes, key=lambda r: (-len(r.path.pattern), r.operation)))


def _route(name: str, method: str, uri: str, located: Mapping[str, str], queries: Mapping[str, str]) -> Route:
    def group(match: re.Match[str]) -> str:
        parameter = located.get(match[1].rstrip("+"), match[1].rstrip("+"))
        return f"(?P<{re.sub('[^A-Za-z0-9_]', '_', parameter)}>{'.+' if match[1].endswith('+') else '[^/]+'})"

    pattern = re.sub(r"\{([^}]+)\}", group, uri)
    return Route(operation=name, method=method, path=re.compile(f"{pattern}/?$"), queries=queries)


def _scope(environ: Mapping[str, Any], default_region: str) -> tuple[str, str]:
    """Return (service, region) from the header's credential scope or a presigned URL's."""
    signed = environ.get("HTTP_AUTHORIZATION", "")
    if not signed:
        signed = "Credential=" + parse_qs(environ.get("QUERY_STRING", "")).get("X-Amz-Credential", [""])[0]
    match = _SCOPE.search(signed)
    return (match[2], match[1]) if match else ("", default_region)


def read_call(environ: Mapping[str, Any], body: bytes, default_region: str) -> Call:
    """Read a WSGI request. Unsigned requests have the service "" and the default region."""
    service, region = _scope(environ, default_region)
    target = environ.get("HTTP_X_AMZ_TARGET")
    query = {k: tuple(v) for k, v in parse_qs(environ.get("QUERY_STRING", "")).items()}
    if target:
        action = target.split(".")[-1]
        return Call(service=service, region=region, action=action, protocol=Protocol.JSON, body=body)
    if service not in _REST_SERVICES:
        form = parse_qs(body.decode("utf-8", "replace")) if b"Action=" in body else {}
        action = (form.get("Action") or list(query.get("Action", ())) or [""])[0]
        if action:
            kind = Protocol.EC2 if service == "ec2" else Protocol.QUERY
            return Call(service=service, region=region, action=action, protocol=kind, body=body, query=query)
    return _rest_call(
        environ,
        Call(
            service=service,
            region=region,
            action="",
            body=body,
            query=query,
            protocol=_REST_SERVICES.get(
                service, Protocol.QUERY if service in _QUERY_SERVICES else Protocol.REST_JSON
            ),
        ),
    )


def _rest_call(environ: Mapping[str, Any], call: Call) -> Call:
    method, path = str(environ["REQUEST_METHOD"]), str(environ.get("PATH_INFO", "/"))
    raw = str(environ.get("RAW_URI") or environ.get("REQUEST_URI") or path).split("?")[0]
    if call.service in _REST_SERVICES:
        for route in rest_routes(call.service):
            if route.method == method and (match := route.path.match(raw)):
                named = {route.queries.get(key, key): values for key, values in call.query.items()}
                parameters = {key: unquote(value) for key, value in match.groupdict().items()}
                return attrs.evolve(call, action=route.operation, path_parameters=parameters, query=named)
    return attrs.evolve(call, action=f"{method} {path}")

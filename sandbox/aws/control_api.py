"""The control endpoints under /sandbox/: switching faults on, reading what happened, saying what is alive.

JSON both ways. They are for tests, the demo and the other parts of the sandbox; `control.Control` is their
typed client. A wrong request answers 400 with one line that names the field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

import attrs
from moto.ec2 import ec2_backends

from sandbox.aws import events
from sandbox.aws.account import empty
from sandbox.aws.costs import costs
from sandbox.aws.ec2 import states
from sandbox.aws.ec2.launching import all_instances
from sandbox.aws.ec2.records import Impairment
from sandbox.aws.errors import Response
from sandbox.aws.faults import Fault, Shortage
from sandbox.aws.inventory import inventory
from sandbox.aws.parameters import set_parameter
from sandbox.aws.world import ACCOUNT, ClusterEndpoint, NodeBoot, Timings, World

__all__ = ["PREFIX", "answer"]

PREFIX = "/sandbox/"


@attrs.frozen(kw_only=True)
class Ask:
    """One control request."""

    world: World
    body: Mapping[str, Any]
    query: Mapping[str, str]

    @property
    def region(self) -> str:
        """The region it is about."""
        return str(self.body.get("region") or self.query.get("region") or self.world.region)


class BadRequest(Exception):
    """The control request is wrong; the text names the field and the mend."""


def answer(world: World, method: str, path: str, environ: Mapping[str, Any], body: bytes) -> Response:
    """Answer a control request."""
    name = path.removeprefix(PREFIX).rstrip("/")
    query = {key: values[0] for key, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
    handler = ROUTES.get((method, name))
    if handler is None:
        known = ", ".join(f"{m} {PREFIX}{n}" for m, n in sorted(ROUTES))
        return _json(404, {"error": f"no control endpoint {method} {path}; there are: {known}"})
    try:
        document = json.loads(body) if body else {}
        if not isinstance(document, dict):
            raise BadRequest("the body must be a JSON object")
        with world.lock:
            world.lifecycle.advance(world.now())
            return _json(200, handler(Ask(world=world, body=document, query=query)))
    except (BadRequest, TypeError, ValueError) as exc:
        return _json(400, {"error": f"{method} {path}: {exc}"})


def _json(status: int, document: Any) -> Response:
    return Response(status=status, body=json.dumps(document).encode(), content_type="application/json")


def _known(kind: type[Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body as arguments of an attrs class. Raises BadRequest for a field it does not have."""
    fields = {f.name for f in attrs.fields(kind)}
    unknown = sorted(body.keys() - fields)
    if unknown:
        raise BadRequest(f"unknown field {unknown[0]!r}; known: {', '.join(sorted(fields))}")
    return dict(body)


def _add_fault(ask: Ask) -> Any:
    ask.world.faults.add(Fault(**_known(Fault, ask.body)))
    return {}


def _add_shortage(ask: Ask) -> Any:
    ask.world.shortages.add(Shortage(**_known(Shortage, ask.body)))
    return {}


def _clear(ask: Ask) -> Any:
    """Remove faults and shortages; the request log too when asked ({"requests": true})."""
    ask.world.faults.clear()
    ask.world.shortages.clear()
    if ask.body.get("requests"):
        ask.world.requests.clear()
    return {}


def _reset(ask: Ask) -> Any:
    """Start over with an empty account."""
    empty(ask.world)
    return {}


def _requests(ask: Ask) -> Any:
    records = ask.world.requests.since(int(ask.query.get("since", 0)), ask.query.get("action"))
    return [attrs.asdict(record) for record in records]


def _set_cluster(ask: Ask) -> Any:
    try:
        ask.world.cluster_endpoint = ClusterEndpoint(
            endpoint=ask.body["endpoint"], certificate_authority=ask.body["certificateAuthority"]
        )
    except KeyError as exc:
        raise BadRequest(f"field {exc} is missing; send endpoint and certificateAuthority (base64)") from exc
    return {}


def _nodes(ask: Ask) -> Any:
    return {
        "bootSeconds": ask.world.node_boot.boot_seconds,
        "neverJoin": list(ask.world.node_boot.never_join),
    }


def _set_nodes(ask: Ask) -> Any:
    ask.world.node_boot = NodeBoot(
        boot_seconds=float(ask.body.get("bootSeconds", ask.world.node_boot.boot_seconds)),
        never_join=tuple(ask.body.get("neverJoin", ask.world.node_boot.never_join)),
    )
    return _nodes(ask)


def _state(ask: Ask) -> Any:
    return {
        "instanceBootSeconds": ask.world.timings.boot.total_seconds(),
        "shutdownSeconds": ask.world.timings.shutdown.total_seconds(),
        "purgeSeconds": ask.world.timings.purge.total_seconds(),
        "spotRoleRequired": ask.world.spot_role_required,
    }


def _set_state(ask: Ask) -> Any:
    now = _state(ask)
    unknown = sorted(ask.body.keys() - now.keys())
    if unknown:
        raise BadRequest(f"unknown field {unknown[0]!r}; known: {', '.join(sorted(now))}")
    wanted = {**now, **ask.body}
    ask.world.timings = Timings(
        boot=timedelta(seconds=float(wanted["instanceBootSeconds"])),
        shutdown=timedelta(seconds=float(wanted["shutdownSeconds"])),
        purge=timedelta(seconds=float(wanted["purgeSeconds"])),
    )
    ask.world.spot_role_required = bool(wanted["spotRoleRequired"])
    return _state(ask)


def _event(ask: Ask) -> Any:
    if "detailType" not in ask.body:
        raise BadRequest("field 'detailType' is missing")
    events.emit(
        ask.world,
        ask.region,
        ask.body["detailType"],
        ask.body.get("detail") or {},
        source=ask.body.get("source", "aws.ec2"),
        resources=ask.body.get("resources") or (),
    )
    return {}


def _interrupt(ask: Ask) -> Any:
    """Take spot instances back: the two-minute warning now, the end after `noticeSeconds`."""
    region = ask.region
    wanted = set(ask.body.get("instanceIds") or ())
    found = [i for i in all_instances(ec2_backends[ACCOUNT][region]) if i.id in wanted]
    missing = sorted(wanted - {i.id for i in found})
    if missing or not wanted:
        raise BadRequest(
            f"instanceIds: no instance {missing[0]}" if missing else "instanceIds: name at least one"
        )
    notice = timedelta(seconds=float(ask.body.get("noticeSeconds", 120)))
    for instance in found:
        events.emit(
            ask.world,
            region,
            "EC2 Spot Instance Interruption Warning",
            {"instance-id": instance.id, "instance-action": "terminate"},
            resources=[events.instance_arn(region, instance.id)],
        )
        ask.world.lifecycle.schedule(ask.world.now() + notice, _taken_back(ask.world, instance))
    return {}


def _impair(ask: Ask) -> Any:
    """Let instances fail a status check since so many seconds ago, or schedule an event for them."""
    check, event = ask.body.get("check") or "", ask.body.get("event") or ""
    if check not in ("", "instance", "system") or not (check or event):
        raise BadRequest("field 'check' is 'instance' or 'system', or field 'event' names an event's code")
    since = ask.world.now() - timedelta(seconds=float(ask.body.get("sinceSeconds", 0)))
    for identifier in ask.body.get("instanceIds") or ():
        ask.world.impairments[identifier] = Impairment(since=since, check=check, event=event)
    return {}


def _taken_back(world: World, instance: Any) -> Callable[[], None]:
    def end() -> None:
        states.begin_termination(world, instance, states.SPOT_TERMINATION)

    return end


def _inventory(ask: Ask) -> Any:
    return inventory(ask.world, ask.region)


def _cost(ask: Ask) -> Any:
    found = costs(ask.world, ask.region)
    return {
        "usdPerHour": found.usd_per_hour,
        "instances": found.instances,
        "byType": found.by_type,
        "unpriced": list(found.unpriced),
    }


def _parameter(ask: Ask) -> Any:
    """Write an SSM parameter of any path, for example to publish a newer recommended image."""
    if not ask.body.get("name") or not ask.body.get("value"):
        raise BadRequest("fields 'name' and 'value' are needed")
    set_parameter(ask.world, ask.region, ask.body["name"], ask.body["value"])
    return {}


ROUTES: Mapping[tuple[str, str], Callable[[Ask], Any]] = {
    ("GET", "cost"): _cost,
    ("GET", "inventory"): _inventory,
    ("GET", "nodes"): _nodes,
    ("GET", "requests"): _requests,
    ("GET", "state"): _state,
    ("POST", "clear"): _clear,
    ("POST", "eks"): _set_cluster,
    ("POST", "event"): _event,
    ("POST", "faults"): _add_fault,
    ("POST", "ice"): _add_shortage,
    ("POST", "impair"): _impair,
    ("POST", "interrupt"): _interrupt,
    ("POST", "nodes"): _set_nodes,
    ("POST", "parameter"): _parameter,
    ("POST", "reset"): _reset,
    ("POST", "state"): _set_state,
}

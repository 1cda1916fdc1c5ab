"""The typed client of the control endpoints, for tests, the demo and the other parts of the sandbox."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import attrs

from sandbox.aws.costs import Costs
from sandbox.aws.faults import Fault, Shortage
from sandbox.aws.recorder import RequestRecord
from sandbox.aws.world import NodeBoot

__all__ = ["Control", "ControlError"]

TIMEOUT_SECONDS = 30


class ControlError(Exception):
    """The control endpoint refused; the text is its one line."""


class Control:
    """Talks to one sandbox AWS. Regions default to the server's."""

    def __init__(self, endpoint: str) -> None:
        """Take the endpoint that AWS clients use, for example http://127.0.0.1:5000."""
        self._endpoint = endpoint.rstrip("/")

    def _call(self, method: str, name: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        given = {key: value for key, value in query.items() if value is not None}
        url = f"{self._endpoint}/sandbox/{name}" + (f"?{urlencode(given)}" if given else "")
        if not url.startswith("http://"):
            raise ControlError(f"{url}: the sandbox's AWS is reached by http:// on loopback")
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(url, data=data, method=method)  # noqa: S310 - scheme checked above
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
                return json.load(response)
        except urllib.error.HTTPError as exc:
            raise ControlError(json.load(exc).get("error", str(exc))) from exc

    def add_fault(self, fault: Fault) -> None:
        """Switch a fault on."""
        self._call("POST", "faults", attrs.asdict(fault))

    def add_shortage(self, shortage: Shortage) -> None:
        """Take capacity away."""
        self._call("POST", "ice", attrs.asdict(shortage))

    def clear(self, *, requests: bool = False) -> None:
        """Switch all faults and shortages off; forget the request log too if asked."""
        self._call("POST", "clear", {"requests": requests})

    def reset(self) -> None:
        """Start over with an empty account; timings, the cluster endpoint and the request log stay."""
        self._call("POST", "reset", {})

    def requests(self, *, since: int = 0, action: str | None = None) -> tuple[RequestRecord, ...]:
        """Return the answered requests after a number, oldest first."""
        found = self._call("GET", "requests", since=since, action=action)
        return tuple(RequestRecord(**record) for record in found)

    def set_cluster(self, endpoint: str, certificate_authority: str) -> None:
        """Let every EKS cluster show this API server; the CA is the base64 of its PEM."""
        self._call("POST", "eks", {"endpoint": endpoint, "certificateAuthority": certificate_authority})

    def node_boot(self) -> NodeBoot:
        """Return how instances become nodes."""
        found = self._call("GET", "nodes")
        return NodeBoot(boot_seconds=found["bootSeconds"], never_join=tuple(found["neverJoin"]))

    def set_node_boot(self, boot: NodeBoot) -> None:
        """Change how instances become nodes."""
        self._call("POST", "nodes", {"bootSeconds": boot.boot_seconds, "neverJoin": list(boot.never_join)})

    def set_timings(
        self, *, boot_seconds: float | None = None, shutdown_seconds: float | None = None
    ) -> None:
        """Change how long instances take to run and to end."""
        wanted = {"instanceBootSeconds": boot_seconds, "shutdownSeconds": shutdown_seconds}
        self._call("POST", "state", {key: value for key, value in wanted.items() if value is not None})

    def require_spot_role(self, *, required: bool = True) -> None:
        """Let spot launches fail without the service-linked role."""
        self._call("POST", "state", {"spotRoleRequired": required})

    def send_event(
        self,
        detail_type: str,
        detail: Mapping[str, Any],
        *,
        source: str = "aws.ec2",
        region: str | None = None,
    ) -> None:
        """Put an event of an AWS service on the default bus."""
        body: dict[str, Any] = {"detailType": detail_type, "detail": dict(detail), "source": source}
        if region is not None:
            body["region"] = region
        self._call("POST", "event", body)

    def interrupt(self, instance_ids: Sequence[str], *, notice_seconds: float = 120) -> None:
        """Take spot instances back after the notice."""
        self._call("POST", "interrupt", {"instanceIds": list(instance_ids), "noticeSeconds": notice_seconds})

    def impair(
        self, instance_ids: Sequence[str], *, check: str = "", event: str = "", since_seconds: float = 0
    ) -> None:
        """Let instances fail the check `instance` or `system`, or schedule an event for them."""
        body = {
            "instanceIds": list(instance_ids),
            "check": check,
            "event": event,
            "sinceSeconds": since_seconds,
        }
        self._call("POST", "impair", body)

    def inventory(self, *, region: str | None = None) -> dict[str, list[str]]:
        """Return the ids of live resources by kind."""
        found: dict[str, list[str]] = self._call("GET", "inventory", region=region)
        return found

    def costs(self, *, region: str | None = None) -> Costs:
        """Return what runs and costs."""
        found = self._call("GET", "cost", region=region)
        return Costs(
            usd_per_hour=found["usdPerHour"],
            instances=found["instances"],
            by_type=found["byType"],
            unpriced=tuple(found["unpriced"]),
        )

    def set_parameter(self, name: str, value: str, *, region: str | None = None) -> None:
        """Write an SSM parameter of any path."""
        body = {"name": name, "value": value}
        self._call("POST", "parameter", body if region is None else {**body, "region": region})

"""What a pod asks for, as kube-scheduler sums it (spec core/scheduling §13.1).

Called by `Pod.from_wire`; pure arithmetic on the wire form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from controller.scheduling.resources import PODS, Resources, add, largest
from framework.api.quantity import parse_resources

__all__ = ["effective_limits", "effective_requests", "has_resource_claims"]

_POD_LEVEL: Final = ("cpu", "memory")
_NO_STATUS: Final[Mapping[str, Any]] = {}


@attrs.frozen(kw_only=True)
class _Resized:
    """What containers have that may differ from what their spec asks."""

    held: Mapping[str, Resources] = attrs.field(factory=dict)
    """By container name: the most of what the kubelet allocated and what is in force."""
    infeasible: bool = False
    """Whether the node can never give what is asked, so that only what containers have counts."""

    def request(self, container: Mapping[str, Any], asked: Resources) -> Resources:
        """Return what counts for a container that asks for so much."""
        held = self.held.get(str(container.get("name")))
        if held is None:
            return asked
        return held if self.infeasible else largest((asked, held))


def effective_requests(spec: Mapping[str, Any], status: Mapping[str, Any] = _NO_STATUS) -> Resources:
    """Return the requests of a pod with its overhead and `pods: 1`.

    While a container is resized in place it counts with the most of what is asked and what it has.
    Raises ValueError for an amount that is negative or no quantity.
    """
    total = _aggregate(spec, "requests", _resized(status))
    total = add(total, _amounts(spec.get("overhead"), "spec.overhead"))
    total[PODS] = total.get(PODS, 0) + 1
    return total


def effective_limits(spec: Mapping[str, Any]) -> Resources:
    """Return the limits of a pod spec, summed like requests; raises ValueError likewise."""
    return _aggregate(spec, "limits", _Resized())


def has_resource_claims(spec: Mapping[str, Any]) -> bool:
    """Tell whether the pod uses dynamic resource allocation (§18)."""
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    return bool(spec.get("resourceClaims")) or any(
        (c.get("resources") or {}).get("claims") for c in containers
    )


def _resized(status: Mapping[str, Any]) -> _Resized:
    statuses = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    held = {}
    for each in statuses:
        if (resources := each.get("resources")) is not None:
            where = f"status.containerStatuses[{each.get('name')}]"
            allocated = _amounts(each.get("allocatedResources"), f"{where}.allocatedResources")
            in_force = _amounts(resources.get("requests"), f"{where}.resources.requests")
            held[str(each.get("name"))] = largest((allocated, in_force))
    pending = (c for c in status.get("conditions") or () if c.get("type") == "PodResizePending")
    return _Resized(held=held, infeasible=any(c.get("reason") == "Infeasible" for c in pending))


def _aggregate(spec: Mapping[str, Any], kind: str, resized: _Resized) -> dict[str, int]:
    running = add(*(resized.request(c, _container(c, kind)) for c in spec.get("containers") or ()))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, resized.request(container, _container(container, kind)))
            peak = largest((peak, sidecars))
        else:
            peak = largest((peak, add(sidecars, _container(container, kind))))
    total = largest((add(running, sidecars), peak))
    pod_level = _amounts((spec.get("resources") or {}).get(kind), f"spec.resources.{kind}")
    for name, amount in pod_level.items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = amount
    return total


def _container(container: Mapping[str, Any], kind: str) -> Resources:
    """The API server fills missing requests from limits; pods read before that get the same."""
    resources = container.get("resources")
    if not resources:
        return {}
    where = f"spec.containers[{container.get('name')}].resources"
    amounts = _amounts(resources.get(kind), f"{where}.{kind}")
    if kind == "requests" and resources.get("limits"):
        return {**_amounts(resources["limits"], f"{where}.limits"), **amounts}
    return amounts


def _amounts(raw: Mapping[str, Any] | None, where: str) -> Resources:
    if not raw:
        return {}
    try:
        amounts = parse_resources(raw)
    except ValueError as exc:
        raise ValueError(f"{where}: {exc}") from exc
    for name, amount in amounts.items():
        if amount < 0:
            raise ValueError(f"{where}: {name} is negative")
    return amounts

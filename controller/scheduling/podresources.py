"""What a pod asks for, as kube-scheduler sums it (spec core/scheduling §13.1).

Called by `Pod.from_wire`; pure arithmetic on the wire form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from controller.scheduling.resources import PODS, Resources, add, largest
from framework.api.quantity import parse_resources

__all__ = ["effective_limits", "effective_requests", "has_resource_claims"]

_POD_LEVEL: Final = ("cpu", "memory")


def effective_requests(spec: Mapping[str, Any]) -> Resources:
    """Return the requests of a pod spec with its overhead and `pods: 1`.

    Raises ValueError for an amount that is negative or no quantity.
    """
    total = add(_aggregate(spec, "requests"), _amounts(spec.get("overhead"), "overhead"))
    total[PODS] = total.get(PODS, 0) + 1
    return total


def effective_limits(spec: Mapping[str, Any]) -> Resources:
    """Return the limits of a pod spec, summed like requests; raises ValueError likewise."""
    return _aggregate(spec, "limits")


def has_resource_claims(spec: Mapping[str, Any]) -> bool:
    """Tell whether the pod uses dynamic resource allocation (§18)."""
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    return bool(spec.get("resourceClaims")) or any(
        (c.get("resources") or {}).get("claims") for c in containers
    )


def _aggregate(spec: Mapping[str, Any], kind: str) -> dict[str, int]:
    running = add(*(_container(c, kind) for c in spec.get("containers") or ()))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, _container(container, kind))
            peak = largest((peak, sidecars))
        else:
            peak = largest((peak, add(sidecars, _container(container, kind))))
    total = largest((add(running, sidecars), peak))
    pod_level = _amounts((spec.get("resources") or {}).get(kind), f"resources.{kind}")
    for name, amount in pod_level.items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = amount
    return total


def _container(container: Mapping[str, Any], kind: str) -> Resources:
    """The API server fills missing requests from limits; pods read before that get the same."""
    resources = container.get("resources")
    if not resources:
        return {}
    amounts = _amounts(resources.get(kind), f"containers[{container.get('name')}].resources.{kind}")
    if kind == "requests" and resources.get("limits"):
        return {
            **_amounts(resources["limits"], f"containers[{container.get('name')}].resources.limits"),
            **amounts,
        }
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

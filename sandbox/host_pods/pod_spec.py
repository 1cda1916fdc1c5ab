"""What a pod asks of the kubelet that runs it: command, environment, probes, ports. Pure functions of a Pod.

Used by `sandbox.host_pods.host_pod`. One container per pod is run; images, volumes and init containers do
not exist for a process of the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from framework.api.quantity import parse_quantity
from sandbox.kubernetes.api import Object

__all__ = ["ContainerSpec", "HttpProbe", "UnsupportedPod", "environment", "read_container"]


class UnsupportedPod(ValueError):
    """The pod asks for something that a process of the host cannot give; the text names it."""


@attrs.frozen(kw_only=True)
class HttpProbe:
    """An HTTP probe; times in seconds."""

    path: str
    port: int
    """As the container sees it, before it is moved to a free port of the host."""
    initial_delay_s: float = 0
    period_s: float = 10
    timeout_s: float = 1
    failure_threshold: int = 3
    success_threshold: int = 1


@attrs.frozen(kw_only=True)
class ContainerSpec:
    """The one container of a pod."""

    name: str
    image: str
    command: tuple[str, ...]
    ports: Mapping[str, int]
    """Name → number of the declared ports."""
    startup: HttpProbe | None
    liveness: HttpProbe | None
    readiness: HttpProbe | None
    restarts: bool
    """Whether the container is started again when it ends."""


def read_container(pod: Object) -> ContainerSpec:
    """Read the pod's container. Raises: UnsupportedPod."""
    containers = pod["spec"]["containers"]
    if len(containers) != 1:
        raise UnsupportedPod(f"the pod has {len(containers)} containers; a host pod has one")
    container = containers[0]
    ports = {p["name"]: p["containerPort"] for p in container.get("ports", ()) if "name" in p}
    return ContainerSpec(
        name=container["name"],
        image=container["image"],
        command=(*container.get("command", ()), *container.get("args", ())),
        ports=ports,
        startup=_probe(container, "startupProbe", ports),
        liveness=_probe(container, "livenessProbe", ports),
        readiness=_probe(container, "readinessProbe", ports),
        restarts=pod["spec"].get("restartPolicy", "Always") != "Never",
    )


def _probe(container: Object, field: str, ports: Mapping[str, int]) -> HttpProbe | None:
    found = container.get(field)
    if found is None:
        return None
    http = found.get("httpGet")
    if http is None:
        raise UnsupportedPod(f"{field}: only httpGet can be run against a process of the host")
    port = http["port"]
    if isinstance(port, str) and port not in ports:
        raise UnsupportedPod(f"{field}: no port is named {port!r}")
    return HttpProbe(
        path=http.get("path", "/"),
        port=ports[port] if isinstance(port, str) else port,
        initial_delay_s=found.get("initialDelaySeconds", 0),
        period_s=found.get("periodSeconds", 10),
        timeout_s=found.get("timeoutSeconds", 1),
        failure_threshold=found.get("failureThreshold", 3),
        success_threshold=found.get("successThreshold", 1),
    )


def environment(pod: Object, data: Callable[[str, str], Mapping[str, str] | None]) -> dict[str, str]:
    """Return the container's environment as the kubelet would make it.

    `data(kind, name)` returns the decoded content of a Secret or ConfigMap of the pod's namespace, None if
    missing. Raises: UnsupportedPod for a source that is missing (and not optional) or unknown.
    """
    container = pod["spec"]["containers"][0]
    values: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        values |= _from_source(source, data)
    for variable in container.get("env", ()):
        if "valueFrom" in variable:
            found = _value_from(pod, container, variable, data)
            if found is not None:
                values[variable["name"]] = found
        else:
            values[variable["name"]] = _expand(variable.get("value", ""), values)
    return values


def _from_source(source: Object, data: Callable[[str, str], Mapping[str, str] | None]) -> dict[str, str]:
    for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        if field in source:
            content = data(kind, source[field]["name"])
            if content is None and not source[field].get("optional"):
                raise UnsupportedPod(f"envFrom: {kind} {source[field]['name']} does not exist")
            prefix = source.get("prefix", "")
            return {f"{prefix}{key}": value for key, value in (content or {}).items()}
    raise UnsupportedPod(f"envFrom: {sorted(source)} is not known")


def _value_from(
    pod: Object, container: Object, variable: Object, data: Callable[[str, str], Mapping[str, str] | None]
) -> str | None:
    source = variable["valueFrom"]
    if "fieldRef" in source:
        return _field(pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        return _resource(container, source["resourceFieldRef"])
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if field in source:
            content = data(kind, source[field]["name"]) or {}
            if source[field]["key"] in content:
                return content[source[field]["key"]]
            if source[field].get("optional"):
                return None
            raise UnsupportedPod(
                f"env {variable['name']}: {kind} {source[field]['name']} has no key {source[field]['key']}"
            )
    raise UnsupportedPod(f"env {variable['name']}: source {sorted(source)} is not known")


def _field(pod: Object, path: str) -> str:
    subscript = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if subscript is not None:
        return str(pod["metadata"].get(subscript[1], {}).get(subscript[2], ""))
    value: Any = pod
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None or isinstance(value, (dict, list)):
        raise UnsupportedPod(f"fieldPath {path} is not known")
    return str(value)


def _resource(container: Object, reference: Object) -> str:
    kind, _, name = reference["resource"].partition(".")
    if kind not in ("limits", "requests"):
        raise UnsupportedPod(f"resourceFieldRef {reference['resource']} is not known")
    resources = container.get("resources", {})
    amount = resources.get(kind, {}).get(name)
    if amount is None and kind == "requests":
        amount = resources.get("limits", {}).get(name)
    divisor = parse_quantity(reference.get("divisor") or "1")
    nano = 0 if amount is None else parse_quantity(amount).nano
    per = divisor.nano or 10**9  # the API server writes an unset divisor as "0", which means 1
    return str(-(-nano // per))


def _expand(text: str, values: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by earlier variables; `$$(NAME)` stays `$(NAME)`, unknown names stay as they are."""

    def one(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        return values.get(match[1], match[0])

    return re.sub(r"\$?\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", one, text)

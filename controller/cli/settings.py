"""The controller's settings: one class, filled from flags and environment, flags winning.

Called by `charpente run` (and by whoever needs one default). Owns names, defaults and checks of
spec core/observability §5 and §6 and aws/iam-and-bootstrap §6; never reads a file or a cluster.
"""

# ruff: noqa: RUF009 - the calls in the class body make attrs fields

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from framework.api import UserError

__all__ = ["FeatureGates", "InvalidSetting", "Mode", "Settings", "env_name", "flag_name"]

_GO_DURATION: Final = re.compile(r"(?:(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h))")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class InvalidSetting(UserError):
    """A flag or variable has a value that cannot be used."""

    def __init__(self, name: str, value: str, expected: str) -> None:
        """Keep what the message is built from; `name` is the environment variable."""
        super().__init__(f"{name} (--{name.lower().replace('_', '-')}) is {value!r}; give {expected}")
        self.name = name


class Mode(StrEnum):
    """Whether decisions are carried out."""

    RUN = "run"
    OBSERVE = "observe"


@attrs.frozen(kw_only=True)
class FeatureGates:
    """Switches of features that are not yet for everyone (spec core/observability §6)."""

    node_repair: bool = False
    reserved_capacity: bool = True
    spot_to_spot_consolidation: bool = False
    node_overlay: bool = False
    static_capacity: bool = False
    capacity_buffer: bool = False
    instance_status: bool = False

    @classmethod
    def parse(cls, text: str) -> FeatureGates:
        """Read `Name=bool,…`; unknown names are ignored, bad syntax raises ValueError."""
        known = {_camel(field.name): field.name for field in attrs.fields(cls)}
        values: dict[str, bool] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, equals, value = part.partition("=")
            if not equals or value.strip() not in ("true", "false"):
                raise ValueError(part)
            if name.strip() in known:
                values[known[name.strip()]] = value.strip() == "true"
        return cls(**values)


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _duration(text: str) -> timedelta:
    """Read a Go-style duration such as `1s`, `1.5s` or `1m30s`."""
    parts = _GO_DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(text)
    return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in parts))


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(text)
        return text

    return parse


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if int(text) < least:
            raise ValueError(text)
        return int(text)

    return parse


def _port(text: str) -> int:
    if not 0 < int(text) < 65536:
        raise ValueError(text)
    return int(text)


def _cpu(text: str) -> int:
    """Zero or less means the default, as does a value that a missing request renders."""
    return int(text) if int(text) > 0 else 1000


def _overhead(text: str) -> float:
    """An unparsable percentage means the default (spec aws/iam-and-bootstrap §6)."""
    try:
        value = float(text)
    except ValueError:
        return 0.075
    if value < 0:
        raise ValueError(text)
    return value


def _endpoint(text: str) -> str:
    parts = urlsplit(text)
    if text and not (parts.scheme and parts.netloc):
        raise ValueError(text)
    return text


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as exc:
        raise ValueError(text) from exc
    return text


def _setting(default: Any, parse: Callable[[str], Any], expected: str, text: str) -> Any:
    return attrs.field(default=default, metadata={"parse": parse, "expected": expected, "help": text})


def _text(default: str, text: str) -> Any:
    return _setting(default, str, "text", text)


def _flag(text: str, *, default: bool = False) -> Any:
    return _setting(default, _boolean, "true or false", text)


@attrs.frozen(kw_only=True)
class Settings:
    """Every setting, under the snake_case of its environment variable."""

    cluster_name: str = _text("", "Name of the EKS cluster; required.")
    cluster_endpoint: str = _setting(
        "", _endpoint, "an absolute URL", "API server address for nodes; read from EKS when empty."
    )
    cluster_ca_bundle: str = _setting("", _base64, "base64", "CA for nodes; the controller's own when empty.")
    isolated_vpc: bool = _flag("The VPC has no way to the internet: no price refresh, no IAM calls.")
    eks_control_plane: bool = _flag("Read the Kubernetes version from EKS.")
    vm_memory_overhead_percent: float = _setting(
        0.075, _overhead, "a number of 0 or more", "Share of memory that the hypervisor takes."
    )
    interruption_queue: str = _text("", "Name of the interruption queue; empty switches the loop off.")
    reserved_enis: int = _setting(
        0, _at_least(0), "a whole number of 0 or more", "Network interfaces not usable for pods."
    )
    disable_dry_run: bool = _flag("Skip the dry runs that validate a node class.")

    karpenter_service: str = _text("", "Legacy; ignored.")
    metrics_port: int = _setting(8080, _port, "a port", "Port of /metrics.")
    health_probe_port: int = _setting(8081, _port, "a port", "Port of /healthz and /readyz.")
    bind_address: str = _text("", "Address to listen on; every interface when empty.")
    kube_client_qps: int = _setting(200, _at_least(1), "a whole number of 1 or more", "API calls a second.")
    kube_client_burst: int = _setting(
        300, _at_least(1), "a whole number of 1 or more", "API requests at once."
    )
    enable_profiling: bool = _flag("Serve /debug/pprof/profile and /debug/pprof/tasks on the metrics port.")
    disable_controller_warmup: bool = _flag(
        "Accepted for compatibility; standby replicas always keep their mirror warm.", default=True
    )
    disable_leader_election: bool = _flag("Act without a lease; for a single replica.")
    disable_cluster_state_observability: bool = _flag("No pod, node, pool and status metrics.")
    leader_election_name: str = _text("karpenter-leader-election", "Name of the Lease.")
    leader_election_namespace: str = _text("", "Namespace of the Lease; the pod's when empty.")
    memory_limit: int = _setting(-1, int, "bytes", "Memory limit; memory is given back from 90 % on.")
    cpu_requests: int = _setting(1000, _cpu, "millicores", "CPU request; scales the number of workers.")
    log_level: str = _setting(
        "info", _choice("debug", "info", "error", ""), "debug, info or error", "Least level logged."
    )
    log_output_paths: str = _text("stdout", "Where logs go, comma separated: stdout, stderr or files.")
    log_error_output_paths: str = _text("stderr", "Where errors of logging itself go.")
    batch_max_duration: timedelta = _setting(
        timedelta(seconds=10), _duration, "a duration such as 10s", "Longest batch of pods."
    )
    batch_idle_duration: timedelta = _setting(
        timedelta(seconds=1), _duration, "a duration such as 1s", "Quiet time that ends a batch."
    )
    preference_policy: str = _setting(
        "Respect", _choice("Respect", "Ignore"), "Respect or Ignore", "Whether pod preferences count."
    )
    min_values_policy: str = _setting(
        "Strict", _choice("Strict", "BestEffort"), "Strict or BestEffort", "What minValues may be lowered."
    )
    ignore_dra_requests: bool = _flag("Refuse pods with resource claims.", default=True)
    feature_gates: FeatureGates = _setting(
        FeatureGates(), FeatureGates.parse, "Name=true or false, comma separated", "Feature gates."
    )
    packing_objective: str = _setting(
        "Cost", _choice("Cost", "FirstFit"), "Cost or FirstFit", "How pods are packed unless a config says."
    )
    mode: Mode = _setting(Mode.RUN, Mode, "run or observe", "observe: decide and report, but write nothing.")

    @property
    def cpu_cores(self) -> int:
        """Return whole cores of the CPU request, rounded up."""
        return -(-self.cpu_requests // 1000)

    @classmethod
    def load(cls, environ: Mapping[str, str], flags: Mapping[str, str | None]) -> Settings:
        """Return the settings of the flags given (by attribute name), else the environment, else defaults.

        Raises InvalidSetting, naming the first wrong variable.
        """
        values: dict[str, Any] = {}
        for field in attrs.fields(cls):
            given = flags.get(field.name)
            text = given if given is not None else environ.get(env_name(field.name))
            if text is not None:
                values[field.name] = _parsed(field, text)
        settings = cls(**values)
        if not settings.cluster_name:
            raise InvalidSetting("CLUSTER_NAME", "", "the name of the EKS cluster")
        return settings

    def workers(self, least: int, most: int) -> int:
        """Return the workers of a controller for this CPU request (spec core/lifecycle §2)."""
        return min(most, least + (most - least) * (self.cpu_cores - 1) // 59)


def env_name(attribute: str) -> str:
    """Return the environment variable of a setting."""
    return attribute.upper()


def flag_name(attribute: str) -> str:
    """Return the flag of a setting, with its dashes."""
    return f"--{attribute.replace('_', '-')}"


def _parsed(field: attrs.Attribute[Any], text: str) -> Any:
    try:
        return field.metadata["parse"](text)
    except ValueError as exc:
        raise InvalidSetting(env_name(field.name), text, field.metadata["expected"]) from exc

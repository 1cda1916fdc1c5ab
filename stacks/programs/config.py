"""The configuration of the stacks: every key, its type, its default, what is allowed.

Called by the programs before any resource is declared. Owns validation: a wrong or
unknown key stops the preview with the key, its value and what is allowed. The keys
are the same in every stack, in the namespace `charpente`.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

import attrs

from framework.api import UserError
from framework.api.duration import Duration
from framework.components.controller_identity import IdentityKind
from framework.components.controller_settings import ControllerSettings
from framework.components.kubeconfig import TokenCommand
from framework.components.network import NatMode
from framework.components.node_role import NodeKind

NAMESPACE = "charpente"
_NAME = re.compile(r"^[0-9A-Za-z][A-Za-z0-9-]{0,99}$")
_VERSION = re.compile(r"^1\.(\d+)$")
_OLDEST_MINOR, _NEWEST_MINOR = 26, 35
"""Kubernetes releases that go with the controller (spec aws/iam-and-bootstrap section 8)."""


class FirstCapacityKind(StrEnum):
    """What the controller runs on."""

    NODE_GROUP = "node-group"
    FARGATE = "fargate"


class InvalidConfig(UserError):
    """A configuration value that is not allowed, or a key that does not exist."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        """Name the key, its value and what is allowed."""
        super().__init__(f"{NAMESPACE}:{key} is {value!r}; allowed: {allowed}")


def _text(raw: str) -> str:
    if not raw.strip():
        raise ValueError(raw)
    return raw.strip()


def _matching(pattern: re.Pattern[str]) -> Callable[[str], str]:
    def parse(raw: str) -> str:
        if not pattern.fullmatch(raw):
            raise ValueError(raw)
        return raw

    return parse


def _version(raw: str) -> str:
    found = _VERSION.fullmatch(raw)
    if found is None or not _OLDEST_MINOR <= int(found.group(1)) <= _NEWEST_MINOR:
        raise ValueError(raw)
    return raw


def _cidr(raw: str) -> str:
    return str(ipaddress.IPv4Network(raw))


def _boolean(raw: str) -> bool:
    if raw not in ("true", "false"):
        raise ValueError(raw)
    return raw == "true"


def _between(least: int, most: int) -> Callable[[str], int]:
    def parse(raw: str) -> int:
        if not least <= int(raw) <= most:
            raise ValueError(raw)
        return int(raw)

    return parse


def _texts(raw: str) -> tuple[str, ...]:
    found = json.loads(raw)
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ValueError(raw)
    return tuple(found)


def _text_map(raw: str) -> Mapping[str, str]:
    found = json.loads(raw)
    if not isinstance(found, dict) or not all(isinstance(item, str) for item in found.values()):
        raise ValueError(raw)
    return found


def _one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    return lambda raw: kind(raw)


def _key(default: Any, parse: Callable[[str], Any], allowed: str, about: str) -> Any:
    metadata = {"parse": parse, "allowed": allowed, "help": about}
    if default is attrs.NOTHING:
        return attrs.field(metadata=metadata)
    if isinstance(default, Mapping):
        return attrs.field(factory=dict, metadata=metadata)
    return attrs.field(default=default, metadata=metadata)


def _choices(kind: type[StrEnum]) -> str:
    return ", ".join(member.value for member in kind)


@attrs.frozen(kw_only=True)
class StackConfig:
    """Every key, under the snake_case of its name."""

    cluster_name: str = _key(
        "my-cluster",
        _matching(_NAME),
        "up to 100 letters, digits and hyphens, beginning with a letter or digit",
        "Name of the EKS cluster.",
    )
    cluster_stack: str | None = _key(
        None, _text, "organization/project/stack", "Stack that made the cluster; for the controller's stack."
    )
    kubernetes_version: str = _key(
        "1.34",
        _version,
        f"1.{_OLDEST_MINOR} to 1.{_NEWEST_MINOR}",
        "Kubernetes release of the control plane.",
    )
    vpc: str | None = _key(
        None,
        _text,
        "the id of a VPC, or key=value of a tag on one",
        "VPC that exists, whose private subnets carry the discovery tag; one is made unless set.",
    )
    vpc_cidr: str = _key("10.0.0.0/16", _cidr, "an IPv4 network such as 10.0.0.0/16", "Addresses of the VPC.")
    zones: Sequence[str] = _key(
        (), _texts, "a list of zone names", "Zones to use; the region's first three when empty."
    )
    nat_gateways: NatMode = _key(  # noqa: RUF009 (makes a field, like the others)
        NatMode.SINGLE, _one_of(NatMode), _choices(NatMode), "How private subnets reach the internet."
    )
    public_access_cidrs: Sequence[str] = _key(
        ("0.0.0.0/0",), _texts, "a list of networks", "Who may reach the API server's public endpoint."
    )
    admin_principals: Mapping[str, str] = _key(
        {}, _text_map, "a map of short names to ARNs", "Who administers the cluster besides its creator."
    )
    secrets_key: str | None = _key(
        None, _text, "create, or the ARN of a KMS key", "Key for Secrets; AWS's own unless set."
    )
    log_retention_days: int = _key(
        30, _between(0, 3653), "days, 0 to switch logging off", "How long control plane logs are kept."
    )
    first_capacity: FirstCapacityKind = _key(  # noqa: RUF009 (makes a field, like the others)
        FirstCapacityKind.NODE_GROUP,
        _one_of(FirstCapacityKind),
        _choices(FirstCapacityKind),
        "What the controller itself runs on; fargate needs identity irsa.",
    )
    first_capacity_types: Sequence[str] = _key(
        ("t3.medium",), _texts, "a list of instance types", "Instance types of the controller's own nodes."
    )
    first_capacity_ami: str = _key(
        "AL2023_x86_64_STANDARD", _text, "an EKS AMI type", "Image of the controller's own nodes."
    )
    first_capacity_size: int = _key(2, _between(2, 20), "2 to 20", "Number of the controller's own nodes.")
    node_role_name: str | None = _key(
        None, _text, "a role name", "Role of the nodes; KarpenterNodeRole-<cluster> unless set."
    )
    node_access: NodeKind = _key(  # noqa: RUF009 (makes a field, like the others)
        NodeKind.LINUX, _one_of(NodeKind), _choices(NodeKind), "Access entry of the nodes' role."
    )
    instance_profile: bool = _key(
        False,
        _boolean,
        "true or false",
        "Whether the stack makes an instance profile, for clusters that cannot reach IAM.",
    )
    identity: IdentityKind = _key(  # noqa: RUF009 (makes a field, like the others)
        IdentityKind.POD_IDENTITY,
        _one_of(IdentityKind),
        _choices(IdentityKind),
        "How the controller gets its role.",
    )
    interruption_queue: bool = _key(True, _boolean, "true or false", "Whether interruptions are handled.")
    image: str | None = _key(
        None,
        _text,
        "an image reference",
        "Image of the controller, best by digest; the release's unless set.",
    )
    replicas: int = _key(2, _between(1, 5), "1 to 5", "Replicas of the controller.")
    settings: Mapping[str, Any] = _key(
        {}, json.loads, "a map, see docs/reference", "Settings of the controller."
    )
    node_pools: str = _key(
        "karpenter/nodepools", _text, "a folder", "Manifests of the pools, relative to the folder stacks/."
    )
    drain_timeout: Duration = _key(  # noqa: RUF009 (makes a field, like the others)
        Duration("10m"),
        Duration,
        "a duration such as 10m",
        "How long `destroy` lets budgets hold pods back before nodes are ended all the same.",
    )
    tags: Mapping[str, str] = _key({}, _text_map, "a map of texts", "Tags for everything that can have tags.")
    token_command: TokenCommand = _key(  # noqa: RUF009 (makes a field, like the others)
        TokenCommand.AWS, _one_of(TokenCommand), _choices(TokenCommand), "What fetches cluster tokens."
    )
    kubeconfig: str | None = _key(
        None, _text, "a path or a kubeconfig", "Replaces the kubeconfig that the stack builds."
    )
    service_monitor: bool = _key(
        False,
        _boolean,
        "true or false",
        "Whether to declare a ServiceMonitor; Prometheus Operator's definitions must be there.",
    )
    skip_await: bool = _key(
        False, _boolean, "true or false", "Do not wait until the controller's replicas are ready."
    )

    @classmethod
    def read(cls, values: Mapping[str, str]) -> Self:
        """The configuration from `key → text`, keys without their namespace. Raises InvalidConfig."""
        known = {wire(field.name): field for field in attrs.fields(cls)}
        for key in sorted(set(values) - set(known)):
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(sorted(known))}"
            raise InvalidConfig(key, values[key], f"no such key; {hint}")
        parsed = {known[key].name: _parsed(known[key], key, values[key]) for key in sorted(values)}
        config = cls(**parsed)
        if config.first_capacity is FirstCapacityKind.FARGATE and config.identity is not IdentityKind.IRSA:
            raise InvalidConfig("identity", config.identity.value, "irsa, as firstCapacity is fargate")
        return config

    def controller_settings(self) -> ControllerSettings:
        """The controller's settings. Raises InvalidConfig naming the setting."""
        known = {wire(field.name): field.name for field in attrs.fields(ControllerSettings)}
        if not isinstance(self.settings, Mapping):
            raise InvalidConfig("settings", self.settings, "a map")
        for key in sorted(set(self.settings) - set(known)):
            raise InvalidConfig(f"settings.{key}", self.settings[key], ", ".join(sorted(known)))
        return ControllerSettings(**{known[key]: value for key, value in self.settings.items()})


def wire(name: str) -> str:
    """The key of a field: `cluster_name` is `clusterName`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _parsed(field: Any, key: str, raw: str) -> Any:
    try:
        return field.metadata["parse"](raw)
    except ValueError as error:
        raise InvalidConfig(key, raw, field.metadata["allowed"]) from error

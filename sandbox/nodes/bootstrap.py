"""What a bootstrap program tells the kubelet: the value between user data and a node.

Made by `sandbox.nodes.user_data`, or from a managed node group; read by `sandbox.nodes.kubelet`. Values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

__all__ = ["Bootstrap", "BootstrapError", "KubeletSettings", "Taint", "parse_kubelet_flags"]


class BootstrapError(ValueError):
    """The instance would start but its kubelet would not: the text says why."""


@attrs.frozen
class Taint:
    """A taint the kubelet registers with."""

    key: str
    value: str
    effect: str

    @classmethod
    def parse(cls, text: str) -> Taint:
        """Read `key=value:Effect` or `key:Effect`. Raises: BootstrapError."""
        pair, colon, effect = text.rpartition(":")
        key, _, value = pair.partition("=")
        if not colon or not key or effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            raise BootstrapError(f"kubelet: --register-with-taints: {text!r} is not key=value:Effect")
        return cls(key, value, effect)


@attrs.frozen(kw_only=True)
class KubeletSettings:
    """The kubelet's settings that show on the node; None or empty where the bootstrap says nothing."""

    max_pods: int | None = None
    pods_per_core: int | None = None
    kube_reserved: Mapping[str, str] = attrs.field(factory=dict)
    system_reserved: Mapping[str, str] = attrs.field(factory=dict)
    eviction_hard: Mapping[str, str] = attrs.field(factory=dict)
    """Signal (`memory.available`) → quantity or percentage."""
    reserves_by_max_pods: bool = False
    """Whether the image reserves memory by `max_pods` (Bottlerocket) instead of by what the network allows.
    """


@attrs.frozen(kw_only=True)
class Bootstrap:
    """Everything the instance knows of its cluster when the kubelet starts."""

    cluster_name: str
    endpoint: str
    certificate_authority: str
    """Base64 of the PEM."""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    taints: Sequence[Taint] = ()
    kubelet: KubeletSettings = KubeletSettings()
    striped_disks: bool = False
    """Whether local disks become one RAID 0 that pods' storage lives on."""


def parse_kubelet_flags(arguments: Sequence[str]) -> tuple[dict[str, str], list[Taint], KubeletSettings]:
    """Read the kubelet's command line: labels, taints and settings. Flags that do not show on a node are
    ignored.

    Raises: BootstrapError for a malformed value.
    """
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    found: dict[str, str] = {}
    for argument in arguments:
        name, _, value = argument.removeprefix("--").partition("=")
        value = value.strip("\"'")
        if name == "node-labels":
            labels |= _pairs(value, "=")
        elif name == "register-with-taints":
            taints += [Taint.parse(t) for t in value.split(",") if t]
        else:
            found[name] = value
    settings = KubeletSettings(
        max_pods=_whole(found, "max-pods"),
        pods_per_core=_whole(found, "pods-per-core"),
        kube_reserved=_pairs(found.get("kube-reserved", ""), "="),
        system_reserved=_pairs(found.get("system-reserved", ""), "="),
        eviction_hard=_pairs(found.get("eviction-hard", ""), "<"),
    )
    return labels, taints, settings


def _whole(flags: Mapping[str, str], name: str) -> int | None:
    if name not in flags:
        return None
    try:
        return int(flags[name])
    except ValueError as exc:
        raise BootstrapError(f"kubelet: --{name}: {flags[name]!r} is not a number") from exc


def _pairs(text: str, separator: str) -> dict[str, str]:
    pairs = {}
    for item in text.split(","):
        if not item:
            continue
        key, found, value = item.partition(separator)
        if not found:
            raise BootstrapError(f"kubelet: {item!r} is not key{separator}value")
        pairs[key] = value
    return pairs

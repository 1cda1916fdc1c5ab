"""What a machine must know to join the cluster, as one value for every image family.

Made by `controller.cloud.aws.launchtemplates`, rendered by the family modules next to this one. Owns
the kubelet settings in the three spellings that the families want (flags, KubeletConfiguration,
strings), each sorted, so that equal input gives equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from controller.scheduling import Taint

__all__ = ["Bootstrap", "KubeletArgs", "kubelet_config", "kubelet_flags", "node_labels_flag"]


@attrs.frozen(kw_only=True)
class KubeletArgs:
    """The kubelet settings of a class with the resolved pod density; None and empty mean not set."""

    max_pods: int
    cluster_dns: tuple[str, ...] = ()
    pods_per_core: int | None = None
    system_reserved: Mapping[str, str] = attrs.field(factory=dict)
    kube_reserved: Mapping[str, str] = attrs.field(factory=dict)
    eviction_hard: Mapping[str, str] = attrs.field(factory=dict)
    eviction_soft: Mapping[str, str] = attrs.field(factory=dict)
    eviction_soft_grace_period: Mapping[str, str] = attrs.field(factory=dict)
    eviction_max_pod_grace_period: int | None = None
    image_gc_high_threshold_percent: int | None = None
    image_gc_low_threshold_percent: int | None = None
    cpu_cfs_quota: bool | None = None


@attrs.frozen(kw_only=True)
class Bootstrap:
    """The input of every renderer."""

    cluster_name: str
    endpoint: str
    ca_bundle: str
    """Base64 of the PEM bundle."""
    service_cidr: str | None = None
    """Only nodeadm wants it."""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    """Only those that a kubelet may set on itself."""
    taints: tuple[Taint, ...] = ()
    kubelet: KubeletArgs
    raid0: bool = False
    image_version: tuple[int, ...] | None = None
    """Bottlerocket's version; None when it is not known."""
    custom: str | None = None
    """The user's own user data."""


def kubelet_flags(bootstrap: Bootstrap) -> str:
    """Return the kubelet's command line in the order of spec aws/launch §9.1."""
    return " ".join(_flags(bootstrap))


def node_labels_flag(labels: Mapping[str, str]) -> str:
    """Return the flag that labels the node."""
    return f'--node-labels="{_join(labels, "=")}"'


def _join(pairs: Mapping[str, str], sign: str) -> str:
    return ",".join(f"{key}{sign}{value}" for key, value in sorted(pairs.items()))


def _flags(bootstrap: Bootstrap) -> Iterator[str]:
    kubelet = bootstrap.kubelet
    if bootstrap.labels:
        yield node_labels_flag(bootstrap.labels)
    if bootstrap.taints:
        taints = ",".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in bootstrap.taints)
        yield f'--register-with-taints="{taints}"'
    yield f"--max-pods={kubelet.max_pods}"
    if kubelet.pods_per_core is not None:
        yield f"--pods-per-core={kubelet.pods_per_core}"
    for flag, pairs, sign in (
        ("system-reserved", kubelet.system_reserved, "="),
        ("kube-reserved", kubelet.kube_reserved, "="),
        ("eviction-hard", kubelet.eviction_hard, "<"),
        ("eviction-soft", kubelet.eviction_soft, "<"),
        ("eviction-soft-grace-period", kubelet.eviction_soft_grace_period, "="),
    ):
        if pairs:
            yield f'--{flag}="{_join(pairs, sign)}"'
    for flag, number in (
        ("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period),
        ("image-gc-high-threshold", kubelet.image_gc_high_threshold_percent),
        ("image-gc-low-threshold", kubelet.image_gc_low_threshold_percent),
    ):
        if number is not None:
            yield f"--{flag}={number}"
    if kubelet.cpu_cfs_quota is not None:
        yield f"--cpu-cfs-quota={'true' if kubelet.cpu_cfs_quota else 'false'}"


def kubelet_config(bootstrap: Bootstrap) -> dict[str, Any]:
    """Return the fields of a KubeletConfiguration, `registerWithTaints` included."""
    kubelet = bootstrap.kubelet
    config: dict[str, Any] = {
        "clusterDNS": list(kubelet.cluster_dns),
        "cpuCFSQuota": kubelet.cpu_cfs_quota,
        "evictionHard": dict(sorted(kubelet.eviction_hard.items())),
        "evictionMaxPodGracePeriod": kubelet.eviction_max_pod_grace_period,
        "evictionSoft": dict(sorted(kubelet.eviction_soft.items())),
        "evictionSoftGracePeriod": dict(sorted(kubelet.eviction_soft_grace_period.items())),
        "imageGCHighThresholdPercent": kubelet.image_gc_high_threshold_percent,
        "imageGCLowThresholdPercent": kubelet.image_gc_low_threshold_percent,
        "kubeReserved": dict(sorted(kubelet.kube_reserved.items())),
        "maxPods": kubelet.max_pods,
        "podsPerCore": kubelet.pods_per_core,
        "registerWithTaints": [taint.to_wire() for taint in bootstrap.taints],
        "systemReserved": dict(sorted(kubelet.system_reserved.items())),
    }
    return {key: value for key, value in config.items() if value is not None and value not in ({}, [])}

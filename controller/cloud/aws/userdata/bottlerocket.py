"""User data of Bottlerocket: the user's TOML with our settings over it (spec aws/launch §9.3).

Called through `userdata.render`. Owns which settings below `settings.kubernetes` are known; unknown
ones are dropped, since Bottlerocket would refuse the whole document.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Final

import tomli_w

from controller.cloud.aws.userdata.bootstrap import Bootstrap, KubeletArgs

__all__ = ["dropped_settings", "render_bottlerocket"]

BIND_WITHOUT_DIRS: Final = (1, 46, 0)
"""From this version on `ephemeral-storage bind` finds the directories by itself."""
_BIND_DIRS: Final = ("/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")

_KNOWN: Final = frozenset(
    {
        "allowed-unsafe-sysctls",
        "api-server",
        "cloud-provider",
        "cluster-certificate",
        "cluster-dns-ip",
        "cluster-domain",
        "cluster-name",
        "container-log-max-files",
        "container-log-max-size",
        "container-log-max-workers",
        "container-log-monitor-interval",
        "cpu-cfs-quota-enforced",
        "cpu-manager-policy",
        "cpu-manager-policy-options",
        "cpu-manager-reconcile-period",
        "credential-providers",
        "device-ownership-from-security-context",
        "event-burst",
        "event-qps",
        "eviction-hard",
        "eviction-max-pod-grace-period",
        "eviction-soft",
        "eviction-soft-grace-period",
        "hostname-override-source",
        "ids-per-pod",
        "image-gc-high-threshold-percent",
        "image-gc-low-threshold-percent",
        "kube-api-burst",
        "kube-api-qps",
        "kube-reserved",
        "log-level",
        "max-pods",
        "node-labels",
        "node-taints",
        "pod-pids-limit",
        "registry-burst",
        "registry-qps",
        "seccomp-default",
        "server-tls-bootstrap",
        "shutdown-grace-period",
        "shutdown-grace-period-for-critical-pods",
        "single-process-oom-kill",
        "static-pods",
        "system-reserved",
        "topology-manager-policy",
        "topology-manager-scope",
    }
)


def dropped_settings(custom: str | None) -> tuple[str, ...]:
    """Return the user's settings below `settings.kubernetes` that are not known, sorted."""
    return tuple(sorted(set(_kubernetes(_parse(custom))) - _KNOWN))


def render_bottlerocket(bootstrap: Bootstrap) -> str:
    """Return the merged document. Raises: ValueError when the user's part is not TOML."""
    document = _parse(bootstrap.custom)
    settings: dict[str, Any] = document.setdefault("settings", {})
    known = {key: value for key, value in _kubernetes(document).items() if key in _KNOWN}
    own_labels: Mapping[str, str] = known.pop("node-labels", {})
    known.pop("node-taints", None)
    known.update(_cluster(bootstrap))
    known.update(_kubelet(bootstrap.kubelet))
    labels = {**own_labels, **bootstrap.labels}
    if labels:
        known["node-labels"] = dict(sorted(labels.items()))
    if bootstrap.taints:
        known["node-taints"] = _taints(bootstrap)
    settings["kubernetes"] = known
    if bootstrap.raid0:
        commands: dict[str, Any] = settings.setdefault("bootstrap-commands", {})
        commands["000-mount-instance-storage"] = _mount_command(bootstrap.image_version)
    return tomli_w.dumps(document)


def _parse(custom: str | None) -> dict[str, Any]:
    try:
        return tomllib.loads(custom or "")
    except tomllib.TOMLDecodeError as exc:
        msg = f"userData is not TOML, as Bottlerocket wants it: {exc}"
        raise ValueError(msg) from exc


def _kubernetes(document: Mapping[str, Any]) -> dict[str, Any]:
    return dict(document.get("settings", {}).get("kubernetes", {}))


def _cluster(bootstrap: Bootstrap) -> dict[str, Any]:
    return {
        "api-server": bootstrap.endpoint,
        "cluster-certificate": bootstrap.ca_bundle,
        "cluster-name": bootstrap.cluster_name,
        "max-pods": bootstrap.kubelet.max_pods,
    }


def _kubelet(kubelet: KubeletArgs) -> dict[str, Any]:
    high, low = kubelet.image_gc_high_threshold_percent, kubelet.image_gc_low_threshold_percent
    settings: dict[str, Any] = {
        "cluster-dns-ip": kubelet.cluster_dns[0] if kubelet.cluster_dns else None,
        "cpu-cfs-quota-enforced": kubelet.cpu_cfs_quota,
        "eviction-hard": dict(sorted(kubelet.eviction_hard.items())) or None,
        "eviction-max-pod-grace-period": kubelet.eviction_max_pod_grace_period,
        "eviction-soft": dict(sorted(kubelet.eviction_soft.items())) or None,
        "eviction-soft-grace-period": dict(sorted(kubelet.eviction_soft_grace_period.items())) or None,
        "image-gc-high-threshold-percent": None if high is None else str(high),
        "image-gc-low-threshold-percent": None if low is None else str(low),
        "kube-reserved": dict(sorted(kubelet.kube_reserved.items())) or None,
        "system-reserved": dict(sorted(kubelet.system_reserved.items())) or None,
    }
    return {key: value for key, value in settings.items() if value is not None}


def _taints(bootstrap: Bootstrap) -> dict[str, list[str]]:
    taints: dict[str, list[str]] = {}
    for taint in bootstrap.taints:
        taints.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    return dict(sorted(taints.items()))


def _mount_command(version: tuple[int, ...] | None) -> dict[str, Any]:
    bind = ["apiclient", "ephemeral-storage", "bind"]
    if version is None or version < BIND_WITHOUT_DIRS:
        bind += ["--dirs", *_BIND_DIRS]
    return {
        "commands": [["apiclient", "ephemeral-storage", "init"], bind],
        "mode": "always",
        "essential": True,
    }

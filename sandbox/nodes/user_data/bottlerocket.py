"""Bottlerocket's settings: TOML, of which `settings.kubernetes` becomes the kubelet's configuration."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from sandbox.nodes.bootstrap import Bootstrap, BootstrapError, KubeletSettings, Taint

__all__ = ["read"]

REQUIRED = ("cluster-name", "api-server", "cluster-certificate")


def read(content: str) -> Bootstrap:
    """Read the settings. Raises: BootstrapError."""
    try:
        settings = tomllib.loads(content).get("settings") or {}
    except tomllib.TOMLDecodeError as exc:
        raise BootstrapError(f"bottlerocket: the user data is not TOML ({exc})") from exc
    kubernetes = settings.get("kubernetes") or {}
    for field in REQUIRED:
        if not kubernetes.get(field):
            raise BootstrapError(f"bottlerocket: settings.kubernetes.{field} is missing")
    max_pods = kubernetes.get("max-pods")
    return Bootstrap(
        cluster_name=kubernetes["cluster-name"],
        endpoint=kubernetes["api-server"],
        certificate_authority=kubernetes["cluster-certificate"],
        labels=_texts(kubernetes, "node-labels"),
        taints=tuple(_taints(kubernetes.get("node-taints") or {})),
        kubelet=KubeletSettings(
            max_pods=None if max_pods is None else int(max_pods),
            kube_reserved=_texts(kubernetes, "kube-reserved"),
            system_reserved=_texts(kubernetes, "system-reserved"),
            eviction_hard=_texts(kubernetes, "eviction-hard"),
            reserves_by_max_pods=True,
        ),
        striped_disks="ephemeral-storage" in str(settings.get("bootstrap-commands") or ""),
    )


def _texts(kubernetes: Mapping[str, Any], field: str) -> dict[str, str]:
    return {str(k): str(v) for k, v in (kubernetes.get(field) or {}).items()}


def _taints(table: Mapping[str, Any]) -> list[Taint]:
    taints = []
    for key, values in table.items():
        for text in values if isinstance(values, list) else [values]:
            value, _, effect = str(text).rpartition(":")
            taints.append(Taint(key, value, effect))
    return taints

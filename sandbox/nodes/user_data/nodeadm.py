"""NodeConfig documents as nodeadm of Amazon Linux 2023 merges and validates them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import yaml

from sandbox.nodes.bootstrap import Bootstrap, BootstrapError, KubeletSettings, Taint, parse_kubelet_flags
from sandbox.nodes.user_data.mime import Part

__all__ = ["read", "understands"]

CONTENT_TYPE = "application/node.eks.aws"
API_VERSION = "node.eks.aws/v1alpha1"
REQUIRED = ("name", "apiServerEndpoint", "certificateAuthority", "cidr")


def understands(part: Part) -> bool:
    """Whether nodeadm would read this part."""
    return part.content_type == CONTENT_TYPE or (not part.content_type and API_VERSION in part.content)


def read(found: Sequence[Part]) -> Bootstrap:
    """Merge the documents, the later over the earlier, and read the result. Raises: BootstrapError."""
    merged: dict[str, Any] = {}
    for part in found:
        for document in _documents(part):
            merged = _merge(merged, document.get("spec") or {})
    cluster = merged.get("cluster") or {}
    for field in REQUIRED:
        if not cluster.get(field):
            raise BootstrapError(f"nodeadm: spec.cluster.{field} is missing in the NodeConfig")
    kubelet = merged.get("kubelet") or {}
    flags = [word for flag in kubelet.get("flags") or () for word in shlex.split(flag)]
    labels, taints, flagged = parse_kubelet_flags(flags)
    configured, registered = _from_config(kubelet.get("config") or {})
    strategy = ((merged.get("instance") or {}).get("localStorage") or {}).get("strategy")
    return Bootstrap(
        cluster_name=cluster["name"],
        endpoint=cluster["apiServerEndpoint"],
        certificate_authority=cluster["certificateAuthority"],
        labels=labels,
        taints=tuple(registered or taints),
        kubelet=_over(configured, flagged),
        striped_disks=strategy in ("RAID0", "RAID10"),
    )


def _documents(part: Part) -> list[dict[str, Any]]:
    try:
        documents = [d for d in yaml.safe_load_all(part.content) if d]
    except yaml.YAMLError as exc:
        raise BootstrapError(f"nodeadm: the NodeConfig is not YAML ({exc})") from exc
    for document in documents:
        if not isinstance(document, dict) or document.get("kind") != "NodeConfig":
            raise BootstrapError("nodeadm: a part of the user data is not a NodeConfig")
        if document.get("apiVersion") != API_VERSION:
            raise BootstrapError(f"nodeadm: apiVersion {document.get('apiVersion')!r} is not {API_VERSION}")
    return documents


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings key by key; lists of flags add up, anything else above replaces what is below."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            merged[key] = _merge(under, value)
        elif key == "flags" and isinstance(value, list) and isinstance(under, list):
            merged[key] = [*under, *value]
        else:
            merged[key] = value
    return merged


def _from_config(config: Mapping[str, Any]) -> tuple[KubeletSettings, list[Taint]]:
    taints = [
        Taint(str(t["key"]), str(t.get("value") or ""), str(t["effect"]))
        for t in config.get("registerWithTaints") or ()
    ]
    settings = KubeletSettings(
        max_pods=config.get("maxPods"),
        pods_per_core=config.get("podsPerCore"),
        kube_reserved=_texts(config, "kubeReserved"),
        system_reserved=_texts(config, "systemReserved"),
        eviction_hard=_texts(config, "evictionHard"),
    )
    return settings, taints


def _texts(config: Mapping[str, Any], field: str) -> dict[str, str]:
    return {str(k): str(v) for k, v in (config.get(field) or {}).items()}


def _over(configured: KubeletSettings, flagged: KubeletSettings) -> KubeletSettings:
    """Return the settings with the command line's over the file's, as in the kubelet."""
    given = {
        field.name: value
        for field in attrs.fields(KubeletSettings)
        if (value := getattr(flagged, field.name)) not in (None, {}, False)
    }
    return attrs.evolve(configured, **given)

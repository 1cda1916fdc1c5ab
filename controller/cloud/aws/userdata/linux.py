"""User data of Amazon Linux: the bootstrap script of AL2 and nodeadm of AL2023 (spec aws/launch §9.1, §9.2).

Called through `userdata.render`. Pure: text in, text out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from controller.cloud.aws.userdata.bootstrap import (
    Bootstrap,
    kubelet_config,
    kubelet_flags,
    node_labels_flag,
)
from controller.cloud.aws.userdata.mime import NODECONFIG, SHELL, MimePart, is_mime, read_mime, write_mime

__all__ = ["render_al2", "render_al2023"]


def render_al2(bootstrap: Bootstrap) -> str:
    """Return the user's parts and after them the call of the EKS bootstrap script."""
    own = bootstrap.custom or ""
    parts = _own_parts(own, detect_nodeconfig=False) if own.strip() else ()
    script = "\n".join(
        (
            "#!/bin/bash -xe",
            "exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1",
            " ".join(_bootstrap_command(bootstrap)),
        )
    )
    return write_mime([*parts, MimePart(content_type=SHELL, text=script)])


def _bootstrap_command(bootstrap: Bootstrap) -> Iterator[str]:
    dns = bootstrap.kubelet.cluster_dns[0] if bootstrap.kubelet.cluster_dns else None
    yield f"/etc/eks/bootstrap.sh '{bootstrap.cluster_name}'"
    yield f"--apiserver-endpoint '{bootstrap.endpoint}'"
    yield f"--b64-cluster-ca '{bootstrap.ca_bundle}'"
    if dns and ":" in dns:
        yield "--ip-family ipv6"
    if dns:
        yield f"--dns-cluster-ip '{dns}'"
    yield "--use-max-pods false"
    yield f"--kubelet-extra-args '{kubelet_flags(bootstrap)}'"
    if bootstrap.raid0:
        yield "--local-disks raid0"


def render_al2023(bootstrap: Bootstrap) -> str:
    """Return the user's parts and after them, so that it wins nodeadm's merge, the generated NodeConfig."""
    own = bootstrap.custom or ""
    parts = _own_parts(own, detect_nodeconfig=True) if own.strip() else ()
    text = yaml.safe_dump(_node_config(bootstrap), sort_keys=False, width=1_000_000)
    return write_mime([*parts, MimePart(content_type=NODECONFIG, text=text)])


def _node_config(bootstrap: Bootstrap) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "cluster": {
            "name": bootstrap.cluster_name,
            "apiServerEndpoint": bootstrap.endpoint,
            "certificateAuthority": bootstrap.ca_bundle,
            "cidr": bootstrap.service_cidr,
        },
    }
    if bootstrap.raid0:
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    spec["kubelet"] = {"config": kubelet_config(bootstrap)}
    if bootstrap.labels:
        spec["kubelet"]["flags"] = [node_labels_flag(bootstrap.labels)]
    return {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}


def _own_parts(text: str, *, detect_nodeconfig: bool) -> tuple[MimePart, ...]:
    if is_mime(text):
        return read_mime(text)
    if detect_nodeconfig and _is_mapping(text):
        return (MimePart(content_type=NODECONFIG, text=text),)
    return (MimePart(content_type=SHELL, text=text),)


def _is_mapping(text: str) -> bool:
    try:
        return isinstance(yaml.safe_load(text), dict)
    except yaml.YAMLError:
        return False

"""User data of Windows: a PowerShell block (spec aws/launch §9.4). Called through `userdata.render`."""

from __future__ import annotations

from typing import Final

from controller.cloud.aws.userdata.bootstrap import Bootstrap, kubelet_flags

__all__ = ["render_windows"]

_OPEN: Final = "<powershell>"
_CLOSE: Final = "</powershell>"
_SCRIPT: Final = '[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1"'


def render_windows(bootstrap: Bootstrap) -> str:
    """Return the user's lines, whose own tags are dropped, and after them the bootstrap call."""
    own = (bootstrap.custom or "").replace(_OPEN, "").replace(_CLOSE, "").strip()
    call = [
        "& $EKSBootstrapScriptFile",
        f"-EKSClusterName '{bootstrap.cluster_name}'",
        f"-APIServerEndpoint '{bootstrap.endpoint}'",
        f"-Base64ClusterCA '{bootstrap.ca_bundle}'",
        f"-KubeletExtraArgs '{kubelet_flags(bootstrap)}'",
    ]
    if bootstrap.kubelet.cluster_dns:
        call.append(f"-DNSClusterIP '{bootstrap.kubelet.cluster_dns[0]}'")
    lines = [_OPEN, *([own] if own else []), _SCRIPT, " ".join(call), _CLOSE]
    return "\n".join(lines) + "\n"

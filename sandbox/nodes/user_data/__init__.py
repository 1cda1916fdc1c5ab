"""User data as the bootstrap programs of the EKS images read it.

Public: `read`. Formats: nodeadm's NodeConfig (AL2023), `/etc/eks/bootstrap.sh` (AL2), Bottlerocket's TOML.
Windows and custom images are not understood: their instances do not join, and the reason says so.
"""

from __future__ import annotations

from sandbox.nodes.bootstrap import Bootstrap, BootstrapError
from sandbox.nodes.user_data import bootstrap_script, bottlerocket, nodeadm
from sandbox.nodes.user_data.mime import Part, parts

__all__ = ["read"]


def read(content: str) -> Bootstrap:
    """Return what the user data tells the kubelet. Raises: BootstrapError saying why the instance would not
    join.
    """
    if not content.strip():
        raise BootstrapError("there is no user data")
    found = parts(content)
    configs = [p for p in found if nodeadm.understands(p)]
    if configs:
        return nodeadm.read(configs)
    scripts = [p for p in found if bootstrap_script.understands(p)]
    if scripts:
        return bootstrap_script.read(scripts[-1])
    if _is_toml(found):
        return bottlerocket.read(content)
    raise BootstrapError("the user data starts no bootstrap program that is known here")


def _is_toml(found: list[Part]) -> bool:
    return len(found) == 1 and "[settings" in found[0].content

"""Programs that are not Python packages: etcd, the Kubernetes binaries, kwok, Pulumi and its Kubernetes
provider.

Search order: the folder CHARPENTE_TOOLS, PATH, the user's cache, the official release (checksum verified),
a build from the Go modules pinned in `modules/`. Public: `find`, `ensure`, `locate`, `GROUPS`.
"""

from __future__ import annotations

from sandbox.tools.catalogue import GROUPS
from sandbox.tools.provision import ensure, find
from sandbox.tools.search import locate

__all__ = ["GROUPS", "ensure", "find", "locate"]

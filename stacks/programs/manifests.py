"""The manifests of the pools, from the folder that GitOps edits.

Called by the controller's program. Owns reading the files and comparing them with the
stack: a node class that names another cluster's role or tag would never launch a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from framework.api import UserError, labels
from framework.components.pools import InvalidManifest, Manifest, checked

_STACKS = Path(__file__).resolve().parent.parent
_PLACEHOLDER = "${CLUSTER_NAME}"


class Mismatch(UserError):
    """A node class that does not fit the stack's cluster."""

    def __init__(self, manifest: Manifest, field: str, found: str, wanted: str) -> None:
        """Name the object, the field, what it holds and what would fit."""
        super().__init__(
            f"{manifest.source}: {manifest.kind}/{manifest.name}: {field} is {found!r}, this stack has "
            f"{wanted!r}; change the manifest (or write {_PLACEHOLDER}), or set charpente:clusterName"
        )


def read_manifests(folder: str, cluster_name: str) -> Sequence[Manifest]:
    """Every manifest of a folder, files in order of name. Raises InvalidManifest."""
    root = _STACKS / folder
    if not root.is_dir():
        raise InvalidManifest(f"{folder}: no such folder; set charpente:nodePools to the folder of the pools")
    found = [manifest for path in sorted(root.glob("*.y*ml")) for manifest in _file(path, cluster_name)]
    seen: dict[str, Manifest] = {}
    for manifest in found:
        if manifest.logical_name in seen:
            other = seen[manifest.logical_name].source
            raise InvalidManifest(f"{manifest.source}: {manifest.logical_name} is in {other} too; keep one")
        seen[manifest.logical_name] = manifest
    return found


def _file(path: Path, cluster_name: str) -> Iterator[Manifest]:
    text = path.read_text(encoding="utf-8").replace(_PLACEHOLDER, cluster_name)
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise InvalidManifest(f"{path.name}: not YAML: {' '.join(str(error).split())}") from error
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, Mapping):
            raise InvalidManifest(f"{path.name}: a document is not an object; begin it with apiVersion")
        yield checked(document, path.name)


def check_against_cluster(manifests: Sequence[Manifest], cluster_name: str, node_role: str) -> None:
    """Compare node classes with the stack. Raises Mismatch."""
    for manifest in manifests:
        if manifest.kind != "EC2NodeClass":
            continue
        spec: Mapping[str, Any] = manifest.raw.get("spec") or {}
        if spec.get("role") and spec["role"] != node_role:
            raise Mismatch(manifest, "spec.role", spec["role"], node_role)
        for field in ("subnetSelectorTerms", "securityGroupSelectorTerms"):
            for index, term in enumerate(spec.get(field) or ()):
                tag = (term.get("tags") or {}).get(labels.DISCOVERY_TAG)
                if tag not in (None, "*", cluster_name):
                    place = f"spec.{field}[{index}].tags[{labels.DISCOVERY_TAG}]"
                    raise Mismatch(manifest, place, tag, cluster_name)

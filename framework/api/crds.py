"""The CustomResourceDefinitions of our kinds, generated from their classes.

Called by the stacks, `charpente crds`, the sandbox and offline admission. The same classes always give
the same manifests, key for key.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from framework.api.capacitybuffer import CapacityBuffer
from framework.api.ec2nodeclass import EC2NodeClass
from framework.api.metadata import Kind
from framework.api.nodeclaim import NodeClaim
from framework.api.nodeoverlay import NodeOverlay
from framework.api.nodepool import NodePool
from framework.api.openapi import kind_schema
from framework.api.schedulingconfig import SchedulingConfig
from framework.api.schema import Column, KindInfo

__all__ = ["ALL_GATES", "KINDS", "crd", "crds", "kind_of", "to_yaml"]

KINDS: Final[tuple[type[Kind], ...]] = (
    NodePool,
    NodeClaim,
    NodeOverlay,
    EC2NodeClass,
    SchedulingConfig,
    CapacityBuffer,
)
"""Every kind that Charpente brings."""

ALL_GATES: Final = frozenset(
    {
        "BalancedConsolidation",
        "CPUOptions",
        "CapacityBuffer",
        "ConnectionTracking",
        "NetworkInterfaces",
        "PlacementGroups",
    }
)
"""Gates of the fields and kinds that came after v1.9; off by default."""


def crds(gates: frozenset[str] = frozenset()) -> tuple[dict[str, Any], ...]:
    """Return all CRD manifests; what came after v1.9 is in them when its gate is in `gates`."""
    return tuple(crd(kind, gates) for kind in KINDS if kind.INFO.gate is None or kind.INFO.gate in gates)


def crd(kind: type[Kind], gates: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the CRD manifest of one kind."""
    info = kind.INFO
    names: dict[str, Any] = {
        "categories": list(info.categories),
        "kind": info.kind,
        "listKind": f"{info.kind}List",
        "plural": info.plural,
        "singular": info.kind.lower(),
    }
    if info.short_names:
        names["shortNames"] = list(info.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": info.crd_name},
        "spec": {
            "group": info.group,
            "names": names,
            "scope": info.scope,
            "versions": [_version(kind, gates)],
        },
    }


def to_yaml(definition: dict[str, Any]) -> str:
    """Return a manifest as YAML in the order of its keys, long words unbroken."""
    text: str = yaml.dump(
        definition, Dumper=_Dumper, sort_keys=False, width=110, default_flow_style=False, allow_unicode=True
    )
    return text


class _Dumper(yaml.SafeDumper):
    """Writes lists indented under their key and shared parts in full."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML's
        """Indent lists as well."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's
        """Write every part in full."""
        return True


def kind_of(api_version: str, kind: str) -> type[Kind] | None:
    """Return the class for an API version and kind, or None for kinds that are not ours."""
    for candidate in KINDS:
        if candidate.INFO.api_version == api_version and candidate.INFO.kind == kind:
            return candidate
    return None


def _version(kind: type[Kind], gates: frozenset[str]) -> dict[str, Any]:
    info = kind.INFO
    return {
        "name": info.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in info.columns],
        "schema": {"openAPIV3Schema": kind_schema(kind, gates)},
        "subresources": _subresources(info),
    }


def _column(column: Column) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.wide:
        shown["priority"] = 1
    return shown


def _subresources(info: KindInfo) -> dict[str, Any]:
    subresources: dict[str, Any] = {"status": {}}
    if info.scale is not None:
        subresources["scale"] = {
            "specReplicasPath": info.scale.spec_path,
            "statusReplicasPath": info.scale.status_path,
        }
    return subresources

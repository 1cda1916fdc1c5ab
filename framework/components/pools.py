"""The pools: NodePools, node classes, overlays and scheduling configs.

Called by the programs in `stacks/`. Owns reading and checking manifests and their
order: a pool comes after its node class and goes before it, so that taking a pool out
waits for its nodes. Custom resources are declared one by one, which a preview can do
before the definitions exist. The end of the whole stack is `teardown`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pulumi
import pulumi_kubernetes as k8s

from framework.api import EC2NodeClass, NodeOverlay, NodePool, SchedulingConfig, UserError, labels

_KINDS: Mapping[str, Any] = {
    "EC2NodeClass": EC2NodeClass,
    "NodePool": NodePool,
    "NodeOverlay": NodeOverlay,
    "SchedulingConfig": SchedulingConfig,
}
_NODE_CLASS = "EC2NodeClass"
_GROUPS = (labels.GROUP, labels.AWS_GROUP)


class InvalidManifest(UserError):
    """A manifest that is not one of a pool's kinds, or is not valid."""


@attrs.frozen(kw_only=True)
class Manifest:
    """One checked manifest."""

    raw: Mapping[str, Any]
    """As it will be sent; nothing is filled in."""
    source: str
    """Where it comes from, for messages."""

    @property
    def kind(self) -> str:
        """Such as `NodePool`."""
        return str(self.raw["kind"])

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.raw["metadata"]["name"])

    @property
    def logical_name(self) -> str:
        """`<kind>-<name>` in lower case."""
        return f"{self.kind.lower()}-{self.name}"


def checked(raw: Mapping[str, Any], source: str) -> Manifest:
    """The manifest, parsed once to see that it is valid. Raises InvalidManifest naming the source."""
    kind, version = str(raw.get("kind", "")), str(raw.get("apiVersion", ""))
    if kind not in _KINDS or version.split("/")[0] not in _GROUPS:
        allowed = ", ".join(sorted(_KINDS))
        raise InvalidManifest(f"{source}: {version} {kind} is not a pool's kind; allowed are {allowed}")
    if not (raw.get("metadata") or {}).get("name"):
        raise InvalidManifest(f"{source}: {kind} has no metadata.name; give it one")
    try:
        _KINDS[kind].from_wire(raw)
    except UserError as error:
        raise InvalidManifest(f"{source}: {error}") from error
    return Manifest(raw=raw, source=source)


@attrs.frozen(kw_only=True)
class PoolsArgs:
    """The manifests, already checked."""

    manifests: Sequence[Manifest]


class Pools(pulumi.ComponentResource):
    """Custom resources of the pools. Has no outputs."""

    def __init__(
        self,
        name: str,
        args: PoolsArgs,
        opts: pulumi.ResourceOptions,
        *,
        needs: Sequence[pulumi.Resource] = (),
    ) -> None:
        """Declare the objects; `opts` must carry the Kubernetes provider.

        `needs` is what must be there first and must outlive them: definitions,
        controller, access entry of the node role.
        """
        super().__init__("charpente:kubernetes:Pools", name, None, opts)
        ordered = sorted(args.manifests, key=lambda m: (m.kind, m.name))
        classes = [self._declare(m, needs) for m in ordered if m.kind == _NODE_CLASS]
        others = [m for m in ordered if m.kind != _NODE_CLASS]
        for manifest in others:
            self._declare(manifest, [*needs, *classes])
        self.register_outputs({})

    def _declare(self, manifest: Manifest, needs: Sequence[pulumi.Resource]) -> pulumi.Resource:
        raw = manifest.raw
        resource: pulumi.Resource = k8s.apiextensions.CustomResource(
            manifest.logical_name,
            api_version=raw["apiVersion"],
            kind=raw["kind"],
            metadata=raw["metadata"],
            spec=raw.get("spec") or {},
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=list(needs),
                custom_timeouts=pulumi.CustomTimeouts(delete="30m"),
            ),
        )
        return resource

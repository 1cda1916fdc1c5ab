"""The custom resource definitions, as resources of their own.

Called by the programs in `stacks/`. Owns their declaration; the manifests are
generated in `framework.api`. Upgraded before the controller, deleted after the last
custom resource.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from framework.api import crds


class Crds(pulumi.ComponentResource):
    """All definitions. Has no outputs; `resources` is for `depends_on`."""

    resources: Sequence[pulumi.Resource]

    def __init__(self, name: str, opts: pulumi.ResourceOptions, gates: frozenset[str] = frozenset()) -> None:
        """Declare the definitions; `opts` must carry the Kubernetes provider.

        `gates` are the controller's gates that are on: what they stand for is in the definitions then.
        """
        super().__init__("charpente:kubernetes:Crds", name, None, opts)
        self.resources = tuple(
            k8s.apiextensions.v1.CustomResourceDefinition(
                f"{name}-{manifest['metadata']['name'].split('.')[0]}",
                metadata=manifest["metadata"],
                spec=manifest["spec"],
                opts=pulumi.ResourceOptions(parent=self),
            )
            for manifest in crds(gates)
        )
        self.register_outputs({})

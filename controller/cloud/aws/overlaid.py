"""The instance types of a launch with what NodeOverlays make of them (spec aws/launch §2).

Called by the provider's `create`, so that a launch ranks by the prices that the plan was made with.
Remembers the last answer of each pool, since launches recognize alike types by identity. Never decides
whether an overlay applies.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from controller.scheduling import InstanceType
from controller.scheduling.overlays import overlaid_types
from framework.api import NodeOverlay, NodePool

__all__ = ["Overlaid"]

Types = tuple[InstanceType, ...]


@attrs.frozen(kw_only=True, eq=False)
class _Answer:
    types: Types
    labels: Mapping[str, str]
    overlays: tuple[NodeOverlay, ...]
    found: Types


class Overlaid:
    """Applies overlays, once per change."""

    def __init__(self) -> None:
        """Start without any answer."""
        self._answers: dict[str, _Answer] = {}

    def types(self, pool: NodePool, types: Types, overlays: tuple[NodeOverlay, ...]) -> Types:
        """Return the types under the overlays that match the pool; the same tuple for the same input."""
        if not overlays:
            return types
        labels = pool.spec.template.metadata.labels
        known = self._answers.get(pool.name)
        if known is None or known.types is not types or (known.labels, known.overlays) != (labels, overlays):
            found = overlaid_types(pool, types, overlays)
            known = self._answers[pool.name] = _Answer(
                types=types, labels=labels, overlays=overlays, found=found
            )
        return known.found

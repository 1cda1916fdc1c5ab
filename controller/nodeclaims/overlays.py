"""Validation of NodeOverlays, which the engine applies to types and prices (spec core/scheduling §15).

Reconciles NodeOverlays behind the gate of that name. An overlay that is not valid is not applied.
"""

from __future__ import annotations

from controller.clock import Clock
from controller.cluster import Mirror, Writer, conditions_of, with_conditions
from controller.kube import DONE, Key, Requeue
from framework.api.conditions import VALIDATION_SUCCEEDED
from framework.api.validation import validate_nodeoverlay

__all__ = ["OverlayValidation"]


class OverlayValidation:
    """Says whether an overlay is applied."""

    name = "nodeoverlay"

    def __init__(self, mirror: Mirror, writer: Writer, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer
        self._clock = clock

    async def reconcile(self, key: Key) -> Requeue:
        """Judge one overlay."""
        overlay = self._mirror.overlays.get(key.name)
        if overlay is None or overlay.deleting:
            return DONE
        conditions, now = conditions_of(overlay), self._clock.now()
        problems = validate_nodeoverlay(overlay)
        if problems:
            text = "; ".join(str(problem) for problem in problems)
            conditions = conditions.set_false(VALIDATION_SUCCEEDED, "RuntimeValidation", text, now=now)
        else:
            conditions = conditions.set_true(VALIDATION_SUCCEEDED, now=now)
        await self._writer.overlay(overlay, with_conditions(overlay, conditions))
        return DONE

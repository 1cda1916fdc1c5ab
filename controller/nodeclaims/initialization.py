"""Initialization: the node is ready for the pods it was made for (spec core/lifecycle §5).

Third part of the lifecycle. Checks in order, the first that fails names what is awaited; passing is final.
"""

from __future__ import annotations

from typing import Final

import attrs
import structlog

from controller.clock import Clock
from controller.cluster import Mirror, Node, Writer, conditions_of, with_conditions
from controller.nodeclaims.step import Step, is_unknown
from controller.observability.logs import ref
from controller.scheduling import is_ephemeral
from framework.api import ClaimCondition, NodeClaim, format_resources, labels, parse_resources
from framework.api.conditions import is_true

__all__ = ["Awaited", "Initialization", "awaited"]

_log: Final = structlog.get_logger("controller")


@attrs.frozen
class Awaited:
    """Why a node is not initialized: condition reason and message."""

    reason: str
    message: str


class Initialization:
    """Initializes nodes."""

    def __init__(self, mirror: Mirror, writer: Writer, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer
        self._clock = clock

    async def advance(self, step: Step) -> Step:
        """Initialize the claim's node if nothing is awaited any more."""
        claim = step.claim
        registered = is_true(claim.status.conditions, ClaimCondition.REGISTERED)
        if not is_unknown(claim, ClaimCondition.INITIALIZED) or not registered:
            return step
        node = self._mirror.nodes.get(claim.status.node_name or "")
        missing = awaited(node, claim)
        conditions, now = conditions_of(claim), self._clock.now()
        if missing is not None or node is None:
            missing = missing or Awaited("NodeNotFound", "Node not registered with cluster")
            conditions = conditions.set_unknown(
                ClaimCondition.INITIALIZED, missing.reason, missing.message, now=now
            )
            return attrs.evolve(step, claim=with_conditions(claim, conditions))
        if node.labels.get(labels.INITIALIZED) != "true":
            node = await self._writer.node(node, {"metadata": {"labels": {labels.INITIALIZED: "true"}}})
        initialized = with_conditions(claim, conditions.set_true(ClaimCondition.INITIALIZED, now=now))
        ready = node
        return attrs.evolve(step, claim=initialized).then(lambda: self._announce(initialized, ready))

    async def _announce(self, claim: NodeClaim, node: Node) -> None:
        _log.info(
            "initialized nodeclaim",
            NodeClaim=ref(claim.name),
            Node=ref(node.name),
            allocatable=format_resources(node.allocatable),
            **{"provider-id": claim.status.provider_id},
        )


def awaited(node: Node | None, claim: NodeClaim) -> Awaited | None:
    """Return the first thing that the node still lacks, or None."""
    if node is None:
        return Awaited("NodeNotFound", "Node not registered with cluster")
    if not node.ready:
        return Awaited("NodeNotReady", "Node status is NotReady")
    startup = {(taint.key, str(taint.effect)) for taint in claim.spec.startup_taints}
    for taint in node.taints:
        if (taint.key, taint.effect) in startup:
            return Awaited("StartupTaintsExist", f"StartupTaint {taint} still exists")
    for taint in node.taints:
        if is_ephemeral(taint):
            return Awaited("KnownEphemeralTaintsExist", f"KnownEphemeralTaint {taint} still exists")
    for resource, amount in sorted(parse_resources(claim.spec.resources.requests).items()):
        if amount and not node.allocatable.get(resource):
            return Awaited("ResourceNotRegistered", f"Resource {resource} was requested but not registered")
    return None

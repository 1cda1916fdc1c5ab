"""Registration: the node that joined is made the claim's (spec core/lifecycle §4).

Second part of the lifecycle. Finds the Node by provider id, gives it finalizer, owner, labels,
annotations and taints of the claim in one conditional patch, and takes the unregistered taint away.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import structlog

from controller.clock import Clock
from controller.cluster import Mirror, Node, Writer, conditions_of, with_conditions
from controller.kube import Event, EventType, ObjectRef, Recorder, WireObject, kinds
from controller.nodeclaims.health import RegistrationHealth
from controller.nodeclaims.step import Step, is_unknown, pool_of
from controller.observability import Metrics
from controller.observability.logs import ref
from framework.api import ClaimCondition, NodeClaim, Taint, labels
from framework.api.conditions import is_true

__all__ = ["Registration", "registered_node"]

_log: Final = structlog.get_logger("controller")


@attrs.frozen(kw_only=True, eq=False)
class Registration:
    """Registers nodes."""

    mirror: Mirror
    writer: Writer
    recorder: Recorder
    metrics: Metrics
    health: RegistrationHealth
    clock: Clock

    async def advance(self, step: Step) -> Step:
        """Register the claim's node if it has joined."""
        claim = step.claim
        launched = is_true(claim.status.conditions, ClaimCondition.LAUNCHED)
        if not is_unknown(claim, ClaimCondition.REGISTERED) or not launched:
            return step
        nodes = self.mirror.nodes_of(claim)
        if not nodes:
            return self._unknown(step, "NodeNotFound", "Node not registered with cluster")
        if len(nodes) > 1:
            names = ", ".join(sorted(node.name for node in nodes))
            conditions = conditions_of(claim).set_false(
                ClaimCondition.REGISTERED,
                "MultipleNodesFound",
                f"Nodes {names} have the claim's provider id",
                now=self.clock.now(),
            )
            return attrs.evolve(step, claim=with_conditions(claim, conditions))
        return await self._register(step, nodes[0])

    async def _register(self, step: Step, node: Node) -> Step:
        claim = step.claim
        unregistered = any(taint.key == labels.UNREGISTERED_TAINT for taint in node.taints)
        if not unregistered and labels.REGISTERED not in node.labels:
            self._warn(claim, node)
        node = await self.writer.node(node, registered_node(node, claim))
        claim = attrs.evolve(claim, status=attrs.evolve(claim.status, node_name=node.name))
        conditions = conditions_of(claim).set_true(ClaimCondition.REGISTERED, now=self.clock.now())
        registered = with_conditions(claim, conditions)
        return attrs.evolve(step, claim=registered).then(lambda: self._announce(registered, node))

    async def _announce(self, claim: NodeClaim, node: Node) -> None:
        self.metrics.nodes.created.labels(nodepool=pool_of(claim)).inc()
        await self.health.succeeded(claim)
        _log.info(
            "registered nodeclaim",
            NodeClaim=ref(claim.name),
            Node=ref(node.name),
            **{"provider-id": claim.status.provider_id},
        )

    def _unknown(self, step: Step, reason: str, message: str) -> Step:
        conditions = conditions_of(step.claim).set_unknown(
            ClaimCondition.REGISTERED, reason, message, now=self.clock.now()
        )
        return attrs.evolve(step, claim=with_conditions(step.claim, conditions))

    def _warn(self, claim: NodeClaim, node: Node) -> None:
        text = f"node {node.name} joined without the taint {labels.UNREGISTERED_TAINT}:NoExecute"
        _log.error("unregistered taint is missing on node", NodeClaim=ref(claim.name), Node=ref(node.name))
        self.recorder.publish(
            Event(
                regarding=ObjectRef.of(kinds.NODECLAIM, claim.metadata),
                type=EventType.WARNING,
                reason="UnregisteredTaintMissing",
                message=f"{text}; pods may have been bound before it was ready for them",
            )
        )


def registered_node(node: Node, claim: NodeClaim) -> WireObject:
    """Return the patch that makes a node the claim's."""
    meta = node.metadata
    owner = {
        "apiVersion": claim.api_version,
        "kind": claim.kind,
        "name": claim.name,
        "uid": claim.metadata.uid,
        "blockOwnerDeletion": True,
    }
    owners = [each.to_wire() for each in meta.owner_references if each.uid != claim.metadata.uid]
    finalizers = [each for each in meta.finalizers if each != labels.TERMINATION_FINALIZER]
    return {
        "metadata": {
            "finalizers": [*finalizers, labels.TERMINATION_FINALIZER],
            "ownerReferences": [*owners, owner],
            "labels": {**claim.metadata.labels, labels.REGISTERED: "true"},
            "annotations": dict(claim.metadata.annotations),
        },
        "spec": {"taints": _taints(node, claim)},
    }


def _taints(node: Node, claim: NodeClaim) -> list[dict[str, Any]]:
    """Return the node's taints without the unregistered one, and those of the claim that it lacks."""
    kept = [dict(each) for each in node.wire_taints if each.get("key") != labels.UNREGISTERED_TAINT]
    if node.labels.get(labels.DO_NOT_SYNC_TAINTS) == "true":
        return kept
    known = {(each.get("key"), each.get("effect")) for each in kept}
    for taint in (*claim.spec.taints, *claim.spec.startup_taints):
        if (taint.key, str(taint.effect)) not in known:
            known.add((taint.key, str(taint.effect)))
            kept.append(_wire(taint))
    return kept


def _wire(taint: Taint) -> dict[str, Any]:
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, "effect": str(taint.effect), **value}

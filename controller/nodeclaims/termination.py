"""Termination of a node: taint, drain, volumes, instance, finalizer (spec core/lifecycle §8).

Reconciles Nodes that are being deleted. Each step may stop and come back; the claim's condition always
says what is waited for. `kubectl delete node` takes this way as well.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs
import structlog

from controller.clock import Clock
from controller.cloud.provider import NodeClaimNotFound, Provider
from controller.cluster import Mirror, Node, Writer, conditions_of, with_conditions
from controller.kube import (
    DONE,
    Client,
    Conflict,
    Event,
    EventType,
    Key,
    NotFound,
    ObjectRef,
    Recorder,
    Requeue,
    kinds,
)
from controller.nodeclaims.attachments import awaited_attachments
from controller.nodeclaims.deletion import end_instance
from controller.nodeclaims.drain import Drain, Forced, drain
from controller.nodeclaims.eviction import EvictionQueue
from controller.observability import Metrics
from controller.observability.logs import ref
from controller.scheduling import Pod, is_evictable
from framework.api import ClaimCondition, InvalidField, NodeClaim, labels
from framework.api.conditions import ConditionStatus, get, is_true

__all__ = ["Termination", "deadline_of"]

_log: Final = structlog.get_logger("controller")
_DRAIN_POLL: Final = Requeue(timedelta(seconds=1))
_INSTANCE_POLL: Final = Requeue(timedelta(seconds=5))
_SHOWN: Final = 5
_BALANCERS: Final = "karpenter"


@attrs.frozen(kw_only=True, eq=False)
class Termination:
    """Ends nodes gracefully."""

    mirror: Mirror
    client: Client
    writer: Writer
    provider: Provider
    evictions: EvictionQueue
    recorder: Recorder
    metrics: Metrics
    clock: Clock

    name = "node.termination"

    async def reconcile(self, key: Key) -> Requeue:
        """Take the next step of one deleting node."""
        node = self.mirror.nodes.get(key.name)
        if node is None or not node.deleting or not self.mirror.is_our_node(node):
            return DONE
        if labels.TERMINATION_FINALIZER not in node.metadata.finalizers:
            return DONE
        claim = self.mirror.claim_of(node)
        if claim is not None:
            await self.writer.delete_claim(claim)
        try:
            return await self._terminate(node, self.mirror.claim_of(node))
        except NotFound:
            return DONE

    async def _terminate(self, node: Node, claim: NodeClaim | None) -> Requeue:
        if not node.ready and await self._instance_is_gone(node):
            await self._remove_finalizer(node, claim)
            return DONE
        deadline = deadline_of(claim) if claim is not None else None
        if deadline is not None:
            self._warn_of(node, deadline)
        node = await self._tainted(node)
        if not await self._drained(node, claim, deadline):
            return _DRAIN_POLL
        claim = self.mirror.claim_of(node)
        if not await self._detached(node, claim, deadline):
            return _DRAIN_POLL
        claim = self.mirror.claim_of(node)
        if claim is not None and not (await end_instance(self.provider, self.writer, claim, self.clock))[1]:
            return _INSTANCE_POLL
        await self._remove_finalizer(node, claim)
        return DONE

    async def _instance_is_gone(self, node: Node) -> bool:
        try:
            await self.provider.get(node.provider_id)
        except NodeClaimNotFound:
            return True
        return False

    async def _tainted(self, node: Node) -> Node:
        """Keep new pods and load balancers away."""
        kept = [dict(each) for each in node.wire_taints if each.get("key") != labels.DISRUPTED_TAINT]
        tainted = any(
            taint.key == labels.DISRUPTED_TAINT and taint.effect == "NoSchedule" for taint in node.taints
        )
        if tainted and node.labels.get(labels.EXCLUDE_FROM_LOAD_BALANCERS) == _BALANCERS:
            return node
        patch = {
            "metadata": {"labels": {labels.EXCLUDE_FROM_LOAD_BALANCERS: _BALANCERS}},
            "spec": {"taints": [*kept, {"key": labels.DISRUPTED_TAINT, "effect": "NoSchedule"}]},
        }
        node = await self.writer.node(node, patch)
        _log.info("tainted node", Node=ref(node.name), **{"taint.Key": labels.DISRUPTED_TAINT})
        return node

    async def _drained(self, node: Node, claim: NodeClaim | None, deadline: datetime | None) -> bool:
        if claim is not None and is_true(claim.status.conditions, ClaimCondition.DRAINED):
            return True
        found = drain(self.mirror.pods_on(node.name), now=self.clock.now(), deadline=deadline)
        for forced in found.forced:
            await self._force(forced)
        reason = _disruption_reason(claim)
        for pod in found.evict:
            self.evictions.add(pod, node, reason)
        if found.waiting:
            await self._report_waiting(node, claim, found)
            return False
        self.evictions.forget(node.name)
        self.metrics.nodes.drained.labels(nodepool=node.labels.get(labels.NODEPOOL, "")).inc()
        await self._set(claim, ClaimCondition.DRAINED, ConditionStatus.TRUE, "", "")
        return True

    async def _report_waiting(self, node: Node, claim: NodeClaim | None, found: Drain) -> None:
        shown = ", ".join(self._why_waiting(pod) for pod in found.waiting[:_SHOWN])
        more = len(found.waiting) - _SHOWN
        text = f"{len(found.waiting)} pods are waiting to be evicted"
        self.recorder.publish(
            Event(
                regarding=ObjectRef.of(kinds.NODE, node.metadata),
                type=EventType.WARNING,
                reason="FailedDraining",
                message=f"Failed to drain node, {text}",
                dedupe_values=(node.name,),
            )
        )
        names = shown + (f" and {more} other(s)" if more > 0 else "")
        await self._set(
            claim, ClaimCondition.DRAINED, ConditionStatus.UNKNOWN, "Draining", f"waiting for pods: {names}"
        )

    def _why_waiting(self, pod: Pod) -> str:
        """Return the pod's name, with what keeps it where that is known."""
        if pod.deletion_timestamp is not None:
            return f"{pod.key} (ending since {pod.deletion_timestamp:%Y-%m-%dT%H:%M:%SZ})"
        if not is_evictable(pod, self.clock.now()):
            return f"{pod.key} ({labels.DO_NOT_DISRUPT})"
        budgets = sorted(
            budget.name
            for budget in self.mirror.budgets
            if budget.covers(pod.namespace, pod.labels) and budget.disruptions_allowed < 1
        )
        return f"{pod.key} (PodDisruptionBudget {', '.join(budgets)})" if budgets else pod.key

    async def _force(self, forced: Forced) -> None:
        pod = forced.pod
        try:
            await self.client.delete(
                kinds.POD,
                pod.name,
                namespace=pod.namespace,
                uid=pod.uid,
                grace_period_seconds=forced.grace_seconds,
            )
        except (NotFound, Conflict):
            return
        self.recorder.publish(
            Event(
                regarding=ObjectRef(kind=kinds.POD, name=pod.name, namespace=pod.namespace, uid=pod.uid),
                reason="Disrupted",
                message="Deleting the pod to accommodate the terminationGracePeriod of the node; "
                f"it was granted {forced.grace_seconds} seconds of grace",
                dedupe_values=(pod.key,),
            )
        )

    async def _detached(self, node: Node, claim: NodeClaim | None, deadline: datetime | None) -> bool:
        known = get(claim.status.conditions, ClaimCondition.VOLUMES_DETACHED) if claim is not None else None
        if known is not None and known.status is not ConditionStatus.UNKNOWN:
            return True
        now = self.clock.now()
        awaited = awaited_attachments(self.mirror, node.name, self.mirror.pods_on(node.name), now)
        if not awaited:
            await self._set(claim, ClaimCondition.VOLUMES_DETACHED, ConditionStatus.TRUE, "", "")
            return True
        if deadline is not None and now > deadline:
            await self._set(
                claim,
                ClaimCondition.VOLUMES_DETACHED,
                ConditionStatus.FALSE,
                "TerminationGracePeriodElapsed",
                "",
            )
            return True
        names = ", ".join(each.metadata.name for each in awaited[:_SHOWN])
        self.recorder.publish(
            Event(
                regarding=ObjectRef.of(kinds.NODE, node.metadata),
                reason="AwaitingVolumeDetachment",
                message=f"Awaiting deletion of {len(awaited)} volume attachment(s): {names}",
                dedupe_values=(node.name,),
            )
        )
        await self._set(
            claim,
            ClaimCondition.VOLUMES_DETACHED,
            ConditionStatus.UNKNOWN,
            "AwaitingVolumeDetachment",
            f"waiting for volume attachments: {names}",
        )
        return False

    async def _set(
        self,
        claim: NodeClaim | None,
        type: ClaimCondition,
        status: ConditionStatus,
        reason: str,
        message: str,
    ) -> None:
        if claim is None:
            return
        conditions = conditions_of(claim).set(type, status, reason, message, now=self.clock.now())
        await self.writer.claim(claim, with_conditions(claim, conditions))

    async def _remove_finalizer(self, node: Node, claim: NodeClaim | None) -> None:
        kept = [each for each in node.metadata.finalizers if each != labels.TERMINATION_FINALIZER]
        await self.writer.node(node, {"metadata": {"finalizers": kept}})
        self.evictions.forget(node.name)
        pool, now = node.labels.get(labels.NODEPOOL, ""), self.clock.now()
        self.metrics.nodes.terminated.labels(nodepool=pool).inc()
        if node.metadata.deletion_timestamp is not None:
            seconds = (now - node.metadata.deletion_timestamp).total_seconds()
            self.metrics.nodes.termination.labels(nodepool=pool).observe(seconds)
        if node.metadata.creation_timestamp is not None:
            seconds = (now - node.metadata.creation_timestamp).total_seconds()
            self.metrics.nodes.lifetime.labels(nodepool=pool).observe(seconds)
        names = {"NodeClaim": ref(claim.name)} if claim is not None else {}
        _log.info("deleted node", Node=ref(node.name), **names)

    def _warn_of(self, node: Node, deadline: datetime) -> None:
        self.recorder.publish(
            Event(
                regarding=ObjectRef.of(kinds.NODE, node.metadata),
                type=EventType.WARNING,
                reason="TerminationGracePeriodExpiring",
                message=f"All pods will be deleted by {deadline:%Y-%m-%dT%H:%M:%SZ}",
                dedupe_values=(node.name,),
            )
        )


def deadline_of(claim: NodeClaim) -> datetime | None:
    """Return by when the claim's node must be gone; raises InvalidField for an annotation that is no time."""
    text = claim.metadata.annotations.get(labels.TERMINATION_TIMESTAMP)
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError as exc:
        raise InvalidField(
            obj=f"NodeClaim/{claim.name}",
            field=f"metadata.annotations[{labels.TERMINATION_TIMESTAMP}]",
            problem=f"is {text!r}",
            remedy="write an instant such as 2026-01-02T15:04:05Z",
        ) from exc


def _disruption_reason(claim: NodeClaim | None) -> str:
    found = get(claim.status.conditions, ClaimCondition.DISRUPTION_REASON) if claim is not None else None
    if found is not None and found.status is ConditionStatus.TRUE:
        return found.reason
    return "Forceful Termination"

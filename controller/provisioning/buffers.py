"""CapacityBuffers: what room they ask for, and whether it is there (core/scheduling §16, core/api §6).

`BufferResolver` reconciles CapacityBuffers behind the gate of that name: it reads the template, counts the
replicas, hands both to the mirror for snapshots and triggers a round. `provisioned` says after a round
what became of the room; the provisioner writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import attrs

from controller.clock import Clock
from controller.cluster import Mirror, Writer
from controller.kube import DONE, Client, Conflict, Key, Kind, NotFound, Requeue, WireObject, kinds
from controller.provisioning.batcher import Batcher
from controller.scheduling import Buffer, Plan, Pod, Resources, buffer_pods
from framework.api import (
    CapacityBuffer,
    CapacityBufferStatus,
    CharpenteError,
    ConditionSet,
    parse_resources,
)
from framework.api.capacitybuffer import ACTIVE_CAPACITY, PodTemplateRef, ScalableRef
from framework.api.condition_types import BufferCondition

__all__ = ["BufferResolver", "buffer_replicas", "provisioned"]

_AGAIN: Final = Requeue(timedelta(seconds=30))
_SOON: Final = Requeue(timedelta(seconds=1))
_SCALABLE: Final = {kind.kind: kind for kind in (kinds.DEPLOYMENT, kinds.REPLICASET, kinds.STATEFULSET)}
_KEPT_ON_DISK: Final = ("persistentVolumeClaim", "ephemeral")
"""Volume sources that room kept free does without."""


class _Unresolved(CharpenteError):
    """The shape of the pods is not known; `reason` is the condition's."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@attrs.frozen(kw_only=True)
class _Template:
    """Pods of what shape, as read from the cluster."""

    spec: Mapping[str, Any]
    labels: Mapping[str, str]
    replicas: int | None = None
    """Of the workload; None for a PodTemplate."""
    reference: PodTemplateRef | None = None
    generation: int | None = None


@attrs.frozen(kw_only=True, eq=False)
class BufferResolver:
    """Finds out what a buffer asks for."""

    mirror: Mirror
    client: Client
    writer: Writer
    batcher: Batcher
    clock: Clock

    name = "capacitybuffer"

    async def reconcile(self, key: Key) -> Requeue:
        """Resolve one buffer and say so."""
        buffer = self.mirror.buffers.get(key)
        if buffer is None or buffer.deleting:
            return DONE
        try:
            template = await self._template(buffer)
            found = self._resolved(buffer, template)
            after = _ready(buffer, template, found, self.clock)
        except _Unresolved as exc:
            found, after = None, _not_ready(buffer, exc, self.clock)
        self.mirror.resolve_buffer(key, found)
        if found is not None:
            self.batcher.trigger(buffer.metadata.uid)
        try:
            await self.writer.capacity_buffer(buffer, after)
        except (Conflict, NotFound):
            return _SOON
        return _AGAIN

    async def _template(self, buffer: CapacityBuffer) -> _Template:
        spec, namespace = buffer.spec, buffer.metadata.namespace
        if spec.provisioning_strategy != ACTIVE_CAPACITY:
            text = f"strategy {spec.provisioning_strategy} is not known; use {ACTIVE_CAPACITY}"
            raise _Unresolved("ResolutionFailed", text)
        if spec.pod_template_ref is not None:
            name = spec.pod_template_ref.name
            found = await self._read(kinds.PODTEMPLATE, namespace, name, "PodTemplateNotFound")
            meta = found["metadata"]
            return attrs.evolve(
                _template_of(found.get("template")),
                reference=spec.pod_template_ref,
                generation=meta.get("generation"),
            )
        if spec.scalable_ref is not None:
            kind = _scalable_kind(spec.scalable_ref)
            found = await self._read(kind, namespace, spec.scalable_ref.name, "ScalableRefNotFound")
            wanted = (found.get("spec") or {}).get("replicas", 1)
            return attrs.evolve(_template_of((found.get("spec") or {}).get("template")), replicas=int(wanted))
        raise _Unresolved("ResolutionFailed", "neither podTemplateRef nor scalableRef is set; set one")

    async def _read(self, kind: Kind, namespace: str | None, name: str, missing: str) -> WireObject:
        try:
            return await self.client.get(kind, name, namespace)
        except NotFound as exc:
            raise _Unresolved(missing, f"{kind.kind} {namespace}/{name} not found") from exc

    def _resolved(self, buffer: CapacityBuffer, template: _Template) -> Buffer:
        namespace = buffer.metadata.namespace or ""
        volumes = [
            each
            for each in template.spec.get("volumes") or ()
            if all(each.get(source) is None for source in _KEPT_ON_DISK)
        ]
        spec = self.mirror.admitted(namespace, {**template.spec, "volumes": volumes})
        meta = {"namespace": namespace, "name": buffer.name, "labels": dict(template.labels)}
        try:
            pod = Pod.from_wire({"metadata": meta, "spec": spec})
        except CharpenteError as exc:
            raise _Unresolved("ResolutionFailed", str(exc)) from exc
        if pod.problem is not None:
            raise _Unresolved("ResolutionFailed", f"its pod template cannot be read: {pod.problem}")
        return Buffer(
            namespace=namespace,
            name=buffer.name,
            uid=buffer.metadata.uid,
            sample=pod,
            replicas=buffer_replicas(buffer, pod.requests, template.replicas),
        )


def buffer_replicas(buffer: CapacityBuffer, requests: Resources, workload: int | None) -> int:
    """Return how many pods the buffer keeps room for; `workload` are the replicas its percentage is of.

    The larger of replicas and percentage, rounded up, and no more than the limits hold; without a size as
    many as the limits hold (§16).
    """
    sizes = [] if buffer.spec.replicas is None else [buffer.spec.replicas]
    if buffer.spec.percentage is not None and workload is not None:
        sizes.append(-(-workload * buffer.spec.percentage // 100))
    limits = parse_resources(buffer.spec.limits)
    bounds = [limit // requests[name] for name, limit in limits.items() if requests.get(name)]
    return min([max(sizes), *bounds]) if sizes else min(bounds, default=0)


def provisioned(
    buffers: Mapping[Key, CapacityBuffer], planned: tuple[Buffer, ...], plan: Plan, clock: Clock
) -> Iterator[tuple[CapacityBuffer, CapacityBuffer]]:
    """Yield the buffers of a planned round, each as it is and as its condition Provisioning should be."""
    placed = {each.pod_uid for each in plan.placements}
    for buffer in planned:
        known = buffers.get(Key(name=buffer.name, namespace=buffer.namespace))
        if known is not None and buffer.replicas:
            missing = sum(pod.uid not in placed for pod in buffer_pods((buffer,)))
            yield known, _with_room(known, missing, buffer.replicas, clock)


def _with_room(buffer: CapacityBuffer, missing: int, wanted: int, clock: Clock) -> CapacityBuffer:
    conditions, type, now = _conditions(buffer), BufferCondition.PROVISIONING, clock.now()
    if missing:
        text = f"{missing} of {wanted} pods do not fit the nodes there are"
        conditions = conditions.set_false(type, "RequiresNewCapacity", text, now=now)
    else:
        conditions = conditions.set_true(type, "FitsExistingCapacity", now=now)
    return _with(buffer, buffer.status, conditions)


def _ready(buffer: CapacityBuffer, template: _Template, found: Buffer, clock: Clock) -> CapacityBuffer:
    now = clock.now()
    conditions = _conditions(buffer).set_true(BufferCondition.READY_FOR_PROVISIONING, "Resolved", now=now)
    if not found.replicas:
        text = "no room is asked for"
        conditions = conditions.set_false(BufferCondition.PROVISIONING, "BufferEmpty", text, now=now)
    status = CapacityBufferStatus(
        pod_template_ref=template.reference,
        pod_template_generation=template.generation,
        replicas=found.replicas,
        provisioning_strategy=buffer.spec.provisioning_strategy,
    )
    return _with(buffer, status, conditions)


def _not_ready(buffer: CapacityBuffer, why: _Unresolved, clock: Clock) -> CapacityBuffer:
    now, text = clock.now(), str(why)
    conditions = _conditions(buffer)
    conditions = conditions.set_false(BufferCondition.READY_FOR_PROVISIONING, why.reason, text, now=now)
    conditions = conditions.set_false(
        BufferCondition.PROVISIONING, "NotReadyForProvisioning", "its pods are not known", now=now
    )
    return _with(buffer, CapacityBufferStatus(), conditions)


def _conditions(buffer: CapacityBuffer) -> ConditionSet:
    return ConditionSet.of(buffer, dependents=(), root=BufferCondition.READY_FOR_PROVISIONING)


def _with(buffer: CapacityBuffer, status: CapacityBufferStatus, conditions: ConditionSet) -> CapacityBuffer:
    return attrs.evolve(buffer, status=attrs.evolve(status, conditions=conditions.conditions))


def _scalable_kind(reference: ScalableRef) -> Kind:
    kind = _SCALABLE.get(reference.kind) if reference.api_group in (None, "", "apps") else None
    if kind is None:
        known = " or ".join(sorted(_SCALABLE))
        text = (
            f"{reference.api_group or 'apps'}/{reference.kind} is not supported; name one of {known} of apps"
        )
        raise _Unresolved("ResolutionFailed", text)
    return kind


def _template_of(raw: Mapping[str, Any] | None) -> _Template:
    meta = (raw or {}).get("metadata") or {}
    return _Template(spec=(raw or {}).get("spec") or {}, labels=meta.get("labels") or {})

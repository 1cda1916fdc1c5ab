"""The round: pending pods, a plan, NodeClaims (spec core/scheduling §1 to §4, §19, §21).

The one reconciler that grows the cluster. Waits for a batch, freezes the mirror, has the engine plan in a
worker thread, and carries the plan out: claims are created side by side, nodes that got pods are
nominated, pods without a place hear why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, Protocol

import attrs
import structlog

from controller.clock import Clock
from controller.cloud.provider import Provider
from controller.cluster import Mirror, Writer
from controller.kube import NOW, Event, EventType, Key, KubeError, ObjectRef, Recorder, Requeue, kinds
from controller.observability import Metrics
from controller.observability.logs import ref
from controller.provisioning.batcher import Batcher
from controller.provisioning.buffers import provisioned
from controller.provisioning.claims import LimitsExceeded
from controller.provisioning.headroom import shortfalls
from controller.provisioning.pools import launchable
from controller.provisioning.probing import Admission, admit
from controller.scheduling import (
    InstanceType,
    Options,
    Plan,
    PlannedClaim,
    Pod,
    Problem,
    Snapshot,
    headroom_pods,
    is_provisionable,
    is_virtual,
    will_need_a_place,
)
from framework.api import NodePool

__all__ = ["Launcher", "Planner", "Provisioner", "pods_to_place"]

_log: Final = structlog.get_logger("controller")
_UNSYNCED_WAIT: Final = 0.2
"""Seconds between two looks at a mirror that waits for launches to be answered."""
_FAILED_DEDUPE: Final = timedelta(minutes=5)
_AWAITING: Final = (
    "Pod needs a node of NodePool {planned.pool} whose capacity was sold out a moment ago; "
    "fewer nodes try it first"
)
_POOL_DEDUPE: Final = timedelta(minutes=1)
_NOMINATION_FLOOR: Final = timedelta(seconds=10)

Planner = Callable[[Problem], Awaitable[Plan]]
"""Solves a problem off the event loop."""


class Launcher(Protocol):
    """Creates claims; `ClaimWriter` in production."""

    async def launch(self, planned: PlannedClaim, pool: NodePool, *, reason: str) -> str:
        """Create the claim and return its name."""
        ...


@attrs.frozen(kw_only=True)
class _Round:
    snapshot: Snapshot
    pods: Mapping[str, Pod]
    """The pods to place, by UID."""
    plan: Plan
    admission: Admission
    """Which of its claims are created now."""


@attrs.frozen(kw_only=True, eq=False)
class Provisioner:
    """Plans and creates claims, one round at a time."""

    mirror: Mirror
    writer: Writer
    batcher: Batcher
    provider: Provider
    planner: Planner
    launcher: Launcher
    recorder: Recorder
    metrics: Metrics
    clock: Clock
    options: Options
    batch_longest: timedelta

    name = "provisioner"

    async def reconcile(self, key: Key) -> Requeue:  # noqa: ARG002 - a singleton
        """Wait for a batch and serve it."""
        if not await self.batcher.wait():
            return NOW
        while not self.mirror.is_synced():
            _log.debug("waiting for launches to be answered before planning")
            await self.clock.sleep(_UNSYNCED_WAIT)
        await self.serve()
        return NOW

    async def serve(self) -> Plan | None:
        """Plan for all pods that need a place now and carry the plan out; None when there are none."""
        started = self.clock.monotonic()
        snapshot = self.mirror.snapshot(self.clock.now())
        pods = pods_to_place(snapshot)
        if not pods:
            return None
        waiting = tuple(pod for pod in pods if not is_virtual(pod))
        if waiting:
            _log.info("found provisionable pods", Pods=_named(waiting), **{"pod-count": len(waiting)})
        types = await launchable(snapshot.pools, self.provider)
        if not types:
            _log.error("no dynamic nodepools found that may launch nodes")
        plan = await self._plan(snapshot, pods, types)
        self.metrics.scheduler.duration.labels(controller=self.name).observe(self.clock.monotonic() - started)
        done = _Round(
            snapshot=snapshot,
            pods={pod.uid: pod for pod in pods},
            plan=plan,
            admission=admit(plan.claims, types),
        )
        self._report(done)
        await self._carry_out(done)
        return plan

    async def _plan(
        self, snapshot: Snapshot, pods: tuple[Pod, ...], types: Mapping[str, tuple[InstanceType, ...]]
    ) -> Plan:
        problem = Problem(snapshot=snapshot, pods=pods, instance_types=types, options=self.options)
        with self._shown(len(pods)):
            plan = await self.planner(problem)
        virtual = {pod.uid for pod in pods if is_virtual(pod)}
        self._time(plan, virtual)
        gauges = self.metrics.scheduler
        gauges.unschedulable.labels(controller=self.name).set(
            sum(not each.retryable for each in plan.unplaced if each.pod_uid not in virtual)
        )
        gauges.ignored.set(plan.stats.ignored)
        return plan

    @contextmanager
    def _shown(self, pods: int) -> Iterator[None]:
        """Show a planning run while it lasts: how many pods, and for how long."""
        began, labels = self.clock.monotonic(), (self.name, f"{self.clock.now():%Y%m%dT%H%M%S%f}")
        gauges = (self.metrics.scheduler.queue_depth, self.metrics.scheduler.unfinished)
        gauges[0].labels(*labels).set(pods)
        gauges[1].labels(*labels).set_function(lambda: self.clock.monotonic() - began)
        try:
            yield
        finally:
            for gauge in gauges:
                gauge.remove(*labels)

    def _time(self, plan: Plan, virtual: set[str]) -> None:
        """Note since when pods are decided on."""
        times, now = self.metrics.pod_times, self.clock.monotonic()
        placed = {uid for claim in plan.claims for uid in claim.pods}
        placed |= {placement.pod_uid for placement in plan.placements}
        for uid in placed - virtual:
            times.decided(uid, now, placed=True)
        for unplaced in plan.unplaced:
            times.decided(unplaced.pod_uid, now, placed=False)

    def _report(self, done: _Round) -> None:
        """Tell pods and pools why they cannot be served."""
        for name, reason in sorted(done.plan.pool_problems.items()):
            pool = self.mirror.pools.get(name)
            if pool is not None:
                self.recorder.publish(
                    Event(
                        regarding=ObjectRef.of(kinds.NODEPOOL, pool.metadata),
                        type=EventType.WARNING,
                        reason="NoCompatibleInstanceTypes",
                        message=reason.short(),
                        dedupe_for=_POOL_DEDUPE,
                    )
                )
        for unplaced in done.plan.unplaced:
            pod = done.pods.get(unplaced.pod_uid)
            if pod is None or unplaced.retryable or is_virtual(pod):
                continue
            why = unplaced.reason.short()
            _log.error("could not schedule pod", Pod=ref(pod.name, pod.namespace), error=why)
            self.recorder.publish(
                _pod_event(
                    pod,
                    "FailedScheduling",
                    f"Failed to schedule pod, {why}",
                    EventType.WARNING,
                    _FAILED_DEDUPE,
                )
            )

        self.recorder.publish(*shortfalls(done.snapshot, done.pods, done.plan))

    async def _carry_out(self, done: _Round) -> None:
        plan, admission = done.plan, done.admission
        if plan.claims:
            _log.info("computed new nodeclaims to fit pods", nodeclaims=len(plan.claims), pods=len(done.pods))
        self._hold(done)
        await asyncio.gather(*(self._launch(planned, done) for planned in admission.now))
        await self._tell_buffers(done)
        until = self.clock.now() + max(_NOMINATION_FLOOR, 2 * self.batch_longest)
        taken = [each for each in plan.placements if not is_virtual(done.pods[each.pod_uid])]
        for node in sorted({placement.node for placement in taken}):
            self.mirror.nominate(node, until)
        for placement in taken:
            pod = done.pods.get(placement.pod_uid)
            if pod is not None and is_provisionable(pod):
                self.recorder.publish(
                    _pod_event(pod, "Nominated", f"Pod should schedule on: node/{placement.node}")
                )

    async def _tell_buffers(self, done: _Round) -> None:
        """Say on each CapacityBuffer whether its room is there; a lost write is made good next round."""
        told = provisioned(dict(self.mirror.buffers), done.snapshot.buffers, done.plan, self.clock)
        for before, after in told:
            try:
                await self.writer.capacity_buffer(before, after)
            except KubeError as exc:
                at = ref(after.name, after.metadata.namespace)
                _log.debug("capacitybuffer could not be told", CapacityBuffer=at, error=str(exc))

    def _hold(self, done: _Round) -> None:
        """Tell pods whose claim waits until capacity that was sold out has been tried by others."""
        held = done.admission.later
        if held:
            _log.info("holding claims back while sold-out capacity is tried again", nodeclaims=len(held))
        for planned in held:
            for uid in planned.pods:
                pod = done.pods.get(uid)
                if pod is not None and is_provisionable(pod):
                    self.recorder.publish(
                        _pod_event(pod, "AwaitingCapacity", _AWAITING.format(planned=planned))
                    )

    async def _launch(self, planned: PlannedClaim, done: _Round) -> None:
        """Create one claim; a failure does not stop the others, its pods come back by themselves."""
        pool = self.mirror.pools.get(planned.pool)
        if pool is None or pool.deleting:
            _log.info("pool went while its nodes were planned", NodePool=ref(planned.pool))
            return
        try:
            name = await self.launcher.launch(planned, pool, reason="provisioned")
        except (KubeError, LimitsExceeded) as exc:
            _log.error("nodeclaim could not be created", NodePool=ref(planned.pool), error=str(exc))
            return
        for uid in planned.pods:
            pod = done.pods.get(uid)
            if pod is not None and is_provisionable(pod):
                self.recorder.publish(
                    _pod_event(pod, "Nominated", f"Pod should schedule on: nodeclaim/{name}")
                )


def pods_to_place(snapshot: Snapshot) -> tuple[Pod, ...]:
    """Return the pods that need a place: pending ones, those of nodes about to go that may move, headroom."""
    found = {pod.uid: pod for pod in snapshot.pods if is_provisionable(pod)}
    for node in snapshot.nodes:
        if node.marked_for_deletion:
            deadline = node.termination_deadline
            for pod in node.pods:
                if will_need_a_place(pod, snapshot.pdbs, snapshot.now, deadline=deadline):
                    found[pod.uid] = pod
    return (*found.values(), *headroom_pods(snapshot))


def _pod_event(
    pod: Pod,
    reason: str,
    message: str,
    type: EventType = EventType.NORMAL,
    dedupe_for: timedelta = timedelta(minutes=2),
) -> Event:
    return Event(
        regarding=ObjectRef(kind=kinds.POD, name=pod.name, namespace=pod.namespace, uid=pod.uid),
        type=type,
        reason=reason,
        message=message,
        dedupe_for=dedupe_for,
    )


def _named(pods: Sequence[Pod]) -> str:
    shown = ", ".join(pod.key for pod in pods[:5])
    return shown + (f" and {len(pods) - 5} other(s)" if len(pods) > 5 else "")

"""Puts the controllers of this package together (spec core/lifecycle §2).

Called by `charpente run`. Says what wakes each controller, how many workers it has and how it backs off.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from controller.cloud.provider import Provider
from controller.cluster import Shell
from controller.kube import Backoff, ControllerSpec, TokenBucket, Watch, kinds
from controller.nodeclaims import waking
from controller.nodeclaims.conditions import DisruptionConditions
from controller.nodeclaims.consistency import Consistency
from controller.nodeclaims.deletion import Deletion
from controller.nodeclaims.drift import Drift
from controller.nodeclaims.ending import Ending
from controller.nodeclaims.eviction import EvictionQueue
from controller.nodeclaims.expiration import Expiration
from controller.nodeclaims.garbage import GarbageCollection
from controller.nodeclaims.health import RegistrationHealth, RegistrationHealthReconciler
from controller.nodeclaims.hydration import ClaimHydration, NodeHydration
from controller.nodeclaims.initialization import Initialization
from controller.nodeclaims.launch import Launch
from controller.nodeclaims.lifecycle import Lifecycle
from controller.nodeclaims.liveness import Liveness
from controller.nodeclaims.malformed import MalformedObjects
from controller.nodeclaims.nodepools import PoolCounter, PoolHash, PoolReadiness, PoolValidation
from controller.nodeclaims.overlays import OverlayValidation
from controller.nodeclaims.podevents import PodEvents, event_keys
from controller.nodeclaims.registration import Registration
from controller.nodeclaims.repair import Repair
from controller.nodeclaims.schedulingconfigs import ConfigStatus, every_config
from controller.nodeclaims.termination import Termination

__all__ = ["build"]

_CLAIM: Final = Watch(kind=kinds.NODECLAIM)
_NODE: Final = Watch(kind=kinds.NODE)
_POOL: Final = Watch(kind=kinds.NODEPOOL)
_LAUNCH_BACKOFF: Final = Backoff(first=timedelta(seconds=1), longest=timedelta(minutes=1))
_DRAIN_BACKOFF: Final = Backoff(first=timedelta(milliseconds=100), longest=timedelta(seconds=10))
_EVICTIONS_PER_WORKER: Final = 1.0
"""A hundred a second for a hundred workers, ten times that at once."""


def build(
    shell: Shell, provider: Provider, *, repair: bool = False, overlays: bool = False
) -> tuple[ControllerSpec, ...]:
    """Return every controller of claims, nodes and pools; the gates are NodeRepair and NodeOverlay."""
    ending = Ending(shell.writer, shell.metrics)
    health = RegistrationHealth(shell.mirror, shell.writer, shell.recorder, shell.clock)
    specs = (
        _lifecycle(shell, provider, ending, health),
        *_ends(shell, provider, ending),
        *_claims(shell, provider),
        *_pools(shell, health),
        _malformed(shell),
    )
    if overlays:
        judge = OverlayValidation(shell.mirror, shell.writer, shell.clock)
        specs += (ControllerSpec(reconciler=judge, watches=(Watch(kind=kinds.NODEOVERLAY),), workers=1),)
    if repair and provider.repair_policies():
        specs += (_repair(shell, provider, ending),)
    return specs


def _lifecycle(
    shell: Shell, provider: Provider, ending: Ending, health: RegistrationHealth
) -> ControllerSpec:
    mirror, writer, clock = shell.mirror, shell.writer, shell.clock
    registration = Registration(
        mirror=mirror,
        writer=writer,
        recorder=shell.recorder,
        metrics=shell.metrics,
        health=health,
        clock=clock,
    )
    lifecycle = Lifecycle(
        mirror=mirror,
        writer=writer,
        parts=(
            Launch(provider, ending, shell.recorder, clock),
            registration,
            Initialization(mirror, writer, clock),
            Liveness(ending, health, clock),
        ),
        deletion=Deletion(
            mirror=mirror,
            writer=writer,
            provider=provider,
            recorder=shell.recorder,
            metrics=shell.metrics,
            clock=clock,
        ),
    )
    return ControllerSpec(
        reconciler=lifecycle,
        watches=(_CLAIM, Watch(kind=kinds.NODE, keys=waking.claims_of_node(mirror))),
        workers=shell.workers(1000, 5000),
        backoff=_LAUNCH_BACKOFF,
    )


def _ends(shell: Shell, provider: Provider, ending: Ending) -> tuple[ControllerSpec, ...]:
    mirror, workers = shell.mirror, shell.workers(100, 5000)
    rate = workers * _EVICTIONS_PER_WORKER
    pace = TokenBucket(shell.clock, rate=rate, burst=int(rate * 10))
    evictions = EvictionQueue(shell.client, shell.recorder, shell.metrics, pace)
    termination = Termination(
        mirror=mirror,
        client=shell.client,
        writer=shell.writer,
        provider=provider,
        evictions=evictions,
        recorder=shell.recorder,
        metrics=shell.metrics,
        clock=shell.clock,
    )
    return (
        ControllerSpec(
            reconciler=evictions, wakers=(evictions.connect,), workers=workers, backoff=_DRAIN_BACKOFF
        ),
        ControllerSpec(
            reconciler=termination,
            watches=(
                _NODE,
                Watch(kind=kinds.NODECLAIM, keys=waking.node_of_claim(mirror)),
                Watch(kind=kinds.POD, keys=waking.node_of_pod(mirror)),
            ),
            workers=workers,
            backoff=_DRAIN_BACKOFF,
        ),
        ControllerSpec(reconciler=Expiration(mirror, ending, shell.clock), watches=(_CLAIM,), workers=1),
        ControllerSpec(reconciler=GarbageCollection(mirror, provider, ending), singleton=True, workers=1),
    )


def _claims(shell: Shell, provider: Provider) -> tuple[ControllerSpec, ...]:
    mirror, writer, clock = shell.mirror, shell.writer, shell.clock
    few, many = shell.workers(10, 1000), shell.workers(1000, 5000)
    node_to_claim = Watch(kind=kinds.NODE, keys=waking.claims_of_node(mirror))
    disruption = DisruptionConditions(mirror=mirror, writer=writer, drift=Drift(provider, clock), clock=clock)
    return (
        ControllerSpec(
            reconciler=disruption,
            watches=(_CLAIM, Watch(kind=kinds.NODEPOOL, keys=waking.claims_of_pool(mirror))),
            workers=few,
        ),
        ControllerSpec(
            reconciler=Consistency(mirror, writer, shell.recorder, clock),
            watches=(_CLAIM, node_to_claim),
            workers=few,
        ),
        ControllerSpec(
            reconciler=PodEvents(mirror, writer, clock),
            watches=(Watch(kind=kinds.POD, keys=event_keys(mirror)),),
            workers=1,
        ),
        ControllerSpec(reconciler=ClaimHydration(mirror, writer), watches=(_CLAIM,), workers=many),
        ControllerSpec(reconciler=NodeHydration(mirror, writer), watches=(_NODE,), workers=many),
    )


def _pools(shell: Shell, health: RegistrationHealth) -> tuple[ControllerSpec, ...]:
    mirror, writer, clock = shell.mirror, shell.writer, shell.clock
    few = shell.workers(10, 1000)
    of_class = Watch(kind=kinds.EC2NODECLASS, keys=waking.pools_of_class(mirror))
    return (
        ControllerSpec(reconciler=PoolHash(mirror, writer), watches=(_POOL,), workers=few),
        ControllerSpec(
            reconciler=PoolReadiness(mirror, writer, clock), watches=(_POOL, of_class), workers=few
        ),
        ControllerSpec(
            reconciler=RegistrationHealthReconciler(mirror, writer, health, clock),
            watches=(_POOL, of_class),
            workers=few,
        ),
        ControllerSpec(reconciler=PoolValidation(mirror, writer, clock), watches=(_POOL,), workers=10),
        ControllerSpec(
            reconciler=ConfigStatus(mirror, writer, clock),
            watches=(
                Watch(kind=kinds.SCHEDULINGCONFIG, keys=every_config(mirror)),
                Watch(kind=kinds.NODEPOOL, keys=every_config(mirror)),
            ),
            workers=1,
        ),
        ControllerSpec(
            reconciler=PoolCounter(mirror, writer, shell.metrics, shell.clock), watches=(_POOL,), workers=few
        ),
    )


def _malformed(shell: Shell) -> ControllerSpec:
    told = MalformedObjects(shell.mirror, shell.client, shell.recorder, shell.clock)
    return ControllerSpec(reconciler=told, wakers=(told.connect,), singleton=True, workers=1)


def _repair(shell: Shell, provider: Provider, ending: Ending) -> ControllerSpec:
    repair = Repair(
        mirror=shell.mirror,
        writer=shell.writer,
        ending=ending,
        provider=provider,
        recorder=shell.recorder,
        metrics=shell.metrics,
        clock=shell.clock,
    )
    return ControllerSpec(reconciler=repair, watches=(_NODE,), workers=shell.workers(10, 1000))

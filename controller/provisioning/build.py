"""Puts the provisioner and its triggers together.

Called by `charpente run`.
"""

from __future__ import annotations

from datetime import timedelta

import attrs

from controller.cloud.provider import Provider
from controller.cluster import Shell
from controller.kube import Backoff, ControllerSpec, Watch, kinds
from controller.provisioning.batcher import Batcher
from controller.provisioning.buffers import BufferResolver
from controller.provisioning.claims import ClaimWriter
from controller.provisioning.provisioner import Launcher, Planner, Provisioner
from controller.provisioning.static import Cost, StaticDeprovisioning, StaticProvisioning, pool_keys
from controller.provisioning.triggers import (
    ClaimTrigger,
    HeadroomTrigger,
    NodeTrigger,
    PodTrigger,
    given_up,
)
from controller.scheduling import Options

__all__ = ["Batching", "build", "build_static"]


@attrs.frozen(kw_only=True)
class Batching:
    """How pods are gathered: quiet time that ends a batch, and its longest time."""

    idle: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(seconds=10)


def build_static(shell: Shell, launcher: ClaimWriter, cost: Cost) -> tuple[ControllerSpec, ...]:
    """Return the two controllers of static pools (gate StaticCapacity)."""
    watches = (Watch(kind=kinds.NODEPOOL), Watch(kind=kinds.NODECLAIM, keys=pool_keys))
    shrink = StaticDeprovisioning(mirror=shell.mirror, writer=shell.writer, clock=shell.clock, cost=cost)
    grow = StaticProvisioning(shell.mirror, launcher, shell.clock)
    return (
        ControllerSpec(reconciler=grow, watches=watches, workers=10),
        ControllerSpec(reconciler=shrink, watches=watches, workers=10),
    )


def build(
    shell: Shell,
    provider: Provider,
    planner: Planner,
    launcher: Launcher,
    *,
    options: Options,
    batching: Batching,
) -> tuple[ControllerSpec, ...]:
    """Return the provisioner and its triggers, CapacityBuffers among them where they are watched."""
    batcher = Batcher(shell.clock, idle=batching.idle, longest=batching.longest)
    provisioner = Provisioner(
        mirror=shell.mirror,
        writer=shell.writer,
        batcher=batcher,
        provider=provider,
        planner=planner,
        launcher=launcher,
        recorder=shell.recorder,
        metrics=shell.metrics,
        clock=shell.clock,
        options=options,
        batch_longest=batching.longest,
    )
    return (
        *_triggers(shell, batcher),
        ControllerSpec(
            reconciler=provisioner,
            singleton=True,
            workers=1,
            backoff=Backoff(first=timedelta(seconds=1), longest=timedelta(seconds=10)),
        ),
    )


def _triggers(shell: Shell, batcher: Batcher) -> tuple[ControllerSpec, ...]:
    workers = shell.workers(10, 1000)
    return (
        ControllerSpec(
            reconciler=PodTrigger(shell.mirror, batcher), watches=(Watch(kind=kinds.POD),), workers=workers
        ),
        ControllerSpec(
            reconciler=NodeTrigger(shell.mirror, batcher), watches=(Watch(kind=kinds.NODE),), workers=workers
        ),
        ControllerSpec(
            reconciler=HeadroomTrigger(shell.mirror, batcher),
            watches=(Watch(kind=kinds.SCHEDULINGCONFIG),),
            workers=1,
        ),
        *_buffers(shell, batcher),
        ControllerSpec(
            reconciler=ClaimTrigger(batcher),
            watches=(Watch(kind=kinds.NODECLAIM, keys=given_up),),
            workers=1,
        ),
    )


def _buffers(shell: Shell, batcher: Batcher) -> tuple[ControllerSpec, ...]:
    if kinds.CAPACITYBUFFER not in shell.mirror.kinds:
        return ()
    resolver = BufferResolver(
        mirror=shell.mirror, client=shell.client, writer=shell.writer, batcher=batcher, clock=shell.clock
    )
    return (ControllerSpec(reconciler=resolver, watches=(Watch(kind=kinds.CAPACITYBUFFER),), workers=10),)

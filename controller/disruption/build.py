"""Puts disruption together for `charpente run`.

The only place that knows which methods there are and in which order they get their turn.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Final

import attrs

from controller.clock import Clock
from controller.disruption.controller import DisruptionLoop, LoopSettings
from controller.disruption.decisions import DecisionLog
from controller.disruption.drift import Drift
from controller.disruption.emptiness import Emptiness
from controller.disruption.history import Journal
from controller.disruption.method import Method
from controller.disruption.multi_node import MultiNode
from controller.disruption.ports import Cluster, InstanceTypes, Launcher, Offload, Publisher
from controller.disruption.queue import CommandQueue
from controller.disruption.single_node import SingleNode
from controller.disruption.static_drift import StaticDrift
from controller.kube import SINGLETON, Backoff, Change, Client, ControllerSpec, Key, Watch, kinds
from controller.observability import Metrics

__all__ = ["Disruption", "build", "methods"]

_LOOP_BACKOFF: Final = Backoff(first=timedelta(milliseconds=100), longest=timedelta(seconds=10))
_QUEUE_BACKOFF: Final = Backoff(first=timedelta(seconds=1), longest=timedelta(seconds=10))


@attrs.frozen(kw_only=True)
class Disruption:
    """Disruption, ready to run."""

    specs: tuple[ControllerSpec, ...]
    decisions: DecisionLog
    loop: DisruptionLoop
    queue: CommandQueue


def methods() -> tuple[Method, ...]:
    """Return the methods in the order of their turns (spec core/disruption §2)."""
    return (Emptiness(), StaticDrift(), Drift(), MultiNode(), SingleNode())


def build(  # noqa: PLR0913 - the seam between this package and the command line
    *,
    client: Client,
    cluster: Cluster,
    instance_types: InstanceTypes,
    launcher: Launcher,
    recorder: Publisher,
    metrics: Metrics,
    clock: Clock,
    random: Random,
    offload: Offload,
    settings: LoopSettings,
    nomination: timedelta,
) -> Disruption:
    """Return the reconcilers of disruption and what they share.

    `nomination` is how long a node that is to take pods is not disrupted; `offload` runs planning outside
    the event loop.
    """
    decisions, journal = DecisionLog(), Journal()
    queue = CommandQueue(
        client=client,
        cluster=cluster,
        launcher=launcher,
        recorder=recorder,
        metrics=metrics,
        clock=clock,
        random=random,
        decisions=decisions,
        journal=journal,
        nomination=nomination,
    )
    loop = DisruptionLoop(
        client=client,
        cluster=cluster,
        instance_types=instance_types,
        queue=queue,
        methods=methods(),
        recorder=recorder,
        metrics=metrics,
        clock=clock,
        offload=offload,
        decisions=decisions,
        journal=journal,
        settings=settings,
    )
    specs = (
        ControllerSpec(reconciler=loop, workers=1, backoff=_LOOP_BACKOFF, singleton=True),
        ControllerSpec(
            reconciler=queue,
            watches=(Watch(kind=kinds.NODECLAIM, keys=_wakes_queue),),
            workers=1,
            backoff=_QUEUE_BACKOFF,
            singleton=True,
        ),
    )
    return Disruption(specs=specs, decisions=decisions, loop=loop, queue=queue)


def _wakes_queue(change: Change) -> tuple[Key, ...]:
    """Wake the queue when a claim changes: a replacement may have become ready, or gone."""
    return (SINGLETON,) if change.old is not None else ()

"""Says whom a SchedulingConfig governs, and what is wrong with it (design: SchedulingConfig).

Reconciles SchedulingConfigs, woken by changes of NodePools and of other configs. Writes status only; the
engine decides by the same `governing_config` and never reads this status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import attrs

from controller.clock import Clock
from controller.cluster import Mirror, Writer, conditions_of, with_conditions
from controller.kube import DONE, Change, Key, Requeue
from controller.scheduling import governing_config, governs
from framework.api import NodePool, SchedulingConfig
from framework.api.conditions import READY
from framework.api.cron import Cron, InvalidCron

__all__ = ["ConfigStatus", "every_config"]

_SHOWN: Final = 5


class ConfigStatus:
    """Keeps status.nodePools and the condition Ready."""

    name = "schedulingconfig"

    def __init__(self, mirror: Mirror, writer: Writer, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._writer = writer
        self._clock = clock

    async def reconcile(self, key: Key) -> Requeue:
        """Judge one config."""
        config = self._mirror.scheduling_configs.get(key.name)
        if config is None or config.deleting:
            return DONE
        governed: list[str] = []
        taken: list[str] = []
        for pool, governor in self._governors(config):
            if governor is config:
                governed.append(pool.name)
            else:
                taken.append(f"the older SchedulingConfig {governor.name} governs NodePool {pool.name}")
        status = attrs.evolve(config.status, node_pools=tuple(governed))
        conditions, now = conditions_of(config), self._clock.now()
        problems = tuple(_unreadable_schedules(config))
        if taken:
            conditions = conditions.set_false(READY, "Conflict", _listed(taken), now=now)
        elif problems:
            conditions = conditions.set_false(READY, "ScheduleInvalid", _listed(problems), now=now)
        else:
            text = "" if governed else f"no NodePool names {_class_of(config)} and is selected"
            conditions = conditions.set_true(READY, message=text, now=now)
        after = with_conditions(attrs.evolve(config, status=status), conditions)
        await self._writer.scheduling_config(config, after)
        return DONE

    def _governors(self, config: SchedulingConfig) -> Iterator[tuple[NodePool, SchedulingConfig]]:
        """Yield the pools that the config could govern, with the config that does, by name."""
        configs = tuple(self._mirror.scheduling_configs.values())
        for _, pool in sorted(self._mirror.pools.items()):
            governor = governing_config(pool, configs) if governs(config, pool) else None
            if governor is not None:
                yield pool, governor


def every_config(mirror: Mirror) -> Callable[[Change], Iterable[Key]]:
    """Return the mapping from a new, changed or gone pool or config to all configs."""

    def keys(change: Change) -> Iterable[Key]:
        old, new = change.old, change.new
        if old is not None and new is not None:
            same_labels = old.metadata.labels == new.metadata.labels
            if same_labels and old.metadata.generation == new.metadata.generation:
                return ()
        return [Key(name=name) for name in sorted(mirror.scheduling_configs)]

    return keys


def _unreadable_schedules(config: SchedulingConfig) -> Iterator[str]:
    for headroom in config.spec.headroom:
        if headroom.schedule is not None:
            try:
                Cron.parse(headroom.schedule)
            except InvalidCron as exc:
                yield f"spec.headroom[{headroom.name}].schedule: {exc}; give five cron fields or a macro"


def _class_of(config: SchedulingConfig) -> str:
    reference = config.spec.node_class_ref
    return f"{reference.kind} {reference.name}"


def _listed(facts: Iterable[str]) -> str:
    found = list(facts)
    more = len(found) - _SHOWN
    return "; ".join(found[:_SHOWN]) + (f" and {more} more" if more > 0 else "")

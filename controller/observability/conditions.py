"""Status conditions as metrics and events: claims, pools, nodes, classes, configs (observability §1.4, §2).

Started by `charpente run` on the leader. Follows the mirror: transitions are counted and told as events
when they are seen; what holds now is read at each scrape, so nothing outlives its object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import attrs
from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller.clock import Clock
from controller.cluster import Mirror
from controller.kube import Change, Event, Kind, ObjectRef, Recorder, kinds
from controller.observability.metrics import Metrics
from framework.api import labels

__all__ = ["ConditionObserver"]

_BUCKETS: Final = tuple(0.5 * 2**power for power in range(15))
_KINDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    kinds.NODECLAIM: (labels.EC2NODECLASS, labels.NODEPOOL),
    kinds.NODEPOOL: (),
    kinds.NODE: (labels.EC2NODECLASS, labels.NODEPOOL, labels.INITIALIZED),
    kinds.EC2NODECLASS: (),
    kinds.SCHEDULINGCONFIG: (),
    kinds.CAPACITYBUFFER: (),
}
"""What is followed where the mirror has it, with the object labels that become metric labels."""


@attrs.frozen
class _Condition:
    type: str
    status: str
    reason: str
    since: datetime | None


class ConditionObserver(Collector):
    """A collector of what holds now, and a listener that counts what changes."""

    def __init__(self, mirror: Mirror, metrics: Metrics, recorder: Recorder, clock: Clock) -> None:
        """Register with the metrics; `follow` starts listening."""
        self._mirror = mirror
        self._recorder = recorder
        self._clock = clock
        self._kinds = {kind: extra for kind, extra in _KINDS.items() if kind in mirror.kinds}
        self._transitions = {
            kind: _Transitions(f"operator_{kind.kind.lower()}_", tuple(map(_label, extra)), metrics)
            for kind, extra in self._kinds.items()
        }
        # The names without the kind are deprecated, yet on many boards.
        self._common = _Transitions("operator_", ("group", "kind"), metrics)
        metrics.registry.register(self)

    def follow(self) -> None:
        """Listen to the changes of every kind from now on."""
        for kind in self._kinds:
            self._mirror.subscribe(kind, self._changed)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: names depend on no object, yet need no check."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges of every followed kind."""
        now = self._clock.now()
        common = _Gauges("operator_", ("group", "kind"))
        for kind, extra in self._kinds.items():
            own = _Gauges(f"operator_{kind.kind.lower()}_", tuple(map(_label, extra)))
            for obj in tuple(self._mirror.store(kind).objects.values()):
                if self._ours(kind, obj):
                    own.add(obj, _extra_values(obj, extra), now)
                    if kind is not kinds.NODE:
                        common.add(obj, (kind.group, kind.kind), now)
            yield from own.families
        yield from common.families

    def _ours(self, kind: Kind, obj: Any) -> bool:
        return kind is not kinds.NODE or self._mirror.is_our_node(obj)

    def _changed(self, change: Change) -> None:
        if change.old is None or not self._ours(change.kind, change.current):
            return
        if change.new is None:
            self._gone(change)
            return
        before = {each.type: each for each in _conditions(change.old)}
        for after in _conditions(change.new):
            old = before.get(after.type)
            if old is not None and old.status != after.status:
                self._transition(change, old, after)

    def _transition(self, change: Change, old: _Condition, new: _Condition) -> None:
        since = (new.since or self._clock.now()) - (old.since or self._clock.now())
        extra = self._kinds[change.kind]
        self._transitions[change.kind].observe(_extra_values(change.new, extra), old, new, since)
        if change.kind is not kinds.NODE:
            self._common.observe((change.kind.group, change.kind.kind), old, new, since)
            self._recorder.publish(
                Event(
                    regarding=ObjectRef.of(change.kind, change.new.metadata),
                    reason=new.type,
                    message=f"Status condition transitioned, Type: {new.type}, Status: {old.status} -> "
                    f"{new.status}, Reason: {new.reason}",
                    dedupe_for=timedelta(),
                )
            )

    def _gone(self, change: Change) -> None:
        asked = change.old.metadata.deletion_timestamp
        if asked is None:
            return
        spent, extra = self._clock.now() - asked, self._kinds[change.kind]
        self._transitions[change.kind].terminated(_extra_values(change.old, extra), spent)
        if change.kind is not kinds.NODE:
            self._common.terminated((change.kind.group, change.kind.kind), spent)


class _Transitions:
    """Counters and histograms under one prefix; `own` are the labels that its objects give."""

    def __init__(self, prefix: str, own: tuple[str, ...], metrics: Metrics) -> None:
        self._count = Counter(
            f"{prefix}status_condition_transitions",
            "Transitions of status conditions",
            ("type", "status", "reason", *own),
            registry=metrics.registry,
        )
        self._seconds = Histogram(
            f"{prefix}status_condition_transition_seconds",
            "How long a status condition had its status before",
            ("type", "status", *own),
            buckets=_BUCKETS,
            registry=metrics.registry,
        )
        self._termination = Histogram(
            f"{prefix}termination_duration_seconds",
            "From the deletion request to the end",
            own,
            buckets=_BUCKETS,
            registry=metrics.registry,
        )

    def observe(self, own: tuple[str, ...], old: _Condition, new: _Condition, spent: timedelta) -> None:
        self._count.labels(new.type, new.status, new.reason, *own).inc()
        self._seconds.labels(new.type, old.status, *own).observe(max(0.0, spent.total_seconds()))

    def terminated(self, own: tuple[str, ...], spent: timedelta) -> None:
        series = self._termination.labels(*own) if own else self._termination
        series.observe(max(0.0, spent.total_seconds()))


class _Gauges:
    """What holds now, under one prefix; `own` are the labels beside those that every object has."""

    def __init__(self, prefix: str, own: tuple[str, ...]) -> None:
        names = ("namespace", "name", "type", "status", "reason", *own)
        self._count = GaugeMetricFamily(f"{prefix}status_condition_count", "1 per condition", labels=names)
        self._current = GaugeMetricFamily(
            f"{prefix}status_condition_current_status_seconds", "How long it has had its status", labels=names
        )
        self._ending = GaugeMetricFamily(
            f"{prefix}termination_current_time_seconds",
            "How long deletion has been asked for",
            labels=("namespace", "name", *own),
        )

    @property
    def families(self) -> tuple[Metric, ...]:
        return (self._count, self._current, self._ending)

    def add(self, obj: Any, own: tuple[str, ...], now: datetime) -> None:
        place = (obj.metadata.namespace or "", obj.metadata.name)
        for each in _conditions(obj):
            series = (*place, each.type, each.status, each.reason, *own)
            self._count.add_metric(series, 1)
            if each.since is not None:
                self._current.add_metric(series, max(0.0, (now - each.since).total_seconds()))
        asked = obj.metadata.deletion_timestamp
        if asked is not None:
            self._ending.add_metric((*place, *own), max(0.0, (now - asked).total_seconds()))


def _conditions(obj: Any) -> Iterator[_Condition]:
    found = obj.status.conditions if hasattr(obj, "status") else obj.conditions
    for each in found:
        yield _Condition(each.type, str(each.status), each.reason, each.last_transition_time)


def _extra_values(obj: Any, extra: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(obj.metadata.labels.get(key, "") for key in extra)


def _label(key: str) -> str:
    return "".join("_" if letter in "/.-" else letter for letter in key)

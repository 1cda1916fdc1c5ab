"""Status conditions and the machinery that keeps a root condition true to its dependents.

Called by every controller that writes a status. Pure: takes the present conditions and the time,
returns the next ones. Spec: core/api §7.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol, Self

import attrs

from framework.api.metadata import ObjectMeta
from framework.api.schema import field
from framework.api.wire import Wire

__all__ = [
    "AWAITING_RECONCILIATION",
    "READY",
    "VALIDATION_SUCCEEDED",
    "Condition",
    "ConditionSet",
    "ConditionStatus",
    "get",
    "is_true",
]

READY: Final = "Ready"
VALIDATION_SUCCEEDED: Final = "ValidationSucceeded"
"""What several kinds say of themselves; False also when the object cannot be read at all."""
AWAITING_RECONCILIATION: Final = "AwaitingReconciliation"
_AWAITING_MESSAGE: Final = "object is awaiting reconciliation"


class ConditionStatus(StrEnum):
    """The three states of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@attrs.frozen(kw_only=True)
class Condition(Wire):
    """One aspect of an object's state, and since when."""

    type: str = field(
        "What the condition is about.",
        max_length=316,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    )
    status: ConditionStatus = field("True, False or Unknown.")
    reason: str = field(
        "One word that says why, for programs.",
        default="",
        required=True,
        min_length=1,
        max_length=1024,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    )
    message: str = field("Why, for people.", default="", required=True, max_length=32768)
    observed_generation: int = field(
        "Generation of the object that the condition was set for.", default=0, minimum=0, format="int64"
    )
    last_transition_time: datetime | None = field(
        "When the status last changed from one value to another.", default=None, required=True
    )


Conditions = tuple[Condition, ...]


def get(conditions: Iterable[Condition], type: str) -> Condition | None:
    """Return the condition of that type, or None."""
    return next((condition for condition in conditions if condition.type == type), None)


def is_true(conditions: Iterable[Condition], type: str, *, generation: int | None = None) -> bool:
    """Return whether the condition is True, and current when a generation is given."""
    found = get(conditions, type)
    if found is None or found.status is not ConditionStatus.TRUE:
        return False
    return generation is None or found.observed_generation == generation


class HasConditions(Protocol):
    """A status with conditions."""

    @property
    def conditions(self) -> Conditions:
        """Return the stored conditions."""
        ...


class Conditioned(Protocol):
    """An object with metadata and a status with conditions."""

    @property
    def metadata(self) -> ObjectMeta:
        """Return the object's metadata."""
        ...

    @property
    def status(self) -> HasConditions:
        """Return the object's status."""
        ...


@attrs.frozen(kw_only=True)
class ConditionSet:
    """The conditions of one object and what it takes to change them; every change gives a new set.

    The root is recomputed from the dependents, if there are any, after each change. A dependent is
    healthy when it is True at the object's current generation.
    """

    conditions: Conditions
    """Stored order: oldest transition first, the root last."""
    generation: int
    dependents: tuple[str, ...]
    root: str = READY
    created: datetime | None = None
    deleting: bool = False

    @classmethod
    def of(cls, obj: Conditioned, *, dependents: tuple[str, ...], root: str = READY) -> Self:
        """Return the set of an object, with the root and every missing dependent Unknown since creation."""
        present = {condition.type for condition in obj.status.conditions}
        meta = obj.metadata
        missing = tuple(
            Condition(
                type=str(type),
                status=ConditionStatus.UNKNOWN,
                reason=AWAITING_RECONCILIATION,
                message=_AWAITING_MESSAGE,
                observed_generation=meta.generation,
                last_transition_time=meta.creation_timestamp,
            )
            for type in (*dependents, root)
            if type not in present
        )
        return cls(
            conditions=_ordered((*obj.status.conditions, *missing), root),
            generation=meta.generation,
            dependents=dependents,
            root=root,
            created=meta.creation_timestamp,
            deleting=meta.deletion_timestamp is not None,
        )

    def get(self, type: str) -> Condition | None:
        """Return the condition of that type, or None."""
        return get(self.conditions, type)

    def is_true(self, type: str) -> bool:
        """Return whether the condition is True at the current generation."""
        return is_true(self.conditions, type, generation=self.generation)

    def set(
        self, type: str, status: ConditionStatus | str, reason: str = "", message: str = "", *, now: datetime
    ) -> Self:
        """Return the set with one condition set at the current generation.

        The transition time moves only when the status does. Without a reason the type is the reason.
        """
        changed = self._store(type, ConditionStatus(status), reason or type, message, now)
        if self.deleting:
            current = tuple(attrs.evolve(c, observed_generation=self.generation) for c in changed.conditions)
            changed = attrs.evolve(changed, conditions=current)
        return changed._with_root(now)

    def set_true(self, type: str, reason: str = "", message: str = "", *, now: datetime) -> Self:
        """Return the set with that condition True."""
        return self.set(type, ConditionStatus.TRUE, reason, message, now=now)

    def set_false(self, type: str, reason: str, message: str = "", *, now: datetime) -> Self:
        """Return the set with that condition False."""
        return self.set(type, ConditionStatus.FALSE, reason, message, now=now)

    def set_unknown(self, type: str, reason: str, message: str = "", *, now: datetime) -> Self:
        """Return the set with that condition Unknown."""
        return self.set(type, ConditionStatus.UNKNOWN, reason, message, now=now)

    def clear(self, type: str) -> Self:
        """Return the set without that condition; raises ValueError for the root and its dependents."""
        if type == self.root or type in self.dependents:
            raise ValueError(f"{type} decides {self.root} and cannot be cleared")
        return attrs.evolve(self, conditions=tuple(c for c in self.conditions if c.type != type))

    def _store(self, type: str, status: ConditionStatus, reason: str, message: str, now: datetime) -> Self:
        before = self.get(type)
        moved = before is None or before.status is not status
        after = attrs.evolve(
            before or Condition(type=str(type), status=status),
            status=status,
            reason=str(reason),
            message=message,
            observed_generation=self.generation,
            last_transition_time=now if moved or before is None else before.last_transition_time,
        )
        others = tuple(c for c in self.conditions if c.type != type)
        return attrs.evolve(self, conditions=_ordered((*others, after), self.root))

    def _with_root(self, now: datetime) -> Self:
        if not self.dependents:
            return self
        found = [get(self.conditions, type) for type in self.dependents]
        unhealthy = [c for c in found if c is not None and not self.is_true(c.type)]
        unhealthy.sort(key=lambda c: (-_instant(c), c.type))
        message = ", ".join(f"{c.type}={c.status}" for c in unhealthy)
        if not unhealthy:
            return self._store(self.root, ConditionStatus.TRUE, self.root, "", now)
        failed = any(
            c.status is ConditionStatus.FALSE and c.observed_generation == self.generation for c in unhealthy
        )
        if failed:
            return self._store(self.root, ConditionStatus.FALSE, "UnhealthyDependents", message, now)
        return self._store(self.root, ConditionStatus.UNKNOWN, "ReconcilingDependents", message, now)


def _instant(condition: Condition) -> float:
    stamp = condition.last_transition_time
    return stamp.timestamp() if stamp is not None else 0.0


def _ordered(conditions: Conditions, root: str) -> Conditions:
    """Return the stored order: oldest transition first, ties by type, root last."""
    return tuple(sorted(conditions, key=lambda c: (c.type == root, _instant(c), c.type)))

"""Faults that can be switched on: errors and delays by call, and pools without capacity.

Rules are added through the control endpoints and looked up by the application (faults) and by launches
(shortages). Patterns are shell-style wildcards; `*` is the default of every pattern.
"""

from __future__ import annotations

import threading
from fnmatch import fnmatchcase

import attrs

__all__ = ["Fault", "Faults", "Shortage", "Shortages"]

CAPACITY_CODE = "InsufficientInstanceCapacity"


@attrs.frozen(kw_only=True)
class Fault:
    """Answer calls with an error (when `code` is set) after a delay."""

    service: str = "*"
    action: str = "*"
    region: str = "*"
    code: str | None = None
    message: str | None = None
    status: int | None = None
    count: int | None = None
    """How many more calls it hits; None = until cleared."""
    delay_seconds: float = 0.0
    """Seconds before the call is carried out (or refused)."""
    withheld_seconds: float = 0.0
    """Seconds between the call being carried out and its answer: time for the caller to die in."""

    def hits(self, service: str, action: str, region: str) -> bool:
        """Whether the rule is about this call and not used up."""
        return self.count != 0 and all(
            fnmatchcase(value, pattern)
            for value, pattern in ((service, self.service), (action, self.action), (region, self.region))
        )


@attrs.define
class Faults:
    """The fault rules, first match wins."""

    _rules: list[Fault] = attrs.field(factory=list)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def add(self, rule: Fault) -> None:
        """Append a rule."""
        with self._lock:
            self._rules.append(rule)

    def take(self, service: str, action: str, region: str) -> Fault | None:
        """Return the rule for a call, counting its use, or None."""
        with self._lock:
            for place, rule in enumerate(self._rules):
                if rule.hits(service, action, region):
                    if rule.count is not None:
                        self._rules[place] = attrs.evolve(rule, count=rule.count - 1)
                    return rule
        return None

    def clear(self) -> None:
        """Remove all rules."""
        with self._lock:
            self._rules.clear()


@attrs.frozen(kw_only=True)
class Shortage:
    """A set of capacity pools that can give at most `remaining` more instances."""

    instance_type: str = "*"
    zone: str = "*"
    capacity_type: str = "*"
    code: str = CAPACITY_CODE
    message: str | None = None
    remaining: int = 0

    def covers(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        """Whether the pool belongs to the shortage."""
        return all(
            fnmatchcase(value, pattern)
            for value, pattern in (
                (instance_type, self.instance_type),
                (zone, self.zone),
                (capacity_type, self.capacity_type),
            )
        )

    def explained(self, instance_type: str, zone: str) -> str:
        """Return the message EC2 gives for the pool."""
        return self.message or (
            f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you "
            f"requested ({zone}). Our system will be working on provisioning additional capacity."
        )


@attrs.define
class Shortages:
    """The shortages in force. Used only under the world's lock."""

    _rules: list[Shortage] = attrs.field(factory=list)

    def add(self, rule: Shortage) -> None:
        """Append a shortage; for a pool covered by several, the first counts."""
        self._rules.append(rule)

    def find(self, instance_type: str, zone: str, capacity_type: str) -> Shortage | None:
        """Return the shortage of a pool, or None when its capacity is unlimited."""
        return next((r for r in self._rules if r.covers(instance_type, zone, capacity_type)), None)

    def take(self, shortage: Shortage, count: int) -> None:
        """Note that `count` instances of what remained were launched."""
        place = self._rules.index(shortage)
        self._rules[place] = attrs.evolve(shortage, remaining=shortage.remaining - count)

    def clear(self) -> None:
        """Remove all shortages."""
        self._rules.clear()

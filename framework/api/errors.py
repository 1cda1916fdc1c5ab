"""What can be wrong with something a user wrote, as values.

    CharpenteError
    └── UserError            the user must mend it; never retried
        └── InvalidField     one field of one object

Raised by every `from_wire`; the controllers turn it into a condition and an event on that object,
the command line into one line. Never raised for trouble with the network or the cloud.
"""

from __future__ import annotations

import attrs

__all__ = ["CharpenteError", "InvalidField", "Problem", "UserError"]


class CharpenteError(Exception):
    """Root of every error this project raises on purpose."""


class UserError(CharpenteError):
    """Something the user wrote cannot work; trying again does not help."""


@attrs.frozen(kw_only=True, init=True, eq=True, slots=False)
class InvalidField(UserError):
    """One field of one object does not hold what it must: object, field, problem and remedy."""

    obj: str
    """Kind and name, such as `NodePool/web`."""
    field: str
    """Path from the object's root in wire spelling, such as `spec.limits.cpu`."""
    problem: str
    remedy: str

    def __str__(self) -> str:
        """Return one line: `NodePool/web: spec.limits.cpu is negative (-4); remove it or set 0 or more`."""
        return f"{self.obj}: {self.field} {self.problem}; {self.remedy}"


@attrs.frozen(kw_only=True)
class Problem:
    """One thing wrong with an object, as a value: where, what, and how to mend it."""

    field: str
    """Path from the object's root in wire spelling."""
    problem: str
    remedy: str

    def __str__(self) -> str:
        """Return one line without the object: `spec.weight is above 100; lower it`."""
        return f"{self.field} {self.problem}; {self.remedy}"

"""Results remembered by the identity of what they were made from.

For tables made of large frozen inputs (hundreds of instance types) that many runs on one picture share:
comparing the inputs would cost more than making the table. Holds on to the inputs, so an identity is
never reused while it counts. Changes no answer, only the time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

__all__ = ["IdentityMemo"]

V = TypeVar("V")
_KEPT: Final = 64
"""Results remembered: a few per pool of a large cluster."""


class IdentityMemo(Generic[V]):
    """The last results, the least recently used forgotten first."""

    def __init__(self, kept: int = _KEPT) -> None:
        """Remember that many."""
        self._kept = kept
        self._known: OrderedDict[tuple[int, ...], tuple[tuple[object, ...], V]] = OrderedDict()

    def get(self, inputs: tuple[object, ...], make: Callable[[], V]) -> V:
        """Return what was made from these very objects, or make it now."""
        key = tuple(map(id, inputs))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (inputs, make())
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
        return found[1]

"""Kubernetes quantities as exact integers, with the user's spelling kept.

Called by every kind that holds resource maps and by whoever reads pod requests. Owns parsing,
rounding and canonical formatting; never uses floats. Spec: core/api §2.2.

Engine units: `cpu` counts milli-cores, everything else whole base units (bytes or counts),
rounded up when a quantity is finer than that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache, total_ordering
from types import MappingProxyType
from typing import Final

import attrs

__all__ = [
    "QUANTITY_PATTERN",
    "Quantity",
    "cached_quantity",
    "format_resources",
    "parse_quantity",
    "parse_resources",
    "resource_units",
]

QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""The pattern that the Kubernetes API publishes for quantities."""

_NANO: Final = 10**9
_SHAPE: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?"
)
_BINARY: Final = MappingProxyType(
    {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
)
_DECIMAL: Final = MappingProxyType(
    {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
)
_LARGEST_NANO: Final = (2**63 - 1) * _NANO


@total_ordering
@attrs.frozen(eq=False, repr=False)
class Quantity:
    """An exact amount in nano-units; equal when the amounts are, whatever the spelling."""

    nano: int
    wire: str | int
    """As the user wrote it; what is written back."""

    def milli(self) -> int:
        """Return the amount in thousandths, rounded away from zero."""
        return _divide_up(self.nano, 10**6)

    def value(self) -> int:
        """Return the amount in whole units, rounded away from zero."""
        return _divide_up(self.nano, _NANO)

    def units(self, resource: str) -> int:
        """Return the amount in the engine's unit of that resource: milli for `cpu`, whole otherwise."""
        return self.milli() if resource == "cpu" else self.value()

    def canonical(self) -> str:
        """Return one spelling per amount: whole units, else milli, micro or nano (`1000m` gives `1`)."""
        for size, suffix in ((_NANO, ""), (10**6, "m"), (10**3, "u"), (1, "n")):
            if self.nano % size == 0:
                return f"{self.nano // size}{suffix}"
        raise AssertionError("every integer is a multiple of one")

    def __str__(self) -> str:
        """Return the user's spelling."""
        return str(self.wire)

    def __repr__(self) -> str:
        """Return a form that names the type."""
        return f"Quantity({self.wire!r})"

    def __eq__(self, other: object) -> bool:
        """Compare amounts, not spellings."""
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        """Compare amounts."""
        return self.nano < other.nano

    def __hash__(self) -> int:
        """Hash the amount."""
        return hash(self.nano)


def parse_quantity(raw: str | int | Quantity) -> Quantity:
    """Return the exact amount of a wire quantity; amounts finer than nano are rounded away from zero.

    Amounts over 2^63-1 whole units count as that many, as in Kubernetes.
    Raises ValueError, with the text, when it is not a quantity.
    """
    return raw if isinstance(raw, Quantity) else cached_quantity(raw)


@lru_cache(maxsize=65536, typed=True)
def cached_quantity(raw: str | int) -> Quantity:
    """Return the exact amount of text or a number, the same object for the same spelling."""
    if isinstance(raw, bool) or not isinstance(raw, (str, int)):
        raise ValueError(f"{raw!r} is not a quantity")
    text = str(raw)
    match = _SHAPE.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise ValueError(f"{text!r} is not a quantity")
    digits, scale = match["whole"] + (match["part"] or ""), -len(match["part"] or "")
    suffix = match["suffix"] or ""
    amount = int(digits) * _NANO
    if suffix in _BINARY:
        amount *= _BINARY[suffix]
    elif suffix in _DECIMAL:
        scale += _DECIMAL[suffix]
    else:
        scale += int(suffix[1:])
    nano = amount * 10**scale if scale >= 0 else _divide_up(amount, 10**-scale)
    nano = min(nano, _LARGEST_NANO)
    return Quantity(-nano if match["sign"] == "-" else nano, raw)


def parse_resources(raw: Mapping[str, str | int | Quantity] | None) -> Mapping[str, int]:
    """Return a resource map in engine units: `cpu` in milli-cores, others whole, both rounded up.

    Raises ValueError naming the resource whose amount is not a quantity.
    """
    units: dict[str, int] = {}
    for name, amount in (raw or {}).items():
        try:
            units[name] = parse_quantity(amount).units(name)
        except ValueError as exc:
            raise ValueError(f"{name}: {exc}") from exc
    return MappingProxyType(units)


resource_units = parse_resources
"""The same under the name that reads well on parsed maps (`resource_units(claim.status.allocatable)`)."""


def format_resources(units: Mapping[str, int]) -> dict[str, str]:
    """Return engine units in wire spelling, sorted by name: `1930m` or `2` cpu, `6903Mi` when exact."""
    return {name: _format(name, amount) for name, amount in sorted(units.items())}


def _format(name: str, amount: int) -> str:
    if name == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if name != "memory" and not name.startswith(("ephemeral-storage", "hugepages-")):
        return str(amount)
    for suffix in ("Gi", "Mi", "Ki"):
        if amount and amount % _BINARY[suffix] == 0:
            return f"{amount // _BINARY[suffix]}{suffix}"
    return str(amount)


def _divide_up(amount: int, divisor: int) -> int:
    """Divide, rounding away from zero."""
    return -(-amount // divisor) if amount >= 0 else amount // divisor

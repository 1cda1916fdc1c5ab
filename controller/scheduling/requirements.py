"""The algebra of label requirements (spec core/scheduling §5).

Used by the engine and by every controller that compares labels with what is allowed. Owns
canonical form, intersection and compatibility; knows nothing about pods or instance types.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Final

import attrs

from framework.api import labels
from framework.api.requirement_spec import Operator, RequirementSpec

__all__ = ["EMPTY", "Requirement", "Requirements", "parse_integer"]

_LARGEST: Final = 2**63 - 1
_SHOWN_VALUES: Final = 5
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NO_VALUES: Final[frozenset[str]] = frozenset()


@lru_cache(maxsize=65536)
def parse_integer(text: str) -> int | None:
    """Return the whole number that a label value spells, or None."""
    return int(text) if _INTEGER.fullmatch(text) else None


@attrs.frozen(kw_only=True, slots=False, cache_hash=True)
class Requirement:
    """The values one label may have, in canonical form.

    `complement` means every value but `values`; `gte` and `lte` bound it, both inclusive, and exist
    only with `complement`.
    """

    key: str
    complement: bool
    values: frozenset[str] = _NO_VALUES
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None

    @classmethod
    def new(
        cls, key: str, operator: Operator | str, values: Iterable[str] = (), min_values: int | None = None
    ) -> Requirement:
        """Return the canonical form; deprecated keys become today's (core/api §9).

        Raises ValueError for an unknown operator or a bound that is not one whole number.
        """
        key = labels.NORMALISED.get(key, key)
        operator = Operator(operator)
        given = frozenset(values)
        match operator:
            case Operator.IN:
                return cls(key=key, complement=False, values=given, min_values=min_values)
            case Operator.NOT_IN:
                return cls(key=key, complement=True, values=given, min_values=min_values)
            case Operator.EXISTS:
                return cls(key=key, complement=True, min_values=min_values)
            case Operator.DOES_NOT_EXIST:
                return cls(key=key, complement=False, min_values=min_values)
            case _:
                return cls._bound(key, operator, given, min_values)

    @classmethod
    def _bound(
        cls, key: str, operator: Operator, values: frozenset[str], min_values: int | None
    ) -> Requirement:
        bounds = [parse_integer(value) for value in values]
        if len(bounds) != 1 or bounds[0] is None:
            raise ValueError(f"{key} {operator} needs exactly one whole number, not {sorted(values)}")
        bound = bounds[0]
        if operator is Operator.GT and bound >= _LARGEST:
            return cls(key=key, complement=False)
        if operator in (Operator.GT, Operator.GTE):
            gte = bound + (operator is Operator.GT)
            return cls(key=key, complement=True, gte=gte, min_values=min_values)
        lte = bound - (operator is Operator.LT)
        return cls(key=key, complement=True, lte=lte, min_values=min_values)

    @classmethod
    def from_spec(cls, spec: RequirementSpec) -> Requirement:
        """Return the canonical form of a manifest's entry; raises ValueError as `new` does."""
        return cls.new(spec.key, spec.operator, spec.values, spec.min_values)

    @cached_property
    def operator(self) -> Operator:
        """The operator it reads as: bounds are a flavour of Exists."""
        if self.complement:
            return Operator.NOT_IN if self.values else Operator.EXISTS
        return Operator.IN if self.values else Operator.DOES_NOT_EXIST

    @cached_property
    def is_negative(self) -> bool:
        """Whether a node without the label satisfies it."""
        return self.operator in (Operator.NOT_IN, Operator.DOES_NOT_EXIST)

    def has(self, value: str) -> bool:
        """Tell whether the label may have this value."""
        if not self._in_bounds(value, self.gte, self.lte):
            return False
        return (value not in self.values) if self.complement else (value in self.values)

    def intersect(self, other: Requirement) -> Requirement:
        """Return what both allow, for the same key; empty becomes DoesNotExist."""
        if self == other:
            return self
        gte = _tightest(max, self.gte, other.gte)
        lte = _tightest(min, self.lte, other.lte)
        min_values = _tightest(max, self.min_values, other.min_values)
        if gte is not None and lte is not None and gte > lte:
            return Requirement(key=self.key, complement=False, min_values=min_values)
        complement = self.complement and other.complement
        if complement:
            values = self.values | other.values
        elif self.complement:
            values = other.values - self.values
        elif other.complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        if gte is not None or lte is not None:
            values = frozenset(value for value in values if self._in_bounds(value, gte, lte))
        if not complement:
            gte = lte = None
        return Requirement(
            key=self.key, complement=complement, values=values, gte=gte, lte=lte, min_values=min_values
        )

    def overlaps(self, other: Requirement) -> bool:
        """Tell whether some value satisfies both."""
        gte = _tightest(max, self.gte, other.gte)
        lte = _tightest(min, self.lte, other.lte)
        if gte is not None and lte is not None and gte > lte:
            return False
        if self.complement and other.complement:
            return True
        few, many = (self, other) if not self.complement else (other, self)
        if not many.complement and len(many.values) < len(few.values):
            few, many = many, few
        return any(many.has(value) and self._in_bounds(value, gte, lte) for value in few.values)

    @staticmethod
    def _in_bounds(value: str, gte: int | None, lte: int | None) -> bool:
        if gte is None and lte is None:
            return True
        number = parse_integer(value)
        if number is None:
            return False
        return (gte is None or number >= gte) and (lte is None or number <= lte)

    def to_specs(self) -> tuple[RequirementSpec, ...]:
        """Return the manifest's entries: one, or `Gte` and `Lte` when both bounds are set (§5).

        Values excluded from a bounded range are lost: the wire form has no way to say both.
        """
        bounds = [(Operator.GTE, self.gte), (Operator.LTE, self.lte)]
        entries = [
            RequirementSpec(key=self.key, operator=op, values=(str(n),), min_values=self.min_values)
            for op, n in bounds
            if n is not None
        ]
        return tuple(entries) or (
            RequirementSpec(
                key=self.key,
                operator=self.operator,
                values=tuple(sorted(self.values)),
                min_values=self.min_values,
            ),
        )

    def __str__(self) -> str:
        """Return it for people: `zone In [a b]`, at most 5 values, then bounds and minValues."""
        text = f"{self.key} {self.operator}"
        if self.values:
            shown = sorted(self.values)[:_SHOWN_VALUES]
            rest = len(self.values) - len(shown)
            text += f" [{' '.join(shown)}{f' and {rest} others' if rest else ''}]"
        if self.gte is not None:
            text += f" >={self.gte}"
        if self.lte is not None:
            text += f" <={self.lte}"
        return text + (f" minValues {self.min_values}" if self.min_values is not None else "")


def _tightest(choose: Callable[[int, int], int], a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return choose(a, b)


class Requirements(Mapping[str, Requirement]):
    """An immutable set of requirements, at most one per key; hashable and equal by content."""

    __slots__ = ("_by_key", "_hash")

    def __init__(self, by_key: Mapping[str, Requirement]) -> None:
        """Keep the given requirements, already one per key; use `of` to combine."""
        self._by_key = dict(by_key)
        self._hash: int | None = None

    @classmethod
    def of(cls, *requirements: Requirement) -> Requirements:
        """Return the requirements together; those of one key are intersected."""
        return EMPTY.add(*requirements) if requirements else EMPTY

    @classmethod
    def from_labels(cls, values: Mapping[str, str]) -> Requirements:
        """Return one `In` requirement per label."""
        return cls.of(*(Requirement.new(key, Operator.IN, (value,)) for key, value in values.items()))

    @classmethod
    def from_specs(cls, specs: Iterable[RequirementSpec]) -> Requirements:
        """Return the requirements of a manifest; raises ValueError as `Requirement.new` does."""
        return cls.of(*(Requirement.from_spec(spec) for spec in specs))

    def add(self, *requirements: Requirement) -> Requirements:
        """Return a set that also demands these."""
        by_key = dict(self._by_key)
        for requirement in requirements:
            known = by_key.get(requirement.key)
            by_key[requirement.key] = requirement if known is None else known.intersect(requirement)
        return Requirements(by_key)

    def union(self, other: Requirements) -> Requirements:
        """Return a set that demands both."""
        if not other:
            return self
        return self.add(*other.values()) if self else other

    def without(self, *keys: str) -> Requirements:
        """Return the set without these keys."""
        return Requirements({key: value for key, value in self._by_key.items() if key not in keys})

    def compatible(self, incoming: Requirements, allow_undefined: frozenset[str] = _NO_VALUES) -> bool:
        """Tell whether something described by this set can meet `incoming` (§5).

        A positive requirement on a key this set lacks fails unless the key is in `allow_undefined`.
        """
        for key, wanted in incoming._by_key.items():
            known = self._by_key.get(key)
            if known is None:
                if key not in allow_undefined and not wanted.is_negative:
                    return False
            elif not known.overlaps(wanted) and not (known.is_negative and wanted.is_negative):
                return False
        return True

    def intersects(self, other: Requirements) -> bool:
        """Tell whether every key in both has a value in common; keys of one side are fine."""
        few, many = (self, other) if len(self._by_key) <= len(other._by_key) else (other, self)
        for key, wanted in few._by_key.items():
            known = many._by_key.get(key)
            if known is None or known.overlaps(wanted):
                continue
            if not (known.is_negative and wanted.is_negative):
                return False
        return True

    def why_not(self, incoming: Requirements, allow_undefined: frozenset[str] = _NO_VALUES) -> str | None:
        """Return why `compatible` says no, for people, or None; names the first key in order."""
        for key in sorted(incoming):
            wanted, known = incoming[key], self._by_key.get(key)
            if known is None:
                if key not in allow_undefined and not wanted.is_negative:
                    return f"label {key!r} does not have known values{self.guess(key, allow_undefined)}"
            elif not known.overlaps(wanted) and not (known.is_negative and wanted.is_negative):
                return f"key {key}, {wanted} not in {known}"
        return None

    def guess(self, key: str, others: frozenset[str] = _NO_VALUES) -> str:
        """Return a hint at the known key that looks most like this one, empty when none does."""
        known = sorted({*self._by_key, *others})
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.8)
        return f" (typo of {near[0]!r}?)" if near else ""

    def to_specs(self) -> tuple[RequirementSpec, ...]:
        """Return the manifest's entries in order of key (§5)."""
        return tuple(spec for key in sorted(self._by_key) for spec in self._by_key[key].to_specs())

    def labels(self) -> dict[str, str]:
        """Return the labels whose value is already decided: concrete with one value."""
        return {
            key: next(iter(requirement.values))
            for key, requirement in sorted(self._by_key.items())
            if not requirement.complement and len(requirement.values) == 1
        }

    @property
    def min_values(self) -> dict[str, int]:
        """How many distinct values must remain possible, by key."""
        return {
            key: requirement.min_values
            for key, requirement in sorted(self._by_key.items())
            if requirement.min_values is not None
        }

    def __getitem__(self, key: str) -> Requirement:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._by_key.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self._by_key == other._by_key if isinstance(other, Requirements) else NotImplemented

    def __repr__(self) -> str:
        return f"Requirements({self})"

    def __str__(self) -> str:
        """Return it for people, sorted, without host names."""
        return ", ".join(sorted(str(value) for key, value in self._by_key.items() if key != labels.HOSTNAME))


EMPTY: Final = Requirements({})
"""No requirement at all."""

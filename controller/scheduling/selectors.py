"""Label selectors of pods, budgets and topology terms (spec core/scheduling §12).

Used wherever pods are picked by label. Follows Kubernetes: an empty selector picks everything, an
absent one (None where a `LabelSelector | None` is taken) picks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

__all__ = ["LabelSelector", "SelectorTerm"]

_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


@attrs.frozen(order=True)
class SelectorTerm:
    """One condition on a label: `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels satisfy it; NotIn is satisfied by an absent label."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case _:
                return value is None


def _sorted_terms(terms: Iterable[SelectorTerm]) -> tuple[SelectorTerm, ...]:
    return tuple(sorted(set(terms)))


@attrs.frozen(cache_hash=True)
class LabelSelector:
    """Conditions that must all hold, sorted and without repeats."""

    terms: tuple[SelectorTerm, ...] = attrs.field(default=(), converter=_sorted_terms)

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any] | None) -> LabelSelector | None:
        """Return the selector, None for an absent one; raises ValueError for an unknown operator."""
        if raw is None:
            return None
        terms = [SelectorTerm(key, "In", (value,)) for key, value in (raw.get("matchLabels") or {}).items()]
        for entry in raw.get("matchExpressions") or ():
            operator = entry.get("operator")
            if operator not in _OPERATORS:
                raise ValueError(f"label selector operator {operator!r} is not one of {sorted(_OPERATORS)}")
            values = tuple(sorted(entry.get("values") or ()))
            if (operator in ("In", "NotIn")) != bool(values):
                raise ValueError(f"label selector {entry.get('key')} {operator} has {len(values)} values")
            terms.append(SelectorTerm(entry["key"], operator, values))
        return cls(terms)

    def with_labels(self, pairs: Iterable[tuple[str, str]]) -> LabelSelector:
        """Return a selector that also demands these labels."""
        return LabelSelector((*self.terms, *(SelectorTerm(key, "In", (value,)) for key, value in pairs)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels satisfy every condition."""
        return all(term.matches(labels) for term in self.terms)

    def keys(self) -> frozenset[str]:
        """Return the label keys it looks at."""
        return frozenset(term.key for term in self.terms)

    def __str__(self) -> str:
        """Return it for people."""
        return ",".join(f"{t.key} {t.operator} [{' '.join(t.values)}]" for t in self.terms) or "everything"

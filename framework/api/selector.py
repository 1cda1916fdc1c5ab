"""Label selectors as Kubernetes writes them.

Called by SchedulingConfig to pick NodePools. Owns shape, rules and matching.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import attrs

from framework.api.schema import Rule, field, items, mapping
from framework.api.wire import Wire

__all__ = ["LabelSelector", "SelectorExpression", "SelectorOperator"]


class SelectorOperator(StrEnum):
    """How a label's value relates to the values of an expression."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@attrs.frozen(kw_only=True)
class SelectorExpression(Wire):
    """One condition on one label."""

    key: str = field("Label key.", min_length=1, max_length=316)
    operator: SelectorOperator = field("How the label's value relates to values.")
    values: tuple[str, ...] = items(
        "Values to compare with; for In and NotIn only.", max_items=100, list_type="atomic"
    )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels meets the condition."""
        match self.operator:
            case SelectorOperator.IN:
                return labels.get(self.key) in self.values
            case SelectorOperator.NOT_IN:
                return labels.get(self.key) not in self.values
            case SelectorOperator.EXISTS:
                return self.key in labels
            case SelectorOperator.DOES_NOT_EXIST:
                return self.key not in labels


@attrs.frozen(kw_only=True)
class LabelSelector(Wire):
    """Picks objects by their labels; everything said must hold, and an empty selector picks all."""

    match_labels: Mapping[str, str] = mapping("Labels that must be there with these values.")
    match_expressions: tuple[SelectorExpression, ...] = items(
        "Conditions that must hold.",
        max_items=20,
        rules=(
            Rule(
                cel="self.all(x, (x.operator in ['In', 'NotIn']) == (has(x.values) && size(x.values) > 0))",
                message="In and NotIn need values, Exists and DoesNotExist take none; add or remove them",
            ),
        ),
    )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels is picked."""
        return self.match_labels.items() <= labels.items() and all(
            expression.matches(labels) for expression in self.match_expressions
        )

"""A small evaluator of policy documents.

Called by tests, by the sandbox and by `charpente doctor`. Owns the subset of IAM's
language that the generated documents use: Allow and Deny, wildcards in actions and
resources, and the condition operators listed in `_OPERATORS`. It never guesses: an
operator it does not know raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import attrs

from framework.iam.documents import Document, Effect, Statement


@attrs.frozen(kw_only=True)
class Request:
    """One question to IAM: may this action be done to this resource?"""

    action: str
    resource: str
    context: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Condition keys and their values; a key that is not there is absent from the request."""


class UnknownOperator(Exception):
    """A condition operator that this evaluator does not model."""

    def __init__(self, operator: str) -> None:
        """Name the operator in the text."""
        super().__init__(f"condition operator {operator} is not modelled; add it to framework.iam.evaluate")


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


def _like(pattern: str, text: str) -> bool:
    return _pattern(pattern).fullmatch(text) is not None


def _any_equal(wanted: tuple[str, ...], found: tuple[str, ...] | None) -> bool:
    return found is not None and any(value in wanted for value in found)


def _any_like(wanted: tuple[str, ...], found: tuple[str, ...] | None) -> bool:
    return found is not None and any(_like(pattern, value) for pattern in wanted for value in found)


def _equal_if_exists(wanted: tuple[str, ...], found: tuple[str, ...] | None) -> bool:
    return found is None or _any_equal(wanted, found)


def _all_equal(wanted: tuple[str, ...], found: tuple[str, ...] | None) -> bool:
    return found is None or all(value in wanted for value in found)


_OPERATORS: Mapping[str, Callable[[tuple[str, ...], tuple[str, ...] | None], bool]] = {
    "StringEquals": _any_equal,
    "StringLike": _any_like,
    "StringEqualsIfExists": _equal_if_exists,
    "ForAllValues:StringEquals": _all_equal,
    "Bool": _any_equal,
}


def _matches(statement: Statement, request: Request) -> bool:
    action = request.action.lower()
    if not any(_like(pattern.lower(), action) for pattern in statement.actions):
        return False
    if statement.resources and not any(_like(pattern, request.resource) for pattern in statement.resources):
        return False
    for operator, keys in statement.conditions.items():
        if operator not in _OPERATORS:
            raise UnknownOperator(operator)
        holds = _OPERATORS[operator]
        if not all(holds(wanted, request.context.get(key)) for key, wanted in keys.items()):
            return False
    return True


def allowed(documents: Iterable[Document], request: Request) -> bool:
    """Whether an identity with these documents may do this; an explicit Deny wins, silence denies.

    Raises UnknownOperator for a condition that is not modelled.
    """
    verdict = False
    for document in documents:
        for statement in document.statements:
            if not _matches(statement, request):
                continue
            if statement.effect is Effect.DENY:
                return False
            verdict = True
    return verdict

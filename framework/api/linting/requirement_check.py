"""Whether any instance type can meet a list of requirements, as far as names of types tell.

Called by the cross checks. Works on concrete label values only; the exact algebra, with prices and
resources, is the engine's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

from framework.api import labels
from framework.api.requirement_spec import Operator, RequirementSpec
from framework.data import HOME_REGION, on_demand_prices

__all__ = ["allows", "contradiction", "known_values", "matching_types"]

_NAME: Final = re.compile(
    r"(?P<category>[a-z]+)(-[0-9]+tb)?(?P<generation>[0-9]+)(?P<options>[a-z]*)(?P<rest>[^.]*)"
)
_BOUNDS: Final = (Operator.GT, Operator.LT, Operator.GTE, Operator.LTE)


def allows(requirement: RequirementSpec, value: str | None) -> bool:
    """Return whether a label of that value, or its absence (None), meets the requirement."""
    operator, values = requirement.operator, requirement.values
    if operator is Operator.IN:
        return value in values
    if operator is Operator.NOT_IN:
        return value not in values
    if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        return (value is not None) == (operator is Operator.EXISTS)
    if value is None or not value.isdigit() or len(values) != 1 or not values[0].isdigit():
        return False
    number, bound = int(value), int(values[0])
    verdicts = {
        Operator.GT: number > bound,
        Operator.LT: number < bound,
        Operator.GTE: number >= bound,
        Operator.LTE: number <= bound,
    }
    return verdicts[operator]


def contradiction(requirements: Iterable[RequirementSpec]) -> str | None:
    """Return a label key whose requirements no value can meet together, the first by name, or None."""
    by_key: dict[str, list[RequirementSpec]] = {}
    for requirement in requirements:
        by_key.setdefault(labels.NORMALISED.get(requirement.key, requirement.key), []).append(requirement)
    for key in sorted(by_key):
        together = by_key[key]
        if not any(all(allows(each, value) for each in together) for value in _candidates(together)):
            return key
    return None


def _candidates(together: Sequence[RequirementSpec]) -> list[str | None]:
    """Return values of which one meets all of them, if any value does."""
    listed = [value for each in together if each.operator is Operator.IN for value in each.values]
    if listed:
        return list(listed)
    excluded = {value for each in together for value in each.values}
    bounds = [int(value) for each in together if each.operator in _BOUNDS for value in each.values]
    near = [str(bound + step) for bound in bounds for step in range(-1, len(excluded) + 2)]
    return [None, *near, next(f"v{i}" for i in range(len(excluded) + 1) if f"v{i}" not in excluded)]


def matching_types(requirements: Iterable[RequirementSpec]) -> tuple[str, ...]:
    """Return the instance types whose name-given labels meet all requirements, sorted."""
    wanted = [requirement for requirement in requirements if requirement.key in _labels_of("m5.large")]
    return tuple(
        name
        for name in _types()
        if all(allows(requirement, _labels_of(name)[requirement.key]) for requirement in wanted)
    )


@cache
def known_values() -> Mapping[str, frozenset[str]]:
    """Return the values that labels given by names of types can have, by label key."""
    found: dict[str, set[str]] = {}
    for name in _types():
        for key, value in _labels_of(name).items():
            found.setdefault(key, set()).add(value)
    closed = {key: frozenset(values) for key, values in labels.KNOWN_VALUES.items()}
    closed[labels.OS] = frozenset({"linux", "windows"})
    return MappingProxyType({**{key: frozenset(values) for key, values in found.items()}, **closed})


@cache
def _types() -> tuple[str, ...]:
    return tuple(sorted(on_demand_prices(HOME_REGION)))


@cache
def _labels_of(name: str) -> Mapping[str, str]:
    family, _, size = name.partition(".")
    parts = _NAME.match(family)
    if parts is None:
        raise ValueError(f"{name!r} is not an instance type")
    arm = family == "a1" or "g" in parts["options"]
    return MappingProxyType(
        {
            labels.INSTANCE_TYPE: name,
            labels.INSTANCE_FAMILY: family,
            labels.INSTANCE_SIZE: size,
            labels.INSTANCE_CATEGORY: parts["category"],
            labels.INSTANCE_GENERATION: parts["generation"],
            labels.INSTANCE_CAPABILITY_FLEX: "true" if "-flex" in family else "false",
            labels.ARCH: "arm64" if arm else "amd64",
        }
    )

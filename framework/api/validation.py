"""What the API server cannot or may not refuse, judged by the controller (core/api §10).

Called for the condition `ValidationSucceeded`, for requirements of pods, and by lint. Collects everything
that is wrong; an object of an older CRD gets the same words as a new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from framework.api import labels
from framework.api.capacitybuffer import ACTIVE_CAPACITY, CapacityBuffer
from framework.api.ec2nodeclass import RESTRICTED_TAGS, EC2NodeClass
from framework.api.errors import Problem
from framework.api.nodeoverlay import STANDARD_RESOURCES, NodeOverlay
from framework.api.nodepool import NodePool
from framework.api.requirement_spec import (
    LABEL_VALUE_PATTERN,
    QUALIFIED_NAME_PATTERN,
    Operator,
    RequirementSpec,
    Taint,
)
from framework.api.suggest import nearest

__all__ = [
    "is_restricted",
    "requirement_problems",
    "validate_capacitybuffer",
    "validate_ec2nodeclass",
    "validate_nodeoverlay",
    "validate_nodepool",
]

_QUALIFIED: Final = re.compile(QUALIFIED_NAME_PATTERN)
_LABEL_VALUE: Final = re.compile(LABEL_VALUE_PATTERN)
_LONGEST_NAME: Final = 63
_LONGEST_PREFIX: Final = 253
_BOUNDS: Final = (Operator.GT, Operator.LT, Operator.GTE, Operator.LTE)
_CLUSTER_TAG: Final = re.compile(r"kubernetes\.io/cluster/[0-9A-Za-z][0-9A-Za-z_-]*")


def validate_nodepool(pool: NodePool) -> tuple[Problem, ...]:
    """Return what makes the pool unusable, in order of field."""
    spec = pool.spec.template.spec
    found = [
        *_label_problems(pool.spec.template.metadata.labels),
        *_taint_problems(spec.taints, "spec.template.spec.taints"),
        *_taint_problems(spec.startup_taints, "spec.template.spec.startupTaints"),
        *_twice(spec.taints, spec.startup_taints),
        *requirement_problems(spec.requirements, path="spec.template.spec.requirements"),
    ]
    return tuple(found)


def validate_nodeoverlay(overlay: NodeOverlay) -> tuple[Problem, ...]:
    """Return what makes the overlay unusable."""
    found = list(
        requirement_problems(overlay.spec.requirements, path="spec.requirements", allow_nodepool=True)
    )
    for index, requirement in enumerate(overlay.spec.requirements):
        if requirement.operator is Operator.NOT_IN and not requirement.values:
            field = f"spec.requirements[{index}].values"
            found.append(Problem(field=field, problem="is empty", remedy="add a value or use Exists"))
    for name in sorted(overlay.spec.capacity.keys() & set(STANDARD_RESOURCES)):
        problem = Problem(
            field=f"spec.capacity.{name}", problem="is known to the provider", remedy="remove it"
        )
        found.append(problem)
    return tuple(found)


def validate_ec2nodeclass(node_class: EC2NodeClass) -> tuple[Problem, ...]:
    """Return what makes the class unusable before anything is asked of AWS (aws/ec2nodeclass §2.2)."""
    remedy = "remove it: the controller sets it"
    return tuple(
        Problem(field=f"spec.tags.{key}", problem="is the controller's tag", remedy=remedy)
        for key in sorted(node_class.spec.tags)
        if key in RESTRICTED_TAGS or _CLUSTER_TAG.fullmatch(key)
    )


def validate_capacitybuffer(buffer: CapacityBuffer) -> tuple[Problem, ...]:
    """Return what keeps the buffer from being resolved (core/api §6)."""
    spec = buffer.spec
    found = []
    if spec.pod_template_ref is None and spec.scalable_ref is None:
        remedy = "set spec.podTemplateRef or spec.scalableRef"
        found.append(Problem(field="spec", problem="names no pods", remedy=remedy))
    if spec.provisioning_strategy != ACTIVE_CAPACITY:
        problem = f"is {spec.provisioning_strategy!r}, which is not known"
        remedy = f"use {ACTIVE_CAPACITY}"
        found.append(Problem(field="spec.provisioningStrategy", problem=problem, remedy=remedy))
    return tuple(found)


def requirement_problems(
    requirements: Iterable[RequirementSpec], *, path: str, allow_nodepool: bool = False
) -> Iterator[Problem]:
    """Give what is wrong with each requirement; also used for selectors and node affinity of pods."""
    for index, requirement in enumerate(requirements):
        place = f"{path}[{index}]"
        if requirement.key == labels.NODEPOOL and not allow_nodepool:
            yield _restricted(f"{place}.key", requirement.key)
        else:
            yield from _key_problems(requirement.key, f"{place}.key")
        yield from _value_problems(requirement, f"{place}.values")
        yield from _known_value_problems(requirement, f"{place}.values")


def is_restricted(key: str) -> bool:
    """Return whether users may not use the label key, because the controller owns it (core/api §9)."""
    if key in labels.WELL_KNOWN or key in labels.AWS_WELL_KNOWN:
        return False
    domain = key.partition("/")[0] if "/" in key else ""
    return key == labels.HOSTNAME or any(
        domain == restricted or domain.endswith(f".{restricted}") for restricted in labels.RESTRICTED_DOMAINS
    )


def _key_problems(key: str, path: str) -> Iterator[Problem]:
    if not _is_qualified(key):
        remedy = "use letters, digits, '-', '_' and '.', with an optional DNS prefix and '/'"
        yield Problem(field=path, problem=f"{key!r} is not a qualified name", remedy=remedy)
    elif is_restricted(key):
        yield _restricted(path, key)


def _restricted(path: str, key: str) -> Problem:
    known = labels.WELL_KNOWN | labels.AWS_WELL_KNOWN - {labels.NODEPOOL}
    near = nearest(key, known, cutoff=0.85)
    domains = ", ".join(labels.RESTRICTED_DOMAINS)
    remedy = (
        f"did you mean {near}?"
        if near
        else f"use a domain of your own (restricted: {domains}) or a well-known label: "
        f"{', '.join(sorted(known))}"
    )
    return Problem(field=path, problem=f"{key!r} is restricted", remedy=remedy)


def _value_problems(requirement: RequirementSpec, path: str) -> Iterator[Problem]:
    values, operator, least = requirement.values, requirement.operator, requirement.min_values
    for value in values:
        if not _is_label_value(value):
            remedy = "use at most 63 letters, digits, '-', '_' and '.', beginning and ending with the former"
            yield Problem(field=path, problem=f"hold {value!r}, which is no label value", remedy=remedy)
    if operator is Operator.IN and not values:
        yield Problem(field=path, problem="are empty", remedy="add a value or use Exists")
    elif operator is Operator.IN and least is not None and len(values) < least:
        problem = f"are {len(values)}, fewer than minValues {least}"
        yield Problem(field=path, problem=problem, remedy="add values or lower minValues")
    elif operator in _BOUNDS and not (len(values) == 1 and values[0].isascii() and values[0].isdigit()):
        remedy = "give one whole number of 0 or more"
        yield Problem(field=path, problem=f"do not suit {operator}", remedy=remedy)


def _known_value_problems(requirement: RequirementSpec, path: str) -> Iterator[Problem]:
    """Judge In on labels with a closed set of values: some value must be known, and enough of them."""
    known = labels.KNOWN_VALUES.get(requirement.key)
    if known is None or requirement.operator is not Operator.IN or not requirement.values:
        return
    usable = set(known) & set(requirement.values)
    remedy = f"use some of {', '.join(known)}"
    if not usable:
        yield Problem(field=path, problem=f"hold no known value of {requirement.key}", remedy=remedy)
    elif requirement.min_values is not None and len(usable) < requirement.min_values:
        problem = (
            f"hold {len(usable)} known values of {requirement.key}, fewer than minValues "
            f"{requirement.min_values}"
        )
        yield Problem(field=path, problem=problem, remedy=remedy)


def _label_problems(wanted: Mapping[str, str]) -> Iterator[Problem]:
    for key, value in wanted.items():
        path = f"spec.template.metadata.labels.{key}"
        if key == labels.NODEPOOL:
            yield _restricted(path, key)
        else:
            yield from _key_problems(key, path)
        if not _is_label_value(value):
            remedy = "use at most 63 letters, digits, '-', '_' and '.', beginning and ending with the former"
            yield Problem(field=path, problem=f"is {value!r}, which is no label value", remedy=remedy)


def _taint_problems(taints: Iterable[Taint], path: str) -> Iterator[Problem]:
    for index, taint in enumerate(taints):
        for name, text in (("key", taint.key), ("value", taint.value or "valid")):
            if not _is_qualified(text):
                remedy = "use letters, digits, '-', '_' and '.', with an optional DNS prefix and '/'"
                problem = f"{text!r} is not a qualified name"
                yield Problem(field=f"{path}[{index}].{name}", problem=problem, remedy=remedy)


def _twice(taints: tuple[Taint, ...], startup_taints: tuple[Taint, ...]) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for name, listed in (("taints", taints), ("startupTaints", startup_taints)):
        for index, taint in enumerate(listed):
            pair = (taint.key, taint.effect)
            if pair in seen:
                problem = f"repeats {taint.key}:{taint.effect}"
                field = f"spec.template.spec.{name}[{index}]"
                yield Problem(field=field, problem=problem, remedy="remove one of the two")
            seen.add(pair)


def _is_qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if len(name) > _LONGEST_NAME or len(prefix) > _LONGEST_PREFIX or (slash and not prefix):
        return False
    return _QUALIFIED.fullmatch(key) is not None


def _is_label_value(value: str) -> bool:
    return len(value) <= _LONGEST_NAME and _LABEL_VALUE.fullmatch(value) is not None

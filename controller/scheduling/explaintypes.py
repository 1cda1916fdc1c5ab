"""Why no instance type of a pool suits a pod, with the type that comes closest (spec core/scheduling §21).

Called by the explanation pass; private to the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from controller.scheduling.catalog import BoolColumn
from controller.scheduling.reasons import Reason, ReasonCode
from controller.scheduling.requirements import Requirements
from controller.scheduling.templates import Template
from framework.api.quantity import format_resources

__all__ = ["amount", "type_reason"]

_SUSPICIOUS_CPU_MILLI: Final = 10**9
"""A million cores: somebody meant `m` and wrote `M`."""


def amount(name: str, value: int) -> str:
    """Return one amount for people, such as `15600m cpu` or `3Gi memory`."""
    text = f"{value}m" if name == "cpu" else format_resources({name: value})[name]
    return f"{text} {name}"


def type_reason(
    resources: Sequence[str], template: Template, wanted: Requirements, request: Sequence[int]
) -> Reason:
    """Return which of requirements, resources and offering every type fails (§8, §21)."""
    table = template.table
    requirements = template.requirements.union(wanted)
    compatible = table.matching(requirements)
    offered, _ = table.offered(requirements)
    fits: BoolColumn = np.logical_and(
        (template.room >= np.array(request, dtype=np.int64)).all(axis=1), template.sound
    )
    if not compatible.any():
        return _plain(ReasonCode.REQUIREMENTS, f"no instance type satisfied the requirements {wanted}")
    if not offered.any():
        return _plain(ReasonCode.OFFERINGS, f"no instance type has the required offering ({wanted})")
    if not (compatible & offered).any():
        text = f"no instance type satisfied the requirements and has the required offering ({wanted})"
        return _plain(ReasonCode.OFFERINGS, text)
    if not (compatible & offered & fits).any():
        return _too_small(resources, template, compatible & offered, request)
    return _plain(
        ReasonCode.INSTANCE_TYPES, "no instance type is left after the rules about other pods are applied"
    )


def _plain(code: ReasonCode, text: str) -> Reason:
    return Reason(code=code, text=text, field="spec.template.spec.requirements")


def _too_small(
    resources: Sequence[str], template: Template, rows: BoolColumn, request: Sequence[int]
) -> Reason:
    names = template.table.names
    rooms = np.where(rows[:, None], template.room, np.iinfo(np.int64).min)
    needed, nearest = [], []
    for column, name in enumerate(resources):
        best = int(rooms[:, column].argmax())
        room = int(rooms[best, column])
        if request[column] > room:
            needed.append(amount(name, request[column]) + _hint(name, request[column]))
            nearest.append(f"the largest allowed type, {names[best]}, leaves {amount(name, max(0, room))}")
    if not needed:
        return _none_together(resources, template, rows, request)
    if "ephemeral-storage" in {text.rsplit(" ", 1)[-1] for text in needed}:
        nearest.append(
            "a larger root volume (blockDeviceMappings) or instanceStorePolicy: RAID0 in the node class helps"
        )
    return Reason(
        code=ReasonCode.RESOURCES,
        text=f"no instance type is large enough: needs {', '.join(needed)}",
        nearest="; ".join(nearest),
        field="spec.containers.resources.requests",
    )


def _none_together(
    resources: Sequence[str], template: Template, rows: BoolColumn, request: Sequence[int]
) -> Reason:
    """Each amount is had somewhere, but no type has them all: name the one that lacks the least."""
    wanted = np.array(request, dtype=np.int64)
    missing = np.maximum(wanted - template.room, 0)
    share = (missing / np.maximum(wanted, 1)).sum(axis=1)
    best = int(np.where(rows, share, np.inf).argmin())
    lacks = [
        amount(name, int(short))
        for name, short in zip(resources, missing[best].tolist(), strict=True)
        if short
    ]
    needs = [amount(name, value) for name, value in zip(resources, request, strict=True) if value]
    return Reason(
        code=ReasonCode.RESOURCES,
        text=f"no instance type has all of {', '.join(needs)}",
        nearest=f"{template.table.names[best]} comes closest and lacks {', '.join(lacks)}",
        field="spec.containers.resources.requests",
    )


def _hint(name: str, value: int) -> str:
    return " (was m meant, not M?)" if name == "cpu" and value >= _SUSPICIOUS_CPU_MILLI else ""

"""Requirements, taints and references to node classes as they stand in manifests.

Called by the kinds that carry them and by the engine, which builds its algebra from them. Owns the
shapes and the rules that the API server enforces; the algebra itself lives in the engine.
Spec: core/api §2.3 to §2.5.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Final

import attrs

from framework.api import labels
from framework.api.schema import FieldSchema, Rule, field, items, mapping
from framework.api.wire import Wire

__all__ = [
    "LABEL_VALUE_PATTERN",
    "MIN_VALUES_RULE",
    "NOT_IN_RULE",
    "QUALIFIED_NAME_PATTERN",
    "NodeClassRef",
    "Operator",
    "RequirementSpec",
    "Taint",
    "TaintEffect",
    "requirements",
    "restricted_key_rules",
    "template_labels",
]

QUALIFIED_NAME_PATTERN: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?"
    r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)
LABEL_VALUE_PATTERN: Final = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
MAX_ENTRIES: Final = 100
"""Most labels of a template and most requirements of a list."""


class Operator(StrEnum):
    """How a requirement's values relate to a label's value; bounds compare whole numbers."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"
    GTE = "Gte"
    LTE = "Lte"


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@attrs.frozen(kw_only=True)
class RequirementSpec(Wire):
    """The values that a node's label may have."""

    SHARED: ClassVar[bool] = True

    key: str = field(
        "Label key that the requirement is about.", pattern=QUALIFIED_NAME_PATTERN, max_length=316
    )
    operator: Operator = field(
        "How the label's value relates to values. Gt, Lt, Gte and Lte compare whole numbers."
    )
    values: tuple[str, ...] = items(
        "Values to compare with: one or more for In, exactly one whole number for Gt, Lt, Gte and Lte, "
        "none for Exists and DoesNotExist.",
        list_type="atomic",
    )
    min_values: int | None = field(
        "How many different values must still be possible for a node to be launched; "
        "keeps a choice of instance types open.",
        default=None,
        minimum=1,
        maximum=50,
    )


@attrs.frozen(kw_only=True)
class Taint(Wire):
    """Keeps pods that do not tolerate it off the node."""

    SHARED: ClassVar[bool] = True

    key: str = field("Taint key.", pattern=QUALIFIED_NAME_PATTERN, min_length=1)
    value: str | None = field("Taint value.", default=None, pattern=QUALIFIED_NAME_PATTERN)
    effect: TaintEffect = field("What happens to pods that do not tolerate the taint.")
    time_added: datetime | None = field("When the taint was added.", default=None)


@attrs.frozen(kw_only=True)
class NodeClassRef(Wire):
    """Names the node class that describes the machines."""

    SHARED: ClassVar[bool] = True

    group: str = field("API group of the node class, without a version.", pattern=r"^[^/]*$", min_length=1)
    kind: str = field("Kind of the node class.", min_length=1)
    name: str = field("Name of the node class.", min_length=1)


MIN_VALUES_RULE: Final = Rule(
    cel="self.all(x, x.operator == 'In' && has(x.minValues) ? size(x.values) >= x.minValues : true)",
    message="an In requirement lists fewer values than its minValues; list more values or lower minValues",
)
"""Rule R3, for the kinds that have `minValues`."""

NOT_IN_RULE: Final = Rule(
    cel="self.all(x, x.operator == 'NotIn' ? has(x.values) && size(x.values) > 0 : true)",
    message="a NotIn requirement needs at least one value; add one or use Exists",
)
"""Rule R4, for NodeOverlay."""

_COMMON_RULES: Final = (
    Rule(
        cel="self.all(x, x.operator == 'In' ? has(x.values) && size(x.values) > 0 : true)",
        message="an In requirement needs at least one value; add one or use Exists",
    ),
    Rule(
        cel="self.all(x, x.operator in ['Gt', 'Lt', 'Gte', 'Lte'] ? has(x.values) && size(x.values) == 1"
        " && int(x.values[0]) >= 0 : true)",
        message="a Gt, Lt, Gte or Lte requirement needs exactly one value, a whole number of 0 or more",
    ),
)
"""Rules R1 and R2."""


def restricted_key_rules(*, allow_nodepool: bool, each: str) -> tuple[Rule, ...]:
    """Return the rules against label keys that only the controller may set (core/api §2.3, aws/instances §2).

    `each` is how CEL reads the key of one entry: `x.key` for requirements, `x` for label maps.
    """
    core = _literal((labels.CAPACITY_TYPE, labels.NODEPOOL))
    aws = _literal(key for key in labels.AWS_WELL_KNOWN if key.startswith(f"{labels.AWS_GROUP}/"))
    rules = [
        Rule(
            cel=f"self.all(x, {each} in {core} || !{each}.matches('^[^/]*karpenter[.]sh(/|$)'))",
            message="the label domain karpenter.sh is restricted; "
            f"use a domain of your own or {labels.CAPACITY_TYPE}",
        ),
        Rule(
            cel=f"self.all(x, {each} in {aws} || !{each}.matches('^[^/]*karpenter[.]k8s[.]aws(/|$)'))",
            message="the label domain karpenter.k8s.aws is restricted; "
            "use one of its well-known labels or a domain of your own",
        ),
        Rule(
            cel=f"self.all(x, {each} != '{labels.HOSTNAME}')",
            message=f"the label {labels.HOSTNAME} is restricted; every node gets its own; remove it",
        ),
    ]
    if not allow_nodepool:
        rules.append(
            Rule(
                cel=f"self.all(x, {each} != '{labels.NODEPOOL}')",
                message=f"the label {labels.NODEPOOL} is restricted; the controller sets it; remove it",
            )
        )
    return tuple(rules)


def requirements(
    description: str, *, allow_nodepool: bool = False, rules: tuple[Rule, ...] = (), **schema: Any
) -> Any:
    """Declare a field that lists requirements, with the rules common to all kinds (core/api §2.3).

    Required in the schema unless said otherwise, yet read as empty when absent.
    """
    keys = restricted_key_rules(allow_nodepool=allow_nodepool, each="x.key")
    common = {"required": True, "max_items": MAX_ENTRIES, "rules": (*keys, *_COMMON_RULES, *rules)}
    return items(description, **{**common, **schema})


def template_labels(description: str) -> Any:
    """Declare the labels of a template, with rules L1 to L3 (core/api §3.1)."""
    value = FieldSchema(description="Label value.", max_length=63, pattern=LABEL_VALUE_PATTERN)
    keys = restricted_key_rules(allow_nodepool=False, each="x")
    return mapping(description, values=value, max_properties=MAX_ENTRIES, rules=keys)


def _literal(keys: Iterable[str]) -> str:
    return "[" + ", ".join(f"'{key}'" for key in sorted(keys)) + "]"

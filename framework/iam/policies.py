"""The controller's policies, generated from the table of calls.

Called by `framework.components.controller_identity` and by `charpente doctor`. Owns
the joining of actions (from the calls) with limits (from the grants); never holds an
action or a condition of its own (spec aws/iam-and-bootstrap section 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from framework.iam.calls import CALLS, Call
from framework.iam.documents import Document, Statement
from framework.iam.grants import GRANTS, PolicyPart
from framework.iam.scope import Scope
from framework.iam.sids import Sid


def actions_by_sid(calls: Iterable[Call] = CALLS.values()) -> Mapping[Sid, tuple[str, ...]]:
    """The actions that each statement must allow for these calls, sorted."""
    actions: dict[Sid, set[str]] = {}
    for call in calls:
        for need in call.needs:
            actions.setdefault(need.sid, set()).add(need.action)
    return {sid: tuple(sorted(names)) for sid, names in sorted(actions.items())}


def controller_policies(
    scope: Scope, calls: Iterable[Call] = CALLS.values()
) -> Mapping[PolicyPart, Document]:
    """The policy documents of the controller's role.

    A part without a statement is left out: without a queue there is no interruption policy.
    """
    wanted = actions_by_sid(calls)
    parts: dict[PolicyPart, list[Statement]] = {}
    for sid, grant in GRANTS.items():
        resources = grant.resources(scope)
        if sid not in wanted or not resources:
            continue
        statement = Statement(
            sid=sid.value,
            actions=wanted[sid],
            resources=resources,
            conditions=grant.conditions(scope),
        )
        parts.setdefault(grant.part, []).append(statement)
    return {part: Document(statements=tuple(statements)) for part, statements in parts.items()}


def policy_name(part: PolicyPart, cluster: str) -> str:
    """The customary name of a part, such as `KarpenterControllerNodeLifecyclePolicy-demo`."""
    return f"KarpenterController{part}-{cluster}"

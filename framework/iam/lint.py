"""Finds permissions that are wider than the reference policy's.

Called by tests, by the policy pack and by `charpente doctor`. Owns the rules about
wildcards; never changes a document.
"""

from __future__ import annotations

import attrs

from framework.iam.documents import Document, Effect, Statement
from framework.iam.sids import Sid

ALL_RESOURCES = frozenset({Sid.REGIONAL_READ, Sid.PRICING_READ, Sid.INSTANCE_PROFILE_LIST})
"""Statements whose actions AWS cannot limit to a resource: reads only."""

_READ_VERBS = ("Describe", "Get", "List")


@attrs.frozen(kw_only=True)
class Finding:
    """One permission that is too wide."""

    sid: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.sid}: {self.problem}; {self.remedy}"


def wildcards(document: Document) -> tuple[Finding, ...]:
    """Every allowing statement with a wildcard that the reference policy does not have."""
    return tuple(
        finding
        for statement in document.statements
        if statement.effect is Effect.ALLOW
        for finding in _statement_findings(statement)
    )


def _statement_findings(statement: Statement) -> tuple[Finding, ...]:
    sid = statement.sid or "(no Sid)"
    findings = [
        Finding(sid=sid, problem=f"action {action} has a wildcard", remedy="name each action")
        for action in statement.actions
        if "*" in action or "?" in action
    ]
    if "*" in statement.principals:
        findings.append(Finding(sid=sid, problem="anyone is allowed", remedy="name the principals"))
    if "*" in statement.resources:
        findings.extend(_unscoped(sid, statement))
    return tuple(findings)


def _unscoped(sid: str, statement: Statement) -> tuple[Finding, ...]:
    writes = [name for name in statement.actions if not name.partition(":")[2].startswith(_READ_VERBS)]
    if writes:
        names = ", ".join(writes)
        return (
            Finding(sid=sid, problem=f"{names} on every resource", remedy="scope it by ARN or cluster tag"),
        )
    if sid not in ALL_RESOURCES:
        return (Finding(sid=sid, problem="reads every resource", remedy="name the resources"),)
    return ()

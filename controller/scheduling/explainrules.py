"""Why a rule about other pods leaves no domain (spec core/scheduling §12.6, §21).

Called by the explanation pass; private to the engine.
"""

from __future__ import annotations

from typing import Final

from controller.scheduling.podrules import AffinityRule, PodRule, SpreadRule
from controller.scheduling.reasons import Reason, ReasonCode
from controller.scheduling.requirements import Requirement, Requirements

__all__ = ["rule_reason"]

_SHOWN_DOMAINS: Final = 25


def rule_reason(rule: PodRule, node: Requirement | None, pod: Requirements) -> Reason:
    """Return kind, key, counts and the domains that pod and node allow."""
    counter = rule.counter
    key = counter.key.topology_key
    if isinstance(rule, SpreadRule):
        code, kind, field = ReasonCode.TOPOLOGY_SPREAD, "topology spread", "spec.topologySpreadConstraints"
    elif isinstance(rule, AffinityRule):
        code, kind, field = ReasonCode.POD_AFFINITY, "pod affinity", "spec.affinity.podAffinity"
    else:
        code, kind, field = ReasonCode.POD_ANTI_AFFINITY, "pod anti-affinity", "spec.affinity.podAntiAffinity"
    if counter.by_host:
        nearest = "a new node has no such pods" if isinstance(rule, AffinityRule) else None
    else:
        shown = sorted(counter.counts.items())[:_SHOWN_DOMAINS]
        parts = [f"counts {', '.join(f'{domain}={count}' for domain, count in shown) or 'none'}"]
        if key in pod:
            parts.append(f"pod allows {pod[key]}")
        if node is not None:
            parts.append(f"node allows {node}")
        nearest = "; ".join(parts)
    return Reason(
        code=code,
        text=f"unsatisfiable topology constraint for {kind}, key {key}, pods {counter.key.selector}",
        field=field,
        nearest=nearest,
    )

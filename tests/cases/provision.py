"""Runs `when: provision` cases: mirror, pods to place, plan, and checks of what the case expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from controller.provisioning.provisioner import pods_to_place
from controller.scheduling import (
    MinValuesPolicy,
    Options,
    Plan,
    PlannedClaim,
    PreferencePolicy,
    Problem,
    solve,
)
from controller.scheduling.verify import verify
from framework.api import labels, parse_quantity
from tests.cases.catalog import types_by_pool
from tests.cases.files import Variant, mirror_of

Wire = dict[str, Any]

KEYS = frozenset(
    {
        "nodeclaims", "nodeclaimOrder", "nodeclaimsTotal", "nodeclaimsByZone", "maxPodsPerNodeclaim",
        "unschedulable", "unschedulableCount", "unschedulableReasonMustMention", "placements",
        "placementsSet", "placementsForbidden", "effectiveRequests", "deleted", "events", "explain",
    }
)  # fmt: skip
"""Expectations this runner knows; a case with others is not yet runnable here."""

_SETTINGS = frozenset({"preferencePolicy", "minValuesPolicy"})
_FACTS = frozenset({"catalog", "now", "variants", "name", "objects", "settings", "history", "passesAt"})


def unreachable(variant: Variant) -> str | None:
    """Return why a provision case cannot be run by the engine alone, None when it can."""
    if variant.when not in ("provision", "provision x3"):
        return f"when: {variant.when}"
    extra = sorted(set(variant.given) - _FACTS)
    if extra:
        return f"needs {', '.join(extra)}"
    unknown = sorted(set(variant.expect) - KEYS) + sorted(
        set(variant.given.get("settings") or ()) - _SETTINGS
    )
    return f"expects {', '.join(unknown)}" if unknown else None


def run(variant: Variant) -> list[str]:
    """Return what differs from the expectation; empty when the case passes."""
    mirror = mirror_of(variant)
    snapshot = mirror.snapshot(variant.now)
    settings = variant.given.get("settings") or {}
    problem = Problem(
        snapshot=snapshot,
        pods=pods_to_place(snapshot),
        instance_types=types_by_pool(variant, mirror),
        options=Options(
            preference_policy=PreferencePolicy(settings.get("preferencePolicy", "Respect")),
            min_values_policy=MinValuesPolicy(settings.get("minValuesPolicy", "Strict")),
        ),
    )
    plan = solve(problem)
    found = [f"verifier: {violation}" for violation in verify(problem, plan)]
    for key, expected in variant.expect.items():
        check = CHECKS.get(key)
        if check is not None:
            found += check(expected, plan, problem)
    return found


def _nodeclaims(expected: list[Wire], plan: Plan, problem: Problem) -> Iterator[str]:
    if len(expected) != len(plan.claims):
        actual = [claim.pod_keys for claim in plan.claims]
        yield f"{len(plan.claims)} claims {actual}, expected {len(expected)}"
        return
    left = list(plan.claims)
    for wanted in expected:
        faults = {id(claim): list(_claim_faults(wanted, claim, problem)) for claim in left}
        best = min(left, key=lambda claim: len(faults[id(claim)]))
        yield from faults[id(best)]
        left.remove(best)


def _claim_faults(wanted: Wire, claim: PlannedClaim, problem: Problem) -> Iterator[str]:
    types = set(claim.instance_types)
    zones = set(claim.zones) or {"any"}
    facts: dict[str, Callable[[Any], tuple[bool, object]]] = {
        "pods": lambda v: (sorted(v) == sorted(claim.pod_keys), claim.pod_keys),
        "nodepool": lambda v: (v == claim.pool, claim.pool),
        "zonesAllowed": lambda v: (set(v) == zones, zones),
        "zonesSubsetOf": lambda v: (zones <= set(v), zones),
        "typesExactly": lambda v: (set(v) == types, types),
        "typesMustInclude": lambda v: (set(v) <= types, types),
        "typesMustExclude": lambda v: (not set(v) & types, types),
        "cheapestType": lambda v: (claim.instance_types[0] == v, claim.instance_types[0]),
        "requirementsMustEqual": lambda v: (_values(claim, v) == v, _values(claim, v)),
        "daemonOverhead": lambda v: _daemon_overhead(v, claim, problem),
    }
    for key, value in wanted.items():
        if key not in facts:
            yield f"claim expectation {key} is not known to the runner"
            continue
        fine, actual = facts[key](value)
        if not fine:
            yield f"claim {key}: {actual}, expected {value}"


def _values(claim: PlannedClaim, keys: Mapping[str, object]) -> dict[str, list[str]]:
    return {key: sorted(claim.requirements[key].values) for key in keys if key in claim.requirements}


def _daemon_overhead(wanted: Wire, claim: PlannedClaim, problem: Problem) -> tuple[bool, object]:
    pods = [pod for pod in problem.pods if pod.uid in claim.pods]
    actual = {
        name: claim.requests.get(name, 0) - sum(pod.requests.get(name, 0) for pod in pods) for name in wanted
    }
    return all(actual[n] == parse_quantity(v).units(n) for n, v in wanted.items()), actual


def _total(expected: int, plan: Plan, problem: Problem) -> Iterator[str]:
    if len(plan.claims) != expected:
        yield f"{len(plan.claims)} claims {[c.pod_keys for c in plan.claims]}, expected {expected}"


def _by_zone(expected: dict[str, int], plan: Plan, problem: Problem) -> Iterator[str]:
    counts: dict[str, int] = {}
    for claim in plan.claims:
        counts["|".join(claim.zones)] = counts.get("|".join(claim.zones), 0) + 1
    if counts != expected:
        yield f"claims by zone {counts}, expected {expected}"


def _max_pods(expected: int, plan: Plan, problem: Problem) -> Iterator[str]:
    most = max((len(claim.pods) for claim in plan.claims), default=0)
    if most > expected:
        yield f"{most} pods on one claim, at most {expected} expected"


def _unschedulable(expected: list[Wire], plan: Plan, problem: Problem) -> Iterator[str]:
    reasons = {unplaced.pod_key: unplaced.reason for unplaced in plan.unplaced}
    if sorted(reasons) != sorted(entry["pod"] for entry in expected):
        yield f"unplaced {[(k, r.short()) for k, r in reasons.items()]}, expected {expected}"
        return
    for entry in expected:
        text = reasons[entry["pod"]].render()
        yield from (
            f"reason lacks {w!r}: {text}" for w in entry.get("reasonMustMention", ()) if w not in text
        )
        yield from (f"reason has {w!r}: {text}" for w in entry.get("reasonMustNotMention", ()) if w in text)
        if len(text.encode()) > entry.get("maxReasonBytes", 1 << 20):
            yield f"reason is {len(text.encode())} bytes long: {text}"


def _unschedulable_count(expected: int, plan: Plan, problem: Problem) -> Iterator[str]:
    if len(plan.unplaced) != expected:
        yield f"{len(plan.unplaced)} unplaced, expected {expected}"


def _all_mention(expected: list[str], plan: Plan, problem: Problem) -> Iterator[str]:
    for unplaced in plan.unplaced:
        text = unplaced.reason.render()
        yield from (f"reason lacks {word!r}: {text}" for word in expected if word not in text)


def _placed(plan: Plan) -> dict[str, str]:
    return {placement.pod_key: placement.node for placement in plan.placements}


def _placements(expected: dict[str, str], plan: Plan, problem: Problem) -> Iterator[str]:
    actual = _placed(plan)
    yield from (
        f"{pod} on {actual.get(pod)}, expected {n}" for pod, n in expected.items() if actual.get(pod) != n
    )


def _placements_set(expected: Wire, plan: Plan, problem: Problem) -> Iterator[str]:
    nodes = [_placed(plan).get(pod) for pod in expected["pods"]]
    if not set(nodes) <= set(expected["onto"]) or (
        expected.get("distinct") and len(set(nodes)) != len(nodes)
    ):
        yield f"{expected['pods']} on {nodes}, expected onto {expected['onto']}"


def _forbidden(expected: dict[str, list[str]], plan: Plan, problem: Problem) -> Iterator[str]:
    actual = _placed(plan)
    yield from (f"{pod} on {actual[pod]}" for pod, nodes in expected.items() if actual.get(pod) in nodes)


def _effective(expected: Wire, plan: Plan, problem: Problem) -> Iterator[str]:
    for pod in problem.pods:
        for name, wanted in expected.items():
            if pod.requests.get(name) != parse_quantity(wanted).units(name):
                yield f"{pod.key} requests {pod.requests.get(name)} {name}, expected {wanted}"


def _nothing_deleted(expected: list[str], plan: Plan, problem: Problem) -> Iterator[str]:
    if expected:
        yield "provisioning deletes nothing"


def _events(expected: list[str], plan: Plan, problem: Problem) -> Iterator[str]:
    marked = any(claim.annotations.get(labels.MIN_VALUES_RELAXED) == "true" for claim in plan.claims)
    if "minValues" in expected and not marked:
        yield "no claim says that its minValues were lowered"


def _explain(expected: Wire, plan: Plan, problem: Problem) -> Iterator[str]:
    from controller.scheduling import why_placed

    reason = why_placed(problem, plan, expected["pod"])
    text = reason.render() if reason is not None else ""
    yield from (f"explanation lacks {w!r}: {text}" for w in expected["reasonMustMention"] if w not in text)


CHECKS: Mapping[str, Callable[[Any, Plan, Problem], Iterator[str]]] = {
    "nodeclaims": _nodeclaims,
    "nodeclaimsTotal": _total,
    "nodeclaimsByZone": _by_zone,
    "maxPodsPerNodeclaim": _max_pods,
    "unschedulable": _unschedulable,
    "unschedulableCount": _unschedulable_count,
    "unschedulableReasonMustMention": _all_mention,
    "placements": _placements,
    "placementsSet": _placements_set,
    "placementsForbidden": _forbidden,
    "effectiveRequests": _effective,
    "deleted": _nothing_deleted,
    "events": _events,
    "explain": _explain,
}

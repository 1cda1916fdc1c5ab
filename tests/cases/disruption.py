"""Runs the cases about disruption: consolidate, static drift, budgets, scores of moves.

Pure methods on the picture of the case.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from controller.cluster.mirror import Mirror
from controller.disruption.budgets import PoolCount, allowance, uncovered_reasons
from controller.disruption.build import methods
from controller.disruption.candidates import allowances, survey
from controller.disruption.command import Command
from controller.disruption.costs import reschedule_cost
from controller.disruption.dryrun import Decided, decide
from controller.disruption.explain import explain_node
from controller.disruption.policy import PoolPolicy
from controller.disruption.validation import Rejection, validate
from controller.disruption.world import Gates, World
from controller.disruption.worth import BALANCED_THRESHOLD, pool_totals, score
from controller.kube import kinds
from controller.scheduling import CapacityType, InstanceType, Offering, Options, Requirement, ReservedMode
from framework.api import DisruptionReason, Operator, labels
from tests.cases.catalog import types_by_pool
from tests.cases.files import Variant, filled, mirror_of

Wire = dict[str, Any]

_RESERVED_DISCOUNT = 10_000_000
"""Reserved capacity costs this part of on-demand (spec aws/instances)."""


def unreachable(variant: Variant) -> str | None:
    """Return why the case cannot be run here, None when it can."""
    return None if variant.when in _RUNS else f"when: {variant.when}"


def run(variant: Variant) -> list[str]:
    """Return what differs from the expectation; empty when the case passes."""
    return list(_RUNS[variant.when](variant))


# Pictures


def world_of(variant: Variant, mirror: Mirror) -> World:
    """Return the picture of a case; quiet nodes are consolidatable, as the claim controller would have it."""
    snapshot = mirror.snapshot(variant.now)
    gates = (variant.given.get("settings") or {}).get("featureGates") or {}
    config = variant.given.get("schedulingConfig") or {}
    policy = PoolPolicy(
        config="case" if config else None,
        node_cost=config.get("perNodeCostPerHour", 0.0),
        min_cheaper_types=(config.get("spotToSpot") or {}).get("minCheaperTypes"),
        static_drift_deletes_first=config.get("staticDriftStrategy") == "DeleteFirst",
    )
    return World(
        snapshot=snapshot,
        claims=dict(mirror.claims),
        instance_types=_types(variant, mirror),
        options=Options(reserved_mode=ReservedMode.FALLBACK),
        gates=Gates(spot_to_spot=bool(gates.get("SpotToSpotConsolidation"))),
        policies={pool.name: policy for pool in snapshot.pools},
    )


def _types(variant: Variant, mirror: Mirror) -> Mapping[str, tuple[InstanceType, ...]]:
    reservations = variant.given.get("capacityReservations") or ()
    found = types_by_pool(variant, mirror)
    return {pool: tuple(_reserved(each, reservations) for each in types) for pool, types in found.items()}


def _reserved(found: InstanceType, reservations: Sequence[Wire]) -> InstanceType:
    """Return the type with an offering for each reservation of it."""
    own = [each for each in reservations if each["type"] == found.name]
    if not own:
        return found
    price = min(o.price for o in found.offerings if o.capacity_type is CapacityType.ON_DEMAND and o.price)
    offerings = [
        Offering(
            zone=each["zone"],
            capacity_type=CapacityType.RESERVED,
            price=price / _RESERVED_DISCOUNT,
            available=each["available"] > 0,
            reservation_id=each["id"],
            reservation_type="default",
            reservation_capacity=each["available"],
        )
        for each in own
    ]
    known = {
        labels.CAPACITY_TYPE: ("on-demand", "spot", "reserved"),
        labels.CAPACITY_RESERVATION_ID: tuple(each["id"] for each in own),
        labels.CAPACITY_RESERVATION_TYPE: ("default",),
    }
    rest = found.requirements.without(*known)
    requirements = rest.add(*(Requirement.new(key, Operator.IN, each) for key, each in known.items()))
    return attrs.evolve(found, requirements=requirements, offerings=(*found.offerings, *offerings))


def _quiet(variant: Variant) -> Mirror:
    """Return the mirror of the case with every initialized claim Consolidatable.

    Where a case expects several nodes to go at once and says nothing of budgets, the default of 10 % is
    opened: of two nodes it would let one go, which is not what such a case is about.
    """
    several = len(variant.expect.get("candidates") or ()) > 1
    for raw in variant.given["objects"]:
        if raw["kind"] == "NodePool" and several:
            raw["spec"].setdefault("disruption", {}).setdefault("budgets", [{"nodes": "100%"}])
        if raw["kind"] != "NodeClaim":
            continue
        conditions = raw["status"].setdefault("conditions", [])
        if any(each["type"] == "Initialized" and each["status"] == "True" for each in conditions):
            conditions.append({"type": "Consolidatable", "status": "True", "reason": "Consolidatable"})
    return mirror_of(variant)


# consolidate, drift


def _consolidate(variant: Variant) -> Iterator[str]:
    mirror = _quiet(variant)
    world = world_of(variant, mirror)
    decided = decide(world, methods())
    command = _after_the_wait(variant, mirror, decided)
    yield from _command_faults(variant.expect, command, decided, world)
    if "explain" in variant.expect:
        yield from _explain_faults(variant.expect["explain"], world)


def _drift(variant: Variant) -> Iterator[str]:
    world = world_of(variant, mirror_of(variant))
    decided = decide(world, methods())
    command = decided.commands[0] if decided.commands else None
    yield from _command_faults(variant.expect, command, decided, world)


def _after_the_wait(variant: Variant, mirror: Mirror, decided: Decided) -> Command | Rejection | None:
    """Return the decided command as it is after what happens before validation."""
    if not decided.commands or decided.method is None:
        return None
    for number, raw in enumerate(variant.given.get("betweenDecisionAndValidation") or ()):
        pod = copy.deepcopy(raw)
        pod["metadata"]["uid"] = f"uid-between-{number}"
        mirror.apply(kinds.POD, filled(pod, 10_000 + number, variant.now))
    if not decided.method.validated:
        return decided.commands[0]
    return validate(decided.commands[0], decided.method, world_of(variant, mirror))


def _command_faults(
    expect: Wire, command: Command | Rejection | None, decided: Decided, world: World
) -> Iterator[str]:
    actual = (
        "none" if command is None else "abandoned" if isinstance(command, Rejection) else command.decision
    )
    if expect.get("command", actual) != actual:
        yield f"command {actual} {getattr(command, 'nodes', '')}, expected {expect['command']}"
        return
    if not isinstance(command, Command):
        words = expect.get("conditionOrEventMustMention") or ()
        text = "\n".join(reason.render() for each in decided.refusals.values() for reason in each)
        yield from (f"no reason mentions {word!r}: {text}" for word in words if word not in text)
        return
    nodes = sorted(command.nodes)
    replaced = len(command.replacements) + len(command.static_replacements)
    facts: Mapping[str, tuple[Any, Any]] = {
        "candidates": (nodes, sorted(expect.get("candidates", ()))),
        "candidatesCount": (len(nodes), expect.get("candidatesCount")),
        "replacements": (replaced, expect.get("replacements")),
        "replacementsBefore": (replaced, expect.get("replacementsBefore")),
        "reason": (str(command.reason), expect.get("reason")),
    }
    yield from (
        f"{key} {actual}, expected {wanted}"
        for key, (actual, wanted) in facts.items()
        if key in expect and actual != wanted
    )
    yield from (f"{name} is a candidate" for name in expect.get("candidatesForbidden", ()) if name in nodes)
    if "replacement" in expect:
        yield from _replacement_faults(expect["replacement"], command)


def _replacement_faults(expect: Wire, command: Command) -> Iterator[str]:
    (planned,) = command.replacements
    types = sorted(planned.instance_types)
    if sorted(expect.get("typesExactly", types)) != types:
        yield f"replacement types {types}, expected {sorted(expect['typesExactly'])}"
    capacity = planned.requirements.get(labels.CAPACITY_TYPE)
    found = sorted(capacity.values) if capacity is not None else []
    if "capacityType" in expect and found != [expect["capacityType"]]:
        yield f"replacement capacity type {found}, expected {expect['capacityType']}"


def _explain_faults(expect: Wire, world: World) -> Iterator[str]:
    text = explain_node(world, expect["node"], methods()).render()
    words = expect["reasonMustMention"]
    yield from (f"explanation lacks {word!r}: {text}" for word in words if word not in text)


# budgets, scores


def _budget_eval(variant: Variant) -> Iterator[str]:
    mirror = mirror_of(variant)
    generator = variant.given.get("generator") or {}
    for at, wanted in (variant.expect.get("at") or {}).items():
        count = PoolCount(nodes=generator["nodes"], disrupting=0)
        for reason in DisruptionReason:
            found = allowance(mirror.pools["default"], reason, count, datetime.fromisoformat(str(at)))
            if found.remaining != wanted["all"]:
                yield f"at {at} {found.sentence()}, expected {wanted['all']}"
    world = world_of(variant, mirror)
    for reason, wanted in (variant.expect.get("allowed") or {}).items():
        found = allowances(world, DisruptionReason(reason))["default"]
        if ("unlimited" if found.unlimited else found.remaining) != wanted:
            yield f"{found.sentence()}, expected {wanted}"
    uncovered = sorted(uncovered_reasons(mirror.pools["default"], variant.now))
    if sorted(variant.expect.get("lint", uncovered)) != uncovered:
        yield f"uncovered {uncovered}, expected {variant.expect['lint']}"


def _score_moves(variant: Variant) -> Iterator[str]:
    world = world_of(variant, _quiet(variant))
    by_name = {each.name: each for each in survey(world).candidates}
    totals = pool_totals(world)["default"]
    verdicts: dict[str, list[str]] = {"approved": [], "rejected": []}
    for move in variant.given["moves"]:
        gone = [by_name[name] for name in move["remove"]]
        new = [world.types_by_name["default"][name] for name in move["add"]]
        prices = [min(o.price or 0 for o in t.offerings if o.capacity_type == "on-demand") for t in new]
        savings = sum(each.price or 0.0 for each in gone) - sum(prices)
        value = score(savings, sum(reschedule_cost(each.pods) for each in gone), totals)
        wanted = variant.expect["scores"][move["id"]]
        if abs(value - wanted) > 0.005 * max(wanted, 1):
            yield f"{move['id']} scores {value:.4f}, expected {wanted}"
        verdicts["approved" if value >= BALANCED_THRESHOLD else "rejected"].append(move["id"])
    yield from (
        f"{key} {each}, expected {variant.expect[key]}"
        for key, each in verdicts.items()
        if each != variant.expect[key]
    )


_RUNS: Mapping[str, Callable[[Variant], Iterator[str]]] = {
    "consolidate": _consolidate,
    "drift": _drift,
    "budget-eval": _budget_eval,
    "score-moves": _score_moves,
}

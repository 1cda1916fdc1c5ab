"""Cases about launches: `provision` with facts about EC2, `provision xN`, and `provision-run`.

The real provisioner plans, the real claim controller launches through the real provider; EC2 is an
account in memory. In one pass (`provision`) pools that are said to be empty are known to be; in several
passes they are found out.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

import attrs

from controller.kube import kinds
from controller.scheduling import CapacityType, Plan
from framework.api import labels
from tests.cases import provision
from tests.cases.awsstage import AwsStage, strangers
from tests.cases.files import Variant, duration

Wire = dict[str, Any]
_AWS_FACTS = frozenset({"aws", "fleetErrors", "overlays", "capacityReservations"})
_STEP = timedelta(seconds=10)
_PASSES = re.compile(r"^provision(?: x(\d+)|-run)?$")
_RESOURCES = {"gpu": "nvidia.com/gpu"}
_LAUNCH_FACTS: Mapping[str, str] = {
    "launchCapacityType": labels.CAPACITY_TYPE,
    "launchType": labels.INSTANCE_TYPE,
    "launchZone": labels.ZONE,
    "launchReservation": labels.CAPACITY_RESERVATION_ID,
}
"""What an expected claim may say of its instance, by the label that shows it."""


def unreachable(variant: Variant) -> str | None:
    """Return why the case cannot be run here, None when it can."""
    if not _PASSES.match(variant.when):
        return f"when: {variant.when}"
    if variant.when == "provision" and not _AWS_FACTS & set(variant.given):
        return f"when: {variant.when} without facts about EC2"
    return strangers(variant, (*_CHECKS, *provision.KEYS))


def run(variant: Variant) -> list[str]:
    """Return what differs from the expectation; empty when the case passes."""
    return asyncio.run(_faults(variant))


@attrs.define(kw_only=True)
class _Pass:
    """One round of planning and launching."""

    plan: Plan | None
    failed: list[str] = attrs.Factory(list)
    """The pool of each claim that was given up."""
    launched: dict[str, Mapping[str, str]] = attrs.Factory(dict)
    """Labels of each claim that got an instance, by name."""
    waiting: list[str] = attrs.Factory(list)
    """Claims that are kept and tried again."""


class _Launching(AwsStage):
    def __init__(self, variant: Variant) -> None:
        super().__init__(variant)
        self.passes: list[_Pass] = []
        generator = self.given.get("generator") or {}
        for number in range(int(generator.get("pods", 0))):
            self.world.api.put(kinds.POD, _pod(number, generator.get("each") or {}))

    async def prepare(self, *, resolve: bool = True) -> None:
        await super().prepare(resolve=resolve)
        self.planner = self.provisioner()
        if self.variant.when == "provision":
            for each in (self.given.get("aws") or {}).get("insufficientCapacity", ()):
                for zone in each["zones"]:
                    kind = CapacityType(each["capacityType"])
                    self.operator.parts.unavailable.mark(kind, each["type"], zone)

    async def once(self) -> _Pass:
        """Plan what waits, launch what was planned, and end what could not be launched."""
        before = set(self.world.api.names(kinds.NODECLAIM))
        plan = await self.run(self.planner.serve())
        done = _Pass(plan=plan)
        names = [name for name in self.world.api.names(kinds.NODECLAIM) if name not in before]
        pools = {name: self.world.claim(name)["metadata"]["labels"][labels.NODEPOOL] for name in names}
        await self.run(self._settle(names))
        for name in names:
            if not self.world.api.exists(kinds.NODECLAIM, name):
                done.failed.append(pools[name])
            elif self.world.claim(name).get("status", {}).get("providerID"):
                done.launched[name] = self.world.claim(name)["metadata"]["labels"]
            else:
                done.waiting.append(name)
        self.passes.append(done)
        return done

    async def _settle(self, names: list[str]) -> None:
        for _ in range(3):  # launch, finish the deletion of those given up, and once more for good measure
            left = [name for name in names if self.world.api.exists(kinds.NODECLAIM, name)]
            await asyncio.gather(*(self.world.lifecycle(name) for name in left), return_exceptions=True)


def _pod(number: int, each: Wire) -> Wire:
    requests = {_RESOURCES.get(name, name): str(amount) for name, amount in each.items()}
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "metadata": {"name": f"p-{number:04d}", "namespace": "default", "labels": {"app": "generated"}},
        "spec": {"containers": [{"name": "main", "image": "pause", "resources": {"requests": requests}}]},
        "status": {"phase": "Pending", "conditions": [unschedulable]},
    }


async def _faults(variant: Variant) -> list[str]:
    stage = _Launching(variant)
    await stage.prepare()
    await _drive(stage)
    found = []
    for key, wanted in variant.expect.items():
        check = _CHECKS.get(key)
        if check is not None:
            found += [f"{key}: {fault}" for fault in await check(stage, wanted)]
        else:
            found += [f"{key}: {fault}" for fault in _of_plan(stage, key, wanted)]
    return found


async def _drive(stage: _Launching) -> None:
    """Run one pass, so many, or as many as the clock of the case has time for."""
    match = _PASSES.match(stage.variant.when)
    assert match is not None
    if stage.variant.when == "provision-run":
        end = stage.clock.now() + duration(str(stage.given.get("clock", "+30m")))
        while stage.clock.now() < end:
            await stage.once()
            await stage.clock.advance(_STEP.total_seconds())
        return
    for _ in range(int(match[1] or 1)):
        await stage.once()


# Checks


def _of_plan(stage: _Launching, key: str, wanted: Any) -> Iterator[str]:
    """Check what the engine decided in the first pass."""
    plan, problem = stage.plans[0], stage.problems[0]
    yield from provision.CHECKS[key](wanted, plan, problem)


async def _nodeclaims(stage: _Launching, wanted: list[Wire]) -> list[str]:
    """Check planned claims, and what each became in EC2."""
    planned = [{key: value for key, value in each.items() if key not in _LAUNCH_FACTS} for each in wanted]
    found = list(_of_plan(stage, "nodeclaims", planned))
    launched = [labels for each in stage.passes for labels in each.launched.values()]
    for each in wanted:
        facts = {label: each[key] for key, label in _LAUNCH_FACTS.items() if key in each}
        if facts and not any(facts.items() <= own.items() for own in launched):
            found.append(f"no instance with {facts} among {launched}")
    return found


async def _overrides(stage: _Launching, least: int) -> list[str]:
    counts = [
        sum(len(config["Overrides"]) for config in request["LaunchTemplateConfigs"])
        for request in stage.account.asked("CreateFleet")
    ]
    return [] if counts and min(counts) >= least else [f"fleet requests with {counts} overrides"]


async def _capacity_errors(stage: _Launching, wanted: int) -> list[str]:
    found = [e for e in stage.world.events.seen if e.reason == "InsufficientCapacityError"]
    return [] if len(found) == wanted else [str([each.message for each in found])]


async def _claim_deleted(stage: _Launching, wanted: bool) -> list[str]:
    first = stage.passes[0]
    deleted = bool(first.failed) and not first.waiting and not first.launched
    return [] if deleted is wanted else [f"failed {first.failed}, kept {first.waiting}"]


async def _replanned(stage: _Launching, wanted: bool) -> list[str]:
    """Check that the pods of a failed claim are planned again, and get a claim once there is hope."""
    before = {pod.uid for pod in stage.problems[0].pods}
    await stage.once()
    again = len(stage.problems) > 1 and before == {pod.uid for pod in stage.problems[-1].pods}
    stage.account.fleet_errors, stage.account.shortages[:] = (), []
    await stage.clock.advance(timedelta(minutes=30).total_seconds())
    last = await stage.once()
    placed = bool(last.launched) or bool(last.plan and last.plan.claims)
    return [] if (again and placed) is wanted else [f"planned again: {again}, placed in the end: {placed}"]


async def _mentions(stage: _Launching, words: list[str]) -> list[str]:
    missing = stage.missing_words(words)
    return [f"nothing mentions {missing}: {stage.texts()}"] if missing else []


def _available(stage: _Launching, pattern: str) -> dict[str, bool]:
    """Return which offerings that `type/zone/capacity type` matches are available."""
    types = stage.operator.parts.types.resolve(stage.node_class())
    found = {
        f"{kind.name}/{offer.zone}/{offer.capacity_type}": offer.available
        for kind in types
        for offer in kind.offerings
    }
    return {name: available for name, available in found.items() if fnmatchcase(name, pattern)}


async def _unavailable_offerings(stage: _Launching, patterns: list[str]) -> list[str]:
    found = {pattern: _available(stage, pattern) for pattern in patterns}
    return [f"{p}: {each}" for p, each in found.items() if not each or any(each.values())]


async def _available_offerings(stage: _Launching, patterns: list[str]) -> list[str]:
    found = {pattern: _available(stage, pattern) for pattern in patterns}
    return [f"{p}: {each}" for p, each in found.items() if not each or not all(each.values())]


async def _passes(stage: _Launching, wanted: list[Wire]) -> list[str]:
    faults = []
    for number, (each, done) in enumerate(zip(wanted, stage.passes, strict=True), 1):
        kinds_made = sorted({own[labels.CAPACITY_TYPE] for own in done.launched.values()})
        facts: dict[str, object] = {
            "failed": sorted(set(done.failed)),
            "created": len(done.launched),
            "createdCapacityType": "|".join(kinds_made),
            "createdType": "|".join(sorted({own[labels.INSTANCE_TYPE] for own in done.launched.values()})),
            "planned": len(done.plan.claims) if done.plan else 0,
        }
        faults += [
            f"pass {number}: {key} is {facts.get(key, 'not known')}, expected {value}"
            for key, value in each.items()
            if facts.get(key) != value
        ]
    return faults


def _failures(stage: _Launching) -> list[int]:
    return [len(each.failed) for each in stage.passes]


async def _failed_at_most(stage: _Launching, most: int) -> list[str]:
    return [] if sum(_failures(stage)) <= most else [f"{sum(_failures(stage))} claims failed"]


async def _failed_later_at_most(stage: _Launching, most: int) -> list[str]:
    """Check all but the first round, in which nobody could know; something must have been tried again."""
    later = sum(_failures(stage)[1:])
    return [] if 0 < later <= most else [f"{later} claims failed after the first batch"]


async def _fleet_calls_at_most(stage: _Launching, most: int) -> list[str]:
    calls = len(stage.account.asked("CreateFleet"))
    return [] if calls <= most else [f"{calls} calls"]


_Check = Callable[[_Launching, Any], Awaitable[list[str]]]
_CHECKS: Mapping[str, _Check] = {
    "nodeclaims": _nodeclaims,
    "fleetOverridesAtLeast": _overrides,
    "insufficientCapacityErrors": _capacity_errors,
    "claimDeleted": _claim_deleted,
    "podReplanned": _replanned,
    "conditionMustMention": _mentions,
    "offeringsUnavailable": _unavailable_offerings,
    "offeringsAvailable": _available_offerings,
    "passes": _passes,
    "failedClaimsAtMost": _failed_at_most,
    "failedClaimsAfterFirstBatchAtMost": _failed_later_at_most,
    "fleetCallsAtMost": _fleet_calls_at_most,
}

"""Cases of the claim's life that are about EC2's answers, and what the controllers write over time.

Runs the real claim controllers, provider and provisioner on a cluster and an account in memory, second by
second. `terminate-run` without facts about EC2 is `tests.cases.lifecycle`'s.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from controller.kube import kinds
from framework.api import NodePool, labels
from framework.api.crds import crd
from tests.cases.awsstage import FACTS, AwsStage
from tests.cases.files import Variant, duration

Wire = dict[str, Any]
_FACTS = FACTS | {"ec2"}
_STEP_S = 5
_LAUNCHING = timedelta(minutes=1)
"""Age of a claim that has no instance yet, where the case gives none: none may be older than five."""
_LONGEST_S = 300
_STATES = frozenset({"pending", "running", "shutting-down", "stopping", "stopped", "terminated", "NotFound"})
_EVERY_STEP = (
    *(("nodepool.hash", kinds.NODEPOOL), ("nodepool.validation", kinds.NODEPOOL)),
    *(("nodepool.readiness", kinds.NODEPOOL), ("nodepool.counter", kinds.NODEPOOL)),
    *(("nodeclaim.hydration", kinds.NODECLAIM), ("node.hydration", kinds.NODE)),
    *(("nodeclaim.lifecycle", kinds.NODECLAIM), ("node.termination", kinds.NODE)),
)


def unreachable(variant: Variant) -> str | None:
    """Return why the case cannot be run here, None when it can."""
    if variant.when not in ("reconcile-run", "terminate-run"):
        return f"when: {variant.when}"
    facts = sorted(set(variant.given) - _FACTS)
    if facts:
        return f"needs {', '.join(facts)}"
    unknown = sorted(set(variant.expect) - set(_CHECKS))
    if unknown:
        return f"expects {', '.join(unknown)}"
    strange = sorted({state for states in _answers(variant).values() for state in states} - _STATES)
    return f"needs EC2 to answer {', '.join(strange)}" if strange else None


def run(variant: Variant) -> list[str]:
    """Return what differs from the expectation; empty when the case passes."""
    return asyncio.run(_faults(variant))


async def _faults(variant: Variant) -> list[str]:
    stage = _Life(variant)
    await stage.prepare()
    await stage.live()
    checks = ((key, _CHECKS[key](stage, wanted)) for key, wanted in variant.expect.items())
    return [f"{key}: {fault}" for key, fault in checks if fault is not None]


def _answers(variant: Variant) -> dict[str, list[str]]:
    """Return the states that successive reads of each instance find."""
    given = variant.given.get("ec2") or {}
    if isinstance(given, Mapping):
        return {identifier: list(states) for identifier, states in given.items()}
    return {each["id"]: [each["state"]] for each in given if each.get("state", "running") != "running"}


class _Life(AwsStage):
    def __init__(self, variant: Variant) -> None:
        for raw in variant.given["objects"]:
            if raw["kind"] in ("Node", "NodeClaim"):
                raw["metadata"].setdefault("finalizers", [labels.TERMINATION_FINALIZER])
            if raw["kind"] == "NodeClaim" and "providerID" not in raw.get("status", {}):
                young = (variant.now - _LAUNCHING).isoformat().replace("+00:00", "Z")
                raw["metadata"].setdefault("creationTimestamp", young)
        self.before = copy.deepcopy(variant.given["objects"])
        super().__init__(variant)
        self.node_gone_when: dict[str, str] = {}
        self.claim_gone_when: dict[str, str] = {}
        given = self.given.get("ec2") or {}
        listed = {each["id"]: each for each in given} if isinstance(given, list) else {}
        for claim in self.world.mirror.claims.values():
            identifier = (claim.status.provider_id or "").rpartition("/")[2]
            if identifier and identifier not in listed:
                listed[identifier] = {"tags": {labels.NODECLAIM_TAG: claim.name}}
        for identifier, each in listed.items():
            self.account.instances[identifier] = self.machine(identifier, each)
        self.account.answers = _answers(variant)

    async def live(self) -> None:
        """Let everything run for five minutes, and on to the instant that the case names."""
        planner = self.provisioner()
        clock = self.given.get("clock")
        end = duration(clock).total_seconds() if clock else 0
        began = self.clock.monotonic()
        while (spent := self.clock.monotonic() - began) < max(end, _LONGEST_S):
            await self._step()
            await self.run(planner.serve())
            jump = end - spent - _LONGEST_S
            await self.clock.advance(jump if spent >= _LONGEST_S / 2 and jump > 0 else _STEP_S)

    async def _step(self) -> None:
        for controller, kind in _EVERY_STEP:
            for name in self.world.api.names(kind):
                if self.world.api.exists(kind, name):
                    await self.run(self.world.run(controller, name))
        await self.run(self.world.evict())
        await self.reconcile("instance.garbagecollection")
        self._note_gone(kinds.NODE, self.node_gone_when)
        self._note_gone(kinds.NODECLAIM, self.claim_gone_when)

    def _note_gone(self, kind: Any, gone: dict[str, str]) -> None:
        there = set(self.world.api.names(kind))
        for raw in self.before:
            name = raw["metadata"]["name"]
            if raw["kind"] == kind.kind and name not in there and name not in gone:
                gone[name] = self._state_of(raw)

    def _state_of(self, raw: Wire) -> str:
        """Return what EC2 knows of the instance of a node or claim."""
        provider_id = (raw["spec"] if raw["kind"] == "Node" else raw["status"])["providerID"]
        identifier = provider_id.rpartition("/")[2]
        if identifier in self.account.ended:
            return "terminated"
        record = self.account.instances.get(identifier)
        return "NotFound" if record is None or identifier in self.account.hidden else record.state


# One function per key of `expect`: what differs, or None.


def _finalizer_removed_when(stage: _Life, wanted: str) -> str | None:
    found = {**stage.node_gone_when, **stage.claim_gone_when}
    kept = [
        raw["metadata"]["name"]
        for raw in stage.before
        if raw["kind"] in ("Node", "NodeClaim") and raw["metadata"]["name"] not in found
    ]
    fine = not kept and set(found.values()) == {wanted}
    return None if fine else f"when they went EC2 knew their instances as {found}; still there: {kept}"


def _number_of(operation: str) -> Callable[[_Life, int], str | None]:
    def check(stage: _Life, wanted: int) -> str | None:
        asked = stage.account.asked(operation)
        return None if len(asked) == wanted else f"{len(asked)} calls: {asked}"

    return check


def _provider_ids(stage: _Life, wanted: Mapping[str, str]) -> str | None:
    found = {name: (stage.world.claim(name).get("status") or {}).get("providerID") for name in wanted}
    return None if found == wanted else f"{found}"


def _evicted(stage: _Life, wanted: list[str]) -> str | None:
    return None if stage.world.api.evicted == wanted else f"{stage.world.api.evicted}"


def _ended(stage: _Life, wanted: bool) -> str | None:
    asked = stage.account.asked("TerminateInstances")
    return None if bool(asked) is wanted else f"ended: {asked}"


def _total(stage: _Life, wanted: int) -> str | None:
    names = stage.world.api.names(kinds.NODECLAIM)
    return None if len(names) == wanted else f"{names}"


def _mentioned(stage: _Life, words: list[str]) -> str | None:
    missing = stage.missing_words(words)
    return f"nothing mentions {missing}" if missing else None


def _spec_unchanged(stage: _Life, wanted: bool) -> str | None:
    kept = {kind.kind: kind for kind in (kinds.NODEPOOL, kinds.EC2NODECLASS)}
    changed = [
        f"{raw['kind']}/{raw['metadata']['name']}"
        for raw in stage.before
        if raw["kind"] in kept
        and stage.world.api.read(kept[raw["kind"]], raw["metadata"]["name"])["spec"] != raw["spec"]
    ]
    return None if bool(changed) is not wanted else f"changed: {changed}"


def _status_includes(stage: _Life, wanted: list[str]) -> str | None:
    """Check the status of every NodePool for fields, and for conditions written as `conditions[Type]`.

    Fields with a default are filled in by the API server.
    """
    schema = crd(NodePool)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    defaults = {name for name, each in schema["properties"].items() if "default" in each}
    for name in stage.world.api.names(kinds.NODEPOOL):
        status = stage.world.api.read(kinds.NODEPOOL, name).get("status") or {}
        present = (
            defaults
            | set(status)
            | {f"conditions[{each['type']}]" for each in status.get("conditions") or ()}
        )
        missing = sorted(set(wanted) - present)
        if missing:
            return f"NodePool/{name} lacks {missing}; it has {sorted(present)}"
    return None


_CHECKS: Mapping[str, Callable[[_Life, Any], str | None]] = {
    "finalizerRemovedWhen": _finalizer_removed_when,
    "terminateCalls": _number_of("TerminateInstances"),
    "launchCalls": _number_of("CreateFleet"),
    "claimProviderID": _provider_ids,
    "evicted": _evicted,
    "instanceTerminated": _ended,
    "nodeclaimsTotal": _total,
    "conditionOrEventMustMention": _mentioned,
    "specUnchangedByController": _spec_unchanged,
    "statusMustInclude": _status_includes,
}

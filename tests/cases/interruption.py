"""Cases about the interruption queue: what its messages set off, and how its name is found.

`interruption` runs the real interruption controller, claim controllers and provisioner on a cluster, a
queue and an EC2 in memory; `startup` only finds the queue.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from controller import interruption
from controller.cloud.aws.gateway import Message
from controller.interruption import Queue
from controller.kube import SINGLETON, kinds
from controller.scheduling import CapacityType
from framework.api import labels
from tests.cases.awsstage import AwsStage, strangers
from tests.cases.files import Variant

Wire = dict[str, Any]
_SPOT = "EC2 Spot Instance Interruption Warning"
_REBALANCE = "EC2 Instance Rebalance Recommendation"
_MOST_POLLS = 100
_KEPT = "test/kept"
"""A finalizer that leaves a drained node to be looked at."""


def unreachable(variant: Variant) -> str | None:
    """Return why the case cannot be run here, None when it can."""
    if variant.when not in _RUNS:
        return f"when: {variant.when}"
    return strangers(variant, _CHECKS)


def run(variant: Variant) -> list[str]:
    """Return what differs from the expectation; empty when the case passes."""
    return asyncio.run(_faults(variant))


class _Interrupted(AwsStage):
    def __init__(self, variant: Variant) -> None:
        generator = variant.given.get("generator") or {}
        nodes = int(generator.get("spotNodes", 0))
        if nodes:
            variant.given["objects"] += _pool_and_class()
        for number in range(nodes + int(generator.get("rebalance", 0))):
            variant.given["objects"] += _spot_node(number)
        for raw in variant.given["objects"]:
            if raw["kind"] == "Node":
                raw["metadata"]["finalizers"] = [labels.TERMINATION_FINALIZER, _KEPT]
            if raw["kind"] == "NodeClaim":
                raw["metadata"]["finalizers"] = [labels.TERMINATION_FINALIZER]
        super().__init__(variant)
        given = (variant.given.get("settings") or {}).get("interruptionQueue", self.cluster)
        self.account.queues = frozenset(variant.given.get("queues", [self.cluster]))
        self.error = ""
        parts = self.operator.parts
        source = Queue(given=given, sqs=parts.aws.sqs, unavailable=parts.unavailable)
        specs = interruption.build(source, self.world.shell)
        self.reconcilers = [spec.reconciler for spec in specs]
        self.old = set(self.world.api.names(kinds.NODECLAIM))
        self.tainted_after: dict[str, float] = {}
        self.created_after: dict[str, float] = {}

    def fill_queue(self) -> None:
        """Put the messages of the case into the queue: those listed, or those of its generator."""
        bodies = [_event(each, self.variant.now) for each in self.given.get("queue") or ()]
        generator = self.given.get("generator") or {}
        nodes, others = int(generator.get("spotNodes", 0)), int(generator.get("rebalance", 0))
        for _ in range(int(generator.get("warningsPerNode", 0))):
            bodies += [_notice(_SPOT, f"i-node-{number}", self.variant.now) for number in range(nodes)]
        for number in range(nodes, nodes + others):
            bodies.append(_notice(_REBALANCE, f"i-node-{number}", self.variant.now))
        self.account.messages = [Message(body=body, receipt=str(n)) for n, body in enumerate(bodies)]
        self.sent = len(bodies)

    async def poll(self) -> bool:
        """Read one batch and have what follows from it done; tell whether messages are left."""
        started = self.clock.monotonic()
        for reconciler in self.reconcilers:
            await self.run(reconciler.reconcile(SINGLETON))
        for name in self.deleted():
            if self.world.api.exists(kinds.NODECLAIM, name):
                await self.run(self.world.lifecycle(name))
        for name in self.world.api.names(kinds.NODE):
            await self.run(self.world.run("node.termination", name))
            node = self.world.mirror.nodes.get(name)
            if node is not None and any(taint.key == labels.DISRUPTED_TAINT for taint in node.taints):
                self.tainted_after.setdefault(name, self.clock.monotonic() - started)
        await self.run(self.planner.serve())
        for name in self.created():
            self.created_after.setdefault(name, self.clock.monotonic() - started)
        return bool(self.account.messages)

    def deleted(self) -> list[str]:
        """Return the claims of the beginning that are going or gone."""
        return sorted(
            name
            for name in self.old
            if not self.world.api.exists(kinds.NODECLAIM, name)
            or "deletionTimestamp" in self.world.claim(name)["metadata"]
        )

    def created(self) -> list[str]:
        return sorted(set(self.world.api.names(kinds.NODECLAIM)) - self.old)


async def _messages(stage: _Interrupted) -> None:
    await stage.prepare()
    stage.planner = stage.provisioner()
    stage.fill_queue()
    for _ in range(_MOST_POLLS):
        if not await stage.poll():
            return


async def _startup(stage: _Interrupted) -> None:
    for reconciler in stage.reconcilers:
        try:
            await stage.run(reconciler.reconcile(SINGLETON))
        except Exception as exc:  # noqa: BLE001 - the case judges
            stage.error = str(exc)


_RUNS: Mapping[str, Callable[[_Interrupted], Awaitable[None]]] = {
    "interruption": _messages,
    "startup": _startup,
}


async def _faults(variant: Variant) -> list[str]:
    stage = _Interrupted(variant)
    await _RUNS[variant.when](stage)
    checks = ((key, _CHECKS[key](stage, wanted)) for key, wanted in variant.expect.items())
    return [f"{key}: {fault}" for key, fault in checks if fault is not None]


def _stamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _event(raw: Wire | str, now: datetime) -> str:
    """Return a message; what every event has beside the case's facts is filled in."""
    return raw if isinstance(raw, str) else json.dumps({"version": "0", "time": _stamp(now), **raw})


def _notice(detail_type: str, instance: str, now: datetime) -> str:
    event = {"detail-type": detail_type, "source": "aws.ec2", "detail": {"instance-id": instance}}
    return _event(event, now)


def _pool_and_class() -> list[Wire]:
    terms = [{"tags": {labels.DISCOVERY_TAG: "demo"}}]
    node_class = {
        "role": "node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": terms,
        "securityGroupSelectorTerms": terms,
    }
    return [
        {"kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": node_class},
        {
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {"template": {"spec": {"nodeClassRef": _reference(), "requirements": []}}},
        },
    ]


def _reference() -> Wire:
    return {"group": labels.AWS_GROUP, "kind": "EC2NodeClass", "name": "default"}


def _spot_node(number: int) -> list[Wire]:
    """Return a node and its claim, registered and initialized, on instance `i-node-<number>`."""
    provider_id = f"aws:///eu-west-9a/i-node-{number}"
    own = {
        labels.NODEPOOL: "default",
        labels.INSTANCE_TYPE: "m5.large",
        labels.ZONE: "eu-west-9a",
        labels.CAPACITY_TYPE: "spot",
    }
    done = [{"type": each, "status": "True"} for each in ("Launched", "Registered", "Initialized")]
    allocatable = {"cpu": "1900m", "memory": "7000Mi", "pods": "29"}
    claim = {
        "kind": "NodeClaim",
        "metadata": {
            "name": f"claim-{number}",
            "labels": dict(own),
        },
        "spec": {"nodeClassRef": _reference()},
        "status": {
            "nodeName": f"node-{number}",
            "providerID": provider_id,
            "allocatable": allocatable,
            "conditions": done,
        },
    }
    node = {
        "kind": "Node",
        "metadata": {
            "name": f"node-{number}",
            "labels": {**own, labels.REGISTERED: "true", labels.INITIALIZED: "true"},
        },
        "spec": {"providerID": provider_id},
        "status": {
            "allocatable": dict(allocatable),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return [claim, node]


# One function per key of `expect`: what differs, or None.


def _count(stage: _Interrupted, wanted: int) -> str | None:
    return None if len(stage.deleted()) == wanted else f"{stage.deleted()}"


def _deleted(stage: _Interrupted, wanted: list[str]) -> str | None:
    return None if stage.deleted() == sorted(wanted) else f"{stage.deleted()}"


def _removed(stage: _Interrupted, wanted: int) -> str | None:
    done = len(stage.account.asked("DeleteMessage"))
    return None if done == wanted and not stage.account.messages else f"{done} of {stage.sent}"


def _taint_within(stage: _Interrupted, longest: float) -> str | None:
    nodes = {_node_of(stage, name) for name in stage.deleted()} - {""}
    late = {name: stage.tainted_after.get(name) for name in nodes}
    late = {name: after for name, after in late.items() if after is None or after > longest}
    return f"seconds until the taint: {late}" if late else None


def _node_of(stage: _Interrupted, claim: str) -> str:
    """Return the name of the node that a claim of the case has, empty without one."""
    for raw in stage.given["objects"]:
        if raw["kind"] == "NodeClaim" and raw["metadata"]["name"] == claim:
            return str((raw.get("status") or {}).get("nodeName", ""))
    return ""


def _rebalance(stage: _Interrupted, wanted: str) -> str | None:
    told = [e for e in stage.world.events.seen if e.reason == "SpotRebalanceRecommendation"]
    counted = stage.world.metrics.registry.get_sample_value(
        "karpenter_nodeclaims_disrupted_total",
        {"reason": "rebalance_recommendation", "nodepool": "default", "capacity_type": "spot"},
    )
    fine = wanted == "event-only" and bool(told) and not counted
    return None if fine else f"{len(told)} events, {counted} claims ended"


def _total(stage: _Interrupted, wanted: int) -> str | None:
    return None if len(stage.created()) == wanted else f"new claims: {stage.created()}"


def _created_within(stage: _Interrupted, longest: float) -> str | None:
    late = {name: after for name, after in stage.created_after.items() if after > longest}
    return f"seconds until the claim: {late}" if late or not stage.created_after else None


def _excluded(stage: _Interrupted, wanted: list[str]) -> str | None:
    """Check that replacements were planned without these offerings, given as type/zone/capacity type."""
    for text in wanted:
        name, zone, kind = text.split("/")
        if not stage.operator.parts.unavailable.contains(CapacityType(kind), name, zone):
            return f"{text} is not marked"
        if not stage.problems:
            return "nothing was planned"
        offers = [
            offer
            for types in stage.problems[-1].instance_types.values()
            for each in types
            for offer in each.offerings
            if (each.name, offer.zone, offer.capacity_type.value) == (name, zone, kind)
        ]
        if not offers or any(offer.available for offer in offers):
            return f"{text} was planned with: {offers}"
    return None


def _excluded_now(stage: _Interrupted, wanted: list[str]) -> str | None:
    """Check that these offerings are marked, given as type/zone/capacity type."""
    marks = stage.operator.parts.unavailable
    parts = [text.split("/") for text in wanted]
    free = [each for each in parts if not marks.contains(CapacityType(each[2]), each[0], each[1])]
    return f"not marked: {free}" if free else None


def _events(stage: _Interrupted, wanted: list[str]) -> str | None:
    missing = sorted(set(wanted) - set(stage.world.events.reasons()))
    return f"no {missing} among {sorted(set(stage.world.events.reasons()))}" if missing else None


def _queue_name(stage: _Interrupted, wanted: str) -> str | None:
    asked = stage.account.asked("GetQueueUrl")
    return None if asked == [wanted] and not stage.error else f"asked for {asked}; {stage.error}"


def _error(stage: _Interrupted, wanted: list[str] | str | None) -> str | None:
    words = [wanted] if isinstance(wanted, str) else wanted or []
    missing = [word for word in words if word not in stage.error]
    if missing or bool(words) is not bool(stage.error):
        return f"the error is {stage.error!r}, it lacks {missing}"
    return None


_CHECKS: Mapping[str, Callable[[_Interrupted, Any], str | None]] = {
    "claimsDeletedCount": _count,
    "claimsDeleted": _deleted,
    "messagesDeleted": _removed,
    "maxSecondsFromReceiveToTaint": _taint_within,
    "rebalanceActions": _rebalance,
    "nodeclaimsTotal": _total,
    "createdWithinSeconds": _created_within,
    "typesMustExcludeOffering": _excluded,
    "offeringsUnavailable": _excluded_now,
    "events": _events,
    "queueNameResolved": _queue_name,
    "error": _error,
    "startupErrorMustMention": _error,
}

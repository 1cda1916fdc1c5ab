"""The `nodeclass` reconciler: resolves what an EC2NodeClass means and says whether it can be used.

Run by `charpente run` for each EC2NodeClass, and when a NodeClaim of one goes. Owns the class's status,
conditions and finalizer (spec aws/ec2nodeclass §5, §9). Every step runs on every pass; an AWS error of
one step leaves its condition as it is and is raised after the status was written, so that the loop
backs off.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import attrs

from controller.clock import Clock
from controller.cloud.aws.nodeclasssteps import Draft, Steps
from controller.cloud.aws.parts import Parts
from controller.cloud.aws.validation import DryRuns
from controller.cluster import Mirror
from controller.kube import (
    Change,
    Client,
    Event,
    EventType,
    Key,
    NotFound,
    ObjectRef,
    Recorder,
    Requeue,
    kinds,
)
from framework.api import ConditionSet, NodeClaim, labels
from framework.api.condition_types import ClassCondition
from framework.api.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus

__all__ = ["NodeClassReconciler", "class_of_gone_claim", "dependents"]

_WAIT_FOR_CLAIMS: Final = timedelta(minutes=10)
_NAMES_SHOWN: Final = 5


def dependents(*, reserved_capacity: bool) -> tuple[str, ...]:
    """Return the conditions that decide Ready."""
    reservations = (ClassCondition.CAPACITY_RESERVATIONS_READY,) if reserved_capacity else ()
    return (
        ClassCondition.AMIS_READY,
        *reservations,
        ClassCondition.SUBNETS_READY,
        ClassCondition.SECURITY_GROUPS_READY,
        ClassCondition.INSTANCE_PROFILE_READY,
        ClassCondition.VALIDATION_SUCCEEDED,
    )


def class_of_gone_claim(change: Change) -> Iterable[Key]:
    """Return the class whose finalization may go on now that one of its claims is gone."""
    if change.new is not None:
        return ()
    claim: NodeClaim = change.old
    reference = claim.spec.node_class_ref
    return () if reference is None else (Key(name=reference.name),)


class NodeClassReconciler:
    """Keeps one EC2NodeClass's status true."""

    name = "nodeclass"

    def __init__(
        self,
        parts: Parts,
        dry_runs: DryRuns,
        client: Client,
        mirror: Mirror,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        """Take the parts that resolve, and where to write."""
        self._parts = parts
        self._dry_runs = dry_runs
        self._client = client
        self._mirror = mirror
        self._recorder = recorder
        self._clock = clock
        self._steps = Steps(parts, dry_runs, mirror, clock)

    async def reconcile(self, key: Key) -> Requeue:
        """Resolve the class, or take it apart when it is being deleted."""
        node_class = self._mirror.ec2nodeclass(key.name)
        if node_class is None:
            return Requeue()
        if node_class.metadata.deletion_timestamp is not None:
            return await self._finalize(node_class)
        if labels.NODECLASS_FINALIZER not in node_class.metadata.finalizers:
            node_class = await self._set_finalizers(
                node_class, (*node_class.metadata.finalizers, labels.NODECLASS_FINALIZER)
            )
        draft = Draft(
            node_class=node_class,
            conditions=ConditionSet.of(
                node_class,
                dependents=dependents(reserved_capacity=self._parts.settings.reserved_capacity),
            ),
        )
        draft, wishes, errors = await self._steps.run(draft)
        await self._write(node_class, draft)
        self._warn(draft)
        if errors:
            raise errors[0]
        return Requeue.soonest(*wishes)

    def _warn(self, draft: Draft) -> None:
        regarding = ObjectRef.of(kinds.EC2NODECLASS, draft.node_class.metadata)
        self._recorder.publish(
            *(
                Event(regarding=regarding, reason=reason, message=message, type=EventType.WARNING)
                for reason, message in draft.warnings
            )
        )

    async def _write(self, before: EC2NodeClass, draft: Draft) -> None:
        status = attrs.evolve(draft.node_class.status, conditions=draft.conditions.conditions)
        if status == before.status:
            return
        answer = await self._client.patch(
            kinds.EC2NODECLASS,
            before.metadata.name,
            {
                "metadata": {"resourceVersion": before.metadata.resource_version},
                "status": _replacing(before.status, status),
            },
            subresource="status",
        )
        self._mirror.apply(kinds.EC2NODECLASS, answer)

    async def _set_finalizers(self, node_class: EC2NodeClass, finalizers: tuple[str, ...]) -> EC2NodeClass:
        answer = await self._client.patch(
            kinds.EC2NODECLASS,
            node_class.metadata.name,
            {
                "metadata": {
                    "resourceVersion": node_class.metadata.resource_version,
                    "finalizers": list(finalizers),
                }
            },
        )
        self._mirror.apply(kinds.EC2NODECLASS, answer)
        return EC2NodeClass.from_wire(answer)

    async def _finalize(self, node_class: EC2NodeClass) -> Requeue:
        """Take apart what was made for the class, once no claim uses it (spec aws/ec2nodeclass §9)."""
        finalizers = node_class.metadata.finalizers
        if labels.NODECLASS_FINALIZER not in finalizers:
            return Requeue()
        users = sorted(
            claim.metadata.name
            for claim in self._mirror.claims.values()
            if (reference := self._mirror.class_ref(claim)) is not None
            and reference.name == node_class.metadata.name
        )
        if users:
            self._recorder.publish(_waiting(node_class, users))
            return Requeue(_WAIT_FOR_CLAIMS)
        if not self._parts.settings.isolated_vpc:
            await self._parts.profiles.delete_of(node_class)
        await self._parts.launcher.templates.delete_of(node_class)
        left = tuple(item for item in finalizers if item != labels.NODECLASS_FINALIZER)
        with contextlib.suppress(NotFound):  # somebody else took the last finalizer off
            await self._set_finalizers(node_class, left)
        self._dry_runs.forget(node_class.metadata.uid)
        return Requeue()


def _waiting(node_class: EC2NodeClass, users: list[str]) -> Event:
    shown = ", ".join(users[:_NAMES_SHOWN])
    more = f" and {len(users) - _NAMES_SHOWN} more" if len(users) > _NAMES_SHOWN else ""
    return Event(
        regarding=ObjectRef.of(kinds.EC2NODECLASS, node_class.metadata),
        reason="WaitingOnNodeClaimTermination",
        message=f"Waiting on NodeClaim termination for {shown}{more}",
    )


def _replacing(before: EC2NodeClassStatus, after: EC2NodeClassStatus) -> dict[str, Any]:
    """Return a merge patch that turns one status into the other: what is not there any more is null."""
    old, new = before.to_wire(), after.to_wire()
    return {**dict.fromkeys(old), **new}

"""Drift: whether a claim is still what its pool and class ask for (spec core/lifecycle §9.1).

Called by the claim's disruption conditions. The first reason that holds wins; the last one is the
provider's.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from controller.clock import Clock
from controller.cloud.provider import CloudError, Drifted, NodeClaimNotFound, Provider
from controller.scheduling import CapacityType, InstanceType, Requirement, Requirements
from framework.api import NodeClaim, NodePool, Operator, labels
from framework.api.hashes import nodepool_document, what_changed
from framework.api.schedulingconfig import DriftSource

__all__ = ["Drift", "DriftReason", "template_changed"]

_TYPES_AFTER: Final = timedelta(hours=1)
"""Age from which a claim's instance type is looked for: lists lag behind launches."""
_TYPES_EVERY: Final = timedelta(minutes=30)
_RESERVATION: Final = (labels.CAPACITY_RESERVATION_ID, labels.CAPACITY_RESERVATION_TYPE)


class DriftReason(StrEnum):
    """Why a claim drifted, beside the provider's own reasons."""

    POOL = "NodePoolDrifted"
    REQUIREMENTS = "RequirementsDrifted"
    INSTANCE_TYPE = "InstanceTypeNotFound"


def template_changed(claim: NodeClaim, pool: NodePool) -> bool:
    """Tell whether the pool's template changed since, by the hashes both carry under one version."""
    mine, theirs = claim.metadata.annotations, pool.metadata.annotations
    versions = (mine.get(labels.NODEPOOL_HASH_VERSION), theirs.get(labels.NODEPOOL_HASH_VERSION))
    hashes = (mine.get(labels.NODEPOOL_HASH), theirs.get(labels.NODEPOOL_HASH))
    if None in versions or None in hashes or versions[0] != versions[1]:
        return False
    return hashes[0] != hashes[1]


class Drift:
    """Finds out whether and why a claim drifted."""

    def __init__(self, provider: Provider, clock: Clock) -> None:
        """Keep the arguments."""
        self._provider = provider
        self._clock = clock
        self._types_seen: dict[str, datetime] = {}

    async def judge(
        self, claim: NodeClaim, pool: NodePool, ignored: frozenset[DriftSource]
    ) -> Drifted | None:
        """Return how the claim drifted, or None; what is ignored by its SchedulingConfig does not count.

        Raises CloudError when the provider cannot tell.
        """
        if DriftSource.NODE_POOL not in ignored and template_changed(claim, pool):
            made_from = claim.metadata.annotations.get(labels.NODEPOOL_HASH_DOCUMENT)
            words = what_changed(made_from, nodepool_document(pool))
            return Drifted(reason=DriftReason.POOL, message=f"NodePool {pool.name}, template: {words}")
        if DriftSource.REQUIREMENTS not in ignored:
            why = await self._unmet(claim, pool)
            if why is not None:
                words = f"NodePool {pool.name}, requirements: {why}"
                return Drifted(reason=DriftReason.REQUIREMENTS, message=words)
        if await self._type_is_gone(claim, pool):
            name = claim.metadata.labels.get(labels.INSTANCE_TYPE)
            return Drifted(
                reason=DriftReason.INSTANCE_TYPE, message=f"instance type {name} is not sold any more"
            )
        try:
            return await self._provider.drift(claim, pool, ignored=ignored)
        except NodeClaimNotFound:
            return None

    async def _unmet(self, claim: NodeClaim, pool: NodePool) -> str | None:
        """Return which requirement of the pool the claim's labels do not meet, None when they meet all.

        A label that the claim lacks because its launcher did not know it yet is taken from its type.
        """
        wanted = Requirements.from_specs(pool.spec.template.spec.requirements)
        own = claim.metadata.labels
        why = Requirements.from_labels(own).why_not(wanted)
        if why is None or wanted.keys() <= own.keys():
            return why
        types = await self._provider.instance_types(pool)
        kind = next((each for each in types if each.name == own.get(labels.INSTANCE_TYPE)), None)
        known = kind.requirements.labels() if kind is not None else {}
        return Requirements.from_labels({**known, **own}).why_not(wanted)

    async def _type_is_gone(self, claim: NodeClaim, pool: NodePool) -> bool:
        now, created = self._clock.now(), claim.metadata.creation_timestamp
        if created is None or now - created < _TYPES_AFTER:
            return False
        self._types_seen = {uid: at for uid, at in self._types_seen.items() if now - at < _TYPES_EVERY}
        if claim.metadata.uid in self._types_seen:
            return False
        try:
            types = await self._provider.instance_types(pool)
        except CloudError:
            return False
        name = claim.metadata.labels.get(labels.INSTANCE_TYPE)
        if any(each.name == name and _offered(each, claim) for each in types):
            self._types_seen[claim.metadata.uid] = now
            return False
        return True


def _offered(instance_type: InstanceType, claim: NodeClaim) -> bool:
    """Tell whether the type has an offering, available or not, that the claim could have come from.

    A reservation may have turned into on-demand since, so a reserved claim is looked for under both.
    """
    own = dict(claim.metadata.labels)
    capacity_type = own.get(labels.CAPACITY_TYPE)
    zone, allowed = own.get(labels.ZONE), {capacity_type}
    if capacity_type == CapacityType.RESERVED:
        allowed.add(CapacityType.ON_DEMAND)
        for key in _RESERVATION:
            own.pop(key, None)
    wanted = Requirements.of(
        Requirement.new(labels.CAPACITY_TYPE, Operator.IN, sorted(filter(None, allowed))),
        *((Requirement.new(labels.ZONE, Operator.IN, (zone,)),) if zone else ()),
    )
    return any(offering.allowed_by(wanted) for offering in instance_type.offerings)

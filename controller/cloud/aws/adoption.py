"""Finds the instance that an interrupted launch left behind, so that nothing is launched twice.

CreateFleet is batched, and the instances of one call share their tags, so no tag can name one claim.
Instead each instance carries a digest of what its claim asked for. When the process died (or the
answer was lost) between CreateFleet and the write of the claim's status, the next attempt for the claim
first takes an instance with its digest that no claim has and nobody was given. Claims with equal
digests are interchangeable, so it does not matter which takes which; what is left over is ended by the
garbage collection. An instance that carries the claim's name, which is tagged on once it has registered,
is the claim's as well: its status was lost. The search costs one DescribeInstances and happens only when
it can matter: for claims older than this process, and after an answer that was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from controller.clock import Clock
from controller.cloud.aws.gateway.records import InstanceRecord
from controller.cloud.aws.instances import Instances
from controller.cloud.aws.launchplan import launch_digest
from controller.cloud.aws.providerid import instance_id
from controller.cloud.aws.ttl import TtlCache
from framework.api import NodeClaim, labels

__all__ = ["Adoption"]

_SPOKEN_FOR: Final = timedelta(minutes=10)
"""How long an instance counts as given away although no claim's status shows it."""
_LIST_TTL: Final = timedelta(seconds=2)
_USABLE: Final = frozenset({"pending", "running"})


class Adoption:
    """Remembers who was given which instance, and finds those that were given to nobody."""

    def __init__(self, instances: Instances, clock: Clock, *, recorded: Callable[[], frozenset[str]]) -> None:
        """`recorded` returns the provider ids that NodeClaims show."""
        self._instances = instances
        self._recorded = recorded
        self._started = clock.now()
        self._given: TtlCache[str, str] = TtlCache(clock, _SPOKEN_FOR)
        self._lost_answers: set[str] = set()
        self._listed: TtlCache[str, tuple[InstanceRecord, ...]] = TtlCache(clock, _LIST_TTL)
        self._lock = asyncio.Lock()

    def give(self, identifier: str, uid: str) -> None:
        """Remember that a claim was given this instance."""
        self._given.put(identifier, uid)
        self._lost_answers.discard(uid)

    def lost_answer(self, uid: str) -> None:
        """Remember that a launch for this claim may have taken effect unseen."""
        self._lost_answers.add(uid)

    def is_given(self, identifier: str) -> bool:
        """Tell whether some claim was given this instance a short while ago."""
        return self._given.get(identifier) is not None

    async def find(self, claim: NodeClaim, class_name: str) -> InstanceRecord | None:
        """Return an instance launched for a claim like this one that nobody has, now given to it.

        Raises: AwsError.
        """
        uid = claim.metadata.uid
        created = claim.metadata.creation_timestamp
        if uid not in self._lost_answers and (created is None or created >= self._started):
            return None
        digest = launch_digest(claim, class_name)
        async with self._lock:
            listed = self._listed.get("") or self._listed.put("", await self._instances.list())
            recorded = {instance_id(text) for text in self._recorded()}
            for record in listed:
                if (
                    _was_for(record, claim, digest)
                    and record.state in _USABLE
                    and record.id not in recorded
                    and not self.is_given(record.id)
                    and _could_be_for(record, created)
                ):
                    self.give(record.id, uid)
                    return record
        return None


def _was_for(record: InstanceRecord, claim: NodeClaim, digest: str) -> bool:
    """Tell whether an instance was launched for what the claim asks for, or carries the claim's name."""
    return digest == record.tags.get(labels.LAUNCH_TAG) or claim.name == record.tags.get(labels.NODECLAIM_TAG)


def _could_be_for(record: InstanceRecord, created: datetime | None) -> bool:
    """An instance older than the claim was launched for another; EC2's times have whole seconds."""
    return created is None or record.launched >= created - timedelta(seconds=1)

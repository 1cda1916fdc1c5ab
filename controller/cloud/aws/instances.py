"""Reading and ending instances (spec aws/launch §10).

Used by the provider and its controllers. Owns the batching of DescribeInstances and TerminateInstances
and a short cache of what was read; knows nothing of claims.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from controller.clock import Clock
from controller.cloud.aws.batcher import Batcher, ObserveBatch, ignore_batches
from controller.cloud.aws.errors import AwsError, AwsNotFound
from controller.cloud.aws.gateway import Ec2, Filter, tag_filters
from controller.cloud.aws.gateway.records import InstanceRecord
from controller.cloud.aws.ttl import TtlCache
from framework.api import labels
from framework.iam.calls import Batch, Service, call

__all__ = ["Instances"]

_TTL: Final = timedelta(minutes=1)
_FILTER_VALUES: Final = 200
"""Most values that EC2 takes in one filter."""
_ENDING: Final = frozenset({"shutting-down", "terminated"})
_DOUBTED: Final = timedelta(seconds=10)
"""How long EC2 has to know nothing of an instance until it counts as gone: its reads lag behind."""
_YOUNG: Final = timedelta(minutes=1)
"""Up to that age an instance that EC2 does not know is not yet known, rather than gone."""
_REMEMBERED: Final = timedelta(minutes=10)


class _Absent(Enum):
    """Why there is no record of an instance."""

    ENDED = "ended"
    """EC2 knows it as terminated."""
    UNKNOWN = "unknown"
    """EC2 knows no such id, which may be the word of a replica that lags behind."""


def _batch(operation: str) -> Batch:
    batch = call(Service.EC2, operation).batch
    if batch is None:
        raise ValueError(f"the call table gives {operation} no batch")
    return batch


class Instances:
    """The instances of one cluster."""

    def __init__(
        self, ec2: Ec2, clock: Clock, *, cluster: str, observe: ObserveBatch = ignore_batches
    ) -> None:
        """Read only what carries the cluster's tags."""
        self._ec2 = ec2
        self._cluster = cluster
        self._known: TtlCache[str, InstanceRecord] = TtlCache(clock, _TTL)
        self._clock = clock
        self._launched: TtlCache[str, datetime] = TtlCache(clock, _REMEMBERED)
        self._missed: TtlCache[str, datetime] = TtlCache(clock, _REMEMBERED)
        self._describe: Batcher[str, InstanceRecord | _Absent] = Batcher(
            _batch("DescribeInstances"), lambda _: "ids", self._describe_all, clock, observe
        )
        self._terminate: Batcher[str, str] = Batcher(
            _batch("TerminateInstances"), lambda _: "ids", self._terminate_all, clock, observe
        )

    async def list(self) -> tuple[InstanceRecord, ...]:
        """Return every instance of the cluster that is not terminated. Raises: AwsError."""
        wanted = tag_filters(
            {
                labels.NODEPOOL: "*",
                labels.EC2NODECLASS: "*",
                labels.EKS_CLUSTER_NAME_TAG: self._cluster,
            }
        )
        records = await self._ec2.instances(wanted)
        self._known.clear()
        for record in records:
            self._known.put(record.id, record)
        return records

    async def get(self, identifier: str, *, fresh: bool = False) -> InstanceRecord | None:
        """Return one instance, or None when it is gone; `fresh` asks EC2 whatever is known."""
        known = None if fresh else self._known.get(identifier)
        if known is not None:
            return known
        found = await self._look(identifier)
        return None if isinstance(found, _Absent) else found

    async def terminate(self, identifier: str) -> None:
        """Start ending an instance, or go on; one that is ending is fine.

        Raises: AwsNotFound once it is gone: terminated, or unknown to EC2 for 10 s; AwsError.
        """
        found = await self._look(identifier)
        if found is _Absent.ENDED or (found is _Absent.UNKNOWN and self._believed(identifier)):
            self._missed.drop(identifier)
            raise AwsNotFound("ec2:DescribeInstances", "InvalidInstanceID.NotFound", identifier)
        if isinstance(found, _Absent):
            return
        self._missed.drop(identifier)
        if found.state not in _ENDING:
            await self._terminate.submit(identifier)
            self._known.drop(identifier)

    def _believed(self, identifier: str) -> bool:
        """Tell whether an instance that EC2 does not know has been unknown for long enough to be gone."""
        now = self._clock.now()
        since = self._missed.get(identifier) or self._missed.put(identifier, now)
        launched = self._launched.get(identifier)
        return now - since >= _DOUBTED and (launched is None or now - launched > _YOUNG)

    async def _look(self, identifier: str) -> InstanceRecord | _Absent:
        found = await self._describe.submit(identifier)
        if isinstance(found, _Absent):
            self._known.drop(identifier)
        else:
            self._known.put(identifier, found)
            self._launched.put(identifier, found.launched)
        return found

    async def _describe_all(self, ids: Sequence[str]) -> Sequence[InstanceRecord | _Absent | BaseException]:
        found, absent = await self._described(tuple(sorted(set(ids))))
        return [found.get(identifier, absent) for identifier in ids]

    async def _described(self, ids: tuple[str, ...]) -> tuple[dict[str, InstanceRecord], _Absent]:
        """Return the instances that EC2 knows and that are not terminated, and what the others are."""
        absent = _Absent.ENDED
        try:
            records = await self._ec2.instances((), ids)
        except AwsNotFound:
            absent = _Absent.UNKNOWN
            # One unknown id fails the whole call. A filter does not mind, but takes fewer values; asking
            # for each id by itself would cost hundreds of calls when many instances go at once.
            chunks = [ids[start : start + _FILTER_VALUES] for start in range(0, len(ids), _FILTER_VALUES)]
            answers = await asyncio.gather(
                *(self._ec2.instances((Filter("instance-id", chunk),)) for chunk in chunks)
            )
            records = tuple(record for answer in answers for record in answer)
        return {record.id: record for record in records}, absent

    async def _terminate_all(self, ids: Sequence[str]) -> Sequence[str | BaseException]:
        unique = tuple(sorted(set(ids)))
        states: dict[str, str] = {}
        try:
            states = dict(await self._ec2.terminate(unique))
        except AwsNotFound:  # one unknown id fails the whole call: leave out those that are gone
            known, _ = await self._described(unique)
            states = dict.fromkeys(set(unique) - set(known), "terminated")
            if known:
                with contextlib.suppress(AwsNotFound):
                    states.update(await self._ec2.terminate(tuple(sorted(known))))
        missing = [each for each in unique if states.get(each) not in _ENDING]
        answers: dict[str, str | BaseException] = dict(states)
        if missing:
            single = await asyncio.gather(*(self._terminate_one(each) for each in missing))
            answers.update(zip(missing, single, strict=True))
        return [answers[identifier] for identifier in ids]

    async def _terminate_one(self, identifier: str) -> str | BaseException:
        try:
            return (await self._ec2.terminate((identifier,))).get(identifier, "")
        except AwsNotFound:
            return "terminated"
        except AwsError as exc:
            return exc

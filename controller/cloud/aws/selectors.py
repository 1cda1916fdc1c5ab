"""Which subnets, security groups and reservations a node class means (spec aws/ec2nodeclass §5.4).

Called by the `nodeclass` reconciler. Owns the queries that selector terms become, and their cache;
terms are ORed, what stands in one term is ANDed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from controller.clock import Clock
from controller.cloud.aws.gateway import Ec2, Filter, tag_filters
from controller.cloud.aws.gateway.records import (
    ReservationRecord,
    SecurityGroupRecord,
    SubnetRecord,
)
from controller.cloud.aws.ttl import TtlCache
from framework.api.ec2nodeclass import (
    CapacityReservation,
    EC2NodeClass,
    ReservationState,
    ReservationType,
)
from framework.api.ec2selectors import (
    CapacityReservationSelectorTerm,
    InstanceMatchCriteria,
    SecurityGroupSelectorTerm,
    SubnetSelectorTerm,
)

__all__ = ["Selectors", "class_key", "group_queries", "reservation_queries", "subnet_queries", "to_status"]

_TTL: Final = timedelta(minutes=1)
_BLOCK_ENDS_BEFORE: Final = timedelta(minutes=40)
"""Capacity blocks are drained this long before their end."""

Query = tuple[Filter, ...]


def class_key(node_class: EC2NodeClass) -> str:
    """Return the cache key of a class: a new generation asks again."""
    return f"{node_class.metadata.uid}-{node_class.metadata.generation}"


def subnet_queries(terms: Sequence[SubnetSelectorTerm]) -> tuple[Query, ...]:
    """Return one query per tag term, and one for all ids together; an id beats tags."""
    ids = tuple(sorted({term.id for term in terms if term.id}))
    tagged = [tag_filters(term.tags) for term in terms if not term.id]
    return ((Filter("subnet-id", ids),), *tagged) if ids else tuple(tagged)


def group_queries(terms: Sequence[SecurityGroupSelectorTerm]) -> tuple[Query, ...]:
    """Return one query per tag term, one for all ids and one for all names; id beats name beats tags."""
    ids = tuple(sorted({term.id for term in terms if term.id}))
    names = tuple(sorted({term.name for term in terms if term.name and not term.id}))
    tagged = [tag_filters(term.tags) for term in terms if not term.id and not term.name]
    named = [
        (Filter(field, values),) for field, values in (("group-id", ids), ("group-name", names)) if values
    ]
    return (*named, *tagged)


def reservation_queries(terms: Sequence[CapacityReservationSelectorTerm]) -> tuple[Query, ...]:
    """Return one query per term that has no id."""
    queries = []
    for term in terms:
        if term.id:
            continue
        filters = [Filter("owner-id", (term.owner_id,))] if term.owner_id else []
        if term.instance_match_criteria:
            filters.append(Filter("instance-match-criteria", (term.instance_match_criteria.value,)))
        queries.append((*filters, *tag_filters(term.tags)))
    return tuple(queries)


class Selectors:
    """Asks EC2 what a class's selectors match."""

    def __init__(
        self,
        ec2: Ec2,
        clock: Clock,
        *,
        subnet_ttl: timedelta = _TTL,
        seen_subnets: Callable[[Sequence[SubnetRecord]], None],
        seen_reservations: Callable[[Sequence[ReservationRecord]], None],
    ) -> None:
        """Keep answers for a minute; subnets as long as the operator set.

        The two callbacks get every fresh answer of EC2, since it also has counts.
        """
        self._seen_subnets = seen_subnets
        self._seen_reservations = seen_reservations
        self._ec2 = ec2
        self._clock = clock
        self._subnets: TtlCache[str, tuple[SubnetRecord, ...]] = TtlCache(clock, subnet_ttl)
        self._groups: TtlCache[str, tuple[SecurityGroupRecord, ...]] = TtlCache(clock, _TTL)
        self._reservations: TtlCache[str, tuple[ReservationRecord, ...]] = TtlCache(clock, _TTL)

    async def subnets(self, node_class: EC2NodeClass) -> tuple[SubnetRecord, ...]:
        """Return the subnets, those with most free addresses first, then by id. Raises: AwsError."""
        key = class_key(node_class)
        known = self._subnets.get(key)
        if known is not None:
            return known
        queries = subnet_queries(node_class.spec.subnet_selector_terms)
        answers = await asyncio.gather(*(self._ec2.subnets(query) for query in queries))
        found = {item.id: item for answer in answers for item in answer}
        ordered = tuple(sorted(found.values(), key=lambda item: (-item.free_addresses, item.id)))
        self._seen_subnets(ordered)
        return self._subnets.put(key, ordered)

    async def security_groups(self, node_class: EC2NodeClass) -> tuple[SecurityGroupRecord, ...]:
        """Return the security groups, by id. Raises: AwsError."""
        key = class_key(node_class)
        known = self._groups.get(key)
        if known is not None:
            return known
        queries = group_queries(node_class.spec.security_group_selector_terms)
        answers = await asyncio.gather(*(self._ec2.security_groups(query) for query in queries))
        found = {item.id: item for answer in answers for item in answer}
        return self._groups.put(key, tuple(found[identifier] for identifier in sorted(found)))

    async def reservations(self, node_class: EC2NodeClass) -> tuple[ReservationRecord, ...]:
        """Return the active reservations that have not ended, by id. Raises: AwsError."""
        key = class_key(node_class)
        known = self._reservations.get(key)
        if known is None:
            known = self._reservations.put(key, await self._read_reservations(node_class))
        now = self._clock.now()
        return tuple(item for item in known if item.end is None or item.end > now)

    async def _read_reservations(self, node_class: EC2NodeClass) -> tuple[ReservationRecord, ...]:
        terms = node_class.spec.capacity_reservation_selector_terms
        ids = sorted({term.id for term in terms if term.id})
        single = await asyncio.gather(*(self._ec2.reservation(identifier) for identifier in ids))
        answers = await asyncio.gather(
            *(self._ec2.reservations(query) for query in reservation_queries(terms))
        )
        found = {item.id: item for item in single if item is not None}
        found.update({item.id: item for answer in answers for item in answer})
        records = tuple(found[identifier] for identifier in sorted(found))
        self._seen_reservations(records)
        return records


def to_status(record: ReservationRecord, now: datetime) -> CapacityReservation | None:
    """Return the reservation as a class's status shows it, or None when its kind is not known."""
    try:
        criteria = InstanceMatchCriteria(record.match_criteria)
        kind = ReservationType(record.reservation_type or ReservationType.DEFAULT)
    except ValueError:
        return None
    ending = (
        kind is ReservationType.CAPACITY_BLOCK
        and record.end is not None
        and now >= record.end - _BLOCK_ENDS_BEFORE
    )
    return CapacityReservation(
        availability_zone=record.zone,
        end_time=record.end,
        id=record.id,
        instance_match_criteria=criteria,
        instance_type=record.instance_type,
        owner_id=record.owner,
        reservation_type=kind,
        state=ReservationState.EXPIRING if ending else ReservationState.ACTIVE,
    )

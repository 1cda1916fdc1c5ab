"""Ends what no object in the cluster stands for: instances and instance profiles (spec aws/launch §12).

Singleton reconcilers run by `charpente run`. Instances are listed before claims, so that a claim
written in between is never missed; an instance that a claim is about to take, or was just given, is
left alone.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import structlog

from controller.clock import Clock
from controller.cloud.aws.errors import AwsError
from controller.cloud.aws.launchplan import launch_digest
from controller.cloud.aws.parts import Parts
from controller.cloud.aws.provider import AwsProvider
from controller.cloud.aws.providerid import instance_id
from controller.cloud.provider import CloudError, Instance, NodeClaimNotFound
from controller.cluster import Mirror
from controller.kube import Client, Key, NotFound, Requeue, kinds
from framework.api import labels

__all__ = ["InstanceCollector", "ProfileCollector"]

_log: Final = structlog.get_logger("controller")
_GRACE: Final = timedelta(seconds=30)
_EAGER_RUNS: Final = 20
_EAGER: Final = timedelta(seconds=10)
_CALM: Final = timedelta(minutes=2)
_PROFILES_EVERY: Final = timedelta(minutes=30)
_WORKERS: Final = 100


class InstanceCollector:
    """Ends instances that no claim has."""

    name = "instance.garbagecollection"

    def __init__(self, provider: AwsProvider, client: Client, mirror: Mirror, clock: Clock) -> None:
        """Start eager: the first runs come every 10 s."""
        self._provider = provider
        self._client = client
        self._mirror = mirror
        self._clock = clock
        self._runs = 0

    async def reconcile(self, key: Key) -> Requeue:
        """Compare instances with claims and end what is left over. Raises: CloudError."""
        del key
        instances = await self._provider.list()
        known = {claim.status.provider_id for claim in self._mirror.claims.values()}
        wanted = self._wanted_digests()
        orphans = [
            instance
            for instance in instances
            if instance.provider_id not in known and self._is_orphan(instance, wanted)
        ]
        slots = asyncio.Semaphore(_WORKERS)
        results = await asyncio.gather(*(self._end(orphan, slots) for orphan in orphans))
        failed = [error for error in results if error is not None]
        if failed:
            raise failed[0]
        self._runs += 1
        return Requeue(_EAGER if self._runs <= _EAGER_RUNS else _CALM)

    def _wanted_digests(self) -> frozenset[str]:
        """Return what claims without an instance ask for; their instance may be among the orphans."""
        found = set()
        for claim in self._mirror.claims.values():
            reference = self._mirror.class_ref(claim)
            if not claim.status.provider_id and reference is not None:
                found.add(launch_digest(claim, reference.name))
        return frozenset(found)

    def _is_orphan(self, instance: Instance, wanted: frozenset[str]) -> bool:
        identifier = instance_id(instance.provider_id) or ""
        return (
            not instance.deleting
            and self._clock.now() - instance.created > _GRACE
            and not self._provider.adoption.is_given(identifier)
            and instance.tags.get(labels.LAUNCH_TAG) not in wanted
        )

    async def _end(self, orphan: Instance, slots: asyncio.Semaphore) -> CloudError | None:
        async with slots:
            try:
                await self._provider.delete(orphan.provider_id)
            except NodeClaimNotFound:
                pass  # it went by itself; its Node may still be there
            except CloudError as exc:
                return exc
            _log.info("ended an instance that no NodeClaim has", provider_id=orphan.provider_id)
            for node in list(self._mirror.nodes.values()):
                if node.provider_id == orphan.provider_id:
                    await self._delete_node(node.name)
        return None

    async def _delete_node(self, name: str) -> None:
        try:
            await self._client.delete(kinds.NODE, name)
        except NotFound:
            return


class ProfileCollector:
    """Deletes instance profiles that no class and no claim uses."""

    name = "instanceprofile.garbagecollection"

    def __init__(self, parts: Parts, mirror: Mirror) -> None:
        """Look after the parts' profiles."""
        self._parts = parts
        self._mirror = mirror

    async def reconcile(self, key: Key) -> Requeue:
        """Compare profiles with classes and claims. Raises: AwsError."""
        del key
        in_use = {
            node_class.status.instance_profile
            for node_class in self._mirror.ec2nodeclasses.values()
            if node_class.status.instance_profile
        }
        for claim in self._mirror.claims.values():
            name = claim.metadata.annotations.get(labels.INSTANCE_PROFILE_NAME)
            if name:
                in_use.add(name)
        try:
            await self._parts.profiles.collect(frozenset(name for name in in_use if name))
        except AwsError as exc:
            _log.error("instance profiles could not be collected", error=str(exc))
            raise
        return Requeue(_PROFILES_EVERY)

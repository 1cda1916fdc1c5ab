"""Instance profiles made from a class's role (spec aws/ec2nodeclass §8).

Called by the `nodeclass` reconciler and the `instanceprofile.garbagecollection` reconciler. Owns
names, paths, the guard against making one twice, and the protection of fresh ones from collection.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from controller.clock import Clock
from controller.cloud.aws.errors import AwsError, AwsNotFound
from controller.cloud.aws.gateway import Iam
from controller.cloud.aws.gateway.records import ProfileRecord
from controller.cloud.aws.tags import profile_tags
from controller.cloud.aws.ttl import TtlCache
from framework.api.ec2nodeclass import EC2NodeClass

__all__ = ["Profiles", "RoleNotFound"]

_READ_TTL: Final = timedelta(minutes=15)
_RECREATION_TTL: Final = timedelta(minutes=1)
_MISSING_ROLE_TTL: Final = timedelta(minutes=1)
_PROTECTION: Final = timedelta(hours=1)


class RoleNotFound(AwsNotFound):
    """The class's role does not exist in IAM."""


class Profiles:
    """The instance profiles of one cluster."""

    def __init__(
        self, iam: Iam, clock: Clock, *, region: str, cluster: str, new_id: Callable[[], str]
    ) -> None:
        """`new_id` gives a fresh random text per profile, since names are not deterministic."""
        self._iam = iam
        self._region = region
        self._cluster = cluster
        self._new_id = new_id
        self._read: TtlCache[str, ProfileRecord] = TtlCache(clock, _READ_TTL)
        self._recent: TtlCache[tuple[str, str], str] = TtlCache(clock, _RECREATION_TTL)
        self._missing_roles: TtlCache[str, RoleNotFound] = TtlCache(clock, _MISSING_ROLE_TTL)
        self._protected: TtlCache[str, bool] = TtlCache(clock, _PROTECTION)

    @property
    def root(self) -> str:
        """Return the path under which every profile of the cluster lies."""
        return f"/karpenter/{self._region}/{self._cluster}/"

    def _path(self, node_class: EC2NodeClass) -> str:
        return f"{self.root}{node_class.metadata.uid}/"

    def _name(self, node_class: EC2NodeClass, salt: str = "") -> str:
        text = f"{self._region}{node_class.metadata.name}{salt}"
        return f"{self._cluster}_{int(hashlib.sha256(text.encode()).hexdigest()[:16], 16)}"

    async def ensure(self, node_class: EC2NodeClass) -> str:
        """Return the name of a profile that carries the class's role, made if need be.

        Raises: RoleNotFound, AwsError.
        """
        if node_class.spec.instance_profile:
            return node_class.spec.instance_profile
        role = (node_class.spec.role or "").rpartition("/")[2]
        current = node_class.status.instance_profile
        if current and await self._carries(current, role):
            return current
        missing = self._missing_roles.get(role)
        if missing is not None:
            raise missing
        guard = (role, node_class.metadata.uid)
        recent = self._recent.get(guard)
        if recent is not None:
            return recent
        name = await self._create(node_class, role)
        for protected in filter(None, (name, current)):
            self._protected.put(protected, True)
        return self._recent.put(guard, name)

    async def _carries(self, name: str, role: str) -> bool:
        record = self._read.get(name)
        if record is None:
            record = await self._iam.profile(name)
            if record is not None:
                self._read.put(name, record)
        return record is not None and record.roles == (role,)

    async def _create(self, node_class: EC2NodeClass, role: str) -> str:
        name = self._name(node_class, self._new_id())
        existing = await self._iam.profile(name)
        if existing is None:
            tags = profile_tags(node_class, self._cluster, self._region)
            await self._iam.create_profile(name, self._path(node_class), tags)
        try:
            for attached in existing.roles if existing else ():
                await self._iam.remove_role(name, attached)
            await self._iam.add_role(name, role)
        except AwsError as exc:
            await self._discard(name)
            if isinstance(exc, AwsNotFound) and role in exc.message:
                missing = RoleNotFound(exc.operation, exc.code, exc.message)
                self._missing_roles.put(role, missing)
                raise missing from exc
            raise
        return name

    async def _discard(self, name: str) -> None:
        try:
            await self._iam.delete_profile(name)
        except AwsError:
            return  # the garbage collection of profiles comes by later

    async def delete(self, profile: ProfileRecord) -> None:
        """Detach the role and delete the profile."""
        for role in profile.roles:
            await self._iam.remove_role(profile.name, role)
        await self._iam.delete_profile(profile.name)
        self._read.drop(profile.name)

    async def delete_of(self, node_class: EC2NodeClass) -> None:
        """Delete every profile of a class, and the one older releases made for it."""
        found = list(await self._iam.profiles(self._path(node_class)))
        legacy = await self._iam.profile(self._name(node_class))
        for profile in [*found, *([legacy] if legacy is not None else [])]:
            await self.delete(profile)

    async def collect(self, in_use: frozenset[str]) -> tuple[str, ...]:
        """Delete the cluster's profiles that are neither in use nor fresh; return their names."""
        gone = []
        for profile in await self._iam.profiles(self.root):
            if profile.name not in in_use and not self._protected.get(profile.name):
                await self.delete(profile)
                gone.append(profile.name)
        return tuple(gone)

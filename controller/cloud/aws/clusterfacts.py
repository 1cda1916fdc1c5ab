"""What the provider knows of the cluster itself (spec aws/launch §1).

Resolved once at start by `build`, read by node classes and launches. Owns the lazy look-ups: service
range and network from EKS, kept for the life of the process, and the Kubernetes version, kept for
five minutes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from controller.clock import Clock
from controller.cloud.aws.errors import AwsError
from controller.cloud.aws.gateway import Eks
from controller.cloud.aws.gateway.others import ClusterRecord
from controller.cloud.aws.settings import AwsSettings
from controller.cloud.aws.ttl import TtlCache

__all__ = ["ClusterFacts"]

_VERSION_TTL: Final = timedelta(minutes=5)


class ClusterFacts:
    """Facts about the one cluster that is served."""

    def __init__(
        self,
        settings: AwsSettings,
        eks: Eks,
        clock: Clock,
        *,
        server_version: Callable[[], Awaitable[str]],
        dns_ip: str | None,
    ) -> None:
        """Take what is known; `server_version` asks the API server for its version text."""
        self.name = settings.cluster_name
        self.ca_bundle = settings.cluster_ca_bundle
        self.dns_ip = dns_ip
        """Cluster IP of kube-dns; None when it could not be read."""
        self._settings = settings
        self._eks = eks
        self._server_version = server_version
        self._versions: TtlCache[str, str] = TtlCache(clock, _VERSION_TTL)
        self._record: ClusterRecord | None = None
        self._vpc_asked = False

    @property
    def ipv6(self) -> bool:
        """Return whether the cluster's services, hence its pods, use IPv6."""
        return self.dns_ip is not None and ":" in self.dns_ip

    async def _described(self) -> ClusterRecord:
        if self._record is None:
            self._record = await self._eks.cluster(self.name)
        return self._record

    async def endpoint(self) -> str:
        """Return the API server's address for nodes. Raises: AwsError when EKS cannot tell."""
        return self._settings.cluster_endpoint or (await self._described()).endpoint

    async def service_cidr(self) -> str | None:
        """Return the range of service addresses. Raises: AwsError."""
        return (await self._described()).service_cidr

    async def vpc(self) -> str | None:
        """Return the cluster's network, or None when EKS cannot or may not tell; asked once."""
        if self._record is None and not self._vpc_asked:
            self._vpc_asked = True
            try:
                await self._described()
            except AwsError:
                return None
        return self._record.vpc if self._record is not None else None

    async def version(self) -> str:
        """Return the control plane's `major.minor`. Raises: AwsError, KubeError."""
        known = self._versions.get("version")
        if known is not None:
            return known
        if self._settings.eks_control_plane:
            text = (await self._eks.cluster(self.name)).version
        else:
            text = await self._server_version()
        return self._versions.put("version", _major_minor(text))


def _major_minor(text: str) -> str:
    """Return `1.34` for `v1.34.4-eks-123`, `1.34+` or `1.34`."""
    major, _, rest = text.removeprefix("v").partition(".")
    return f"{major}.{rest.partition('.')[0].rstrip('+')}"

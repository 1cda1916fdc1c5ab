"""Reads a running cluster for the commands that ask about it: objects from the API server, shapes from AWS.

Called by `charpente snapshot` and `simulate`. Uses the same settings from the environment as `charpente run`,
so that what is asked is what the controller would see. Reads only.
"""

from __future__ import annotations

import asyncio
import os
from random import Random

import attrs

from controller.cli.operator import aws_settings, engine_options
from controller.cli.settings import Settings
from controller.clock import Clock, SystemClock
from controller.cloud import aws
from controller.cloud.aws import Surroundings
from controller.cloud.provider import CloudError
from controller.kube import Client, Connection, KubeError, Recorder, TokenBucket, connect
from controller.observability import Metrics
from controller.scheduling import InstanceType
from controller.whatif import ClusterFile, mirror_of, take
from framework.api import UserError

__all__ = ["Unreachable", "read_cluster"]


class Unreachable(UserError):
    """The cluster or its cloud cannot be read."""


def read_cluster(kubeconfig: str | None, cluster_name: str | None) -> ClusterFile:
    """Return the cluster as it is now. Raises UserError: Unreachable, NoCluster or InvalidSetting."""
    settings = Settings.load(os.environ, {"cluster_name": cluster_name})
    try:
        return asyncio.run(_read(settings, kubeconfig, SystemClock()))
    except KubeError as exc:
        raise Unreachable(
            f"the API server cannot be read: {exc}; check --kubeconfig and permissions"
        ) from exc


async def _read(settings: Settings, kubeconfig: str | None, clock: Clock) -> ClusterFile:
    connection = await connect(kubeconfig)
    metrics = Metrics()
    limit = TokenBucket(clock, rate=settings.kube_client_qps, burst=settings.kube_client_burst)
    async with Client(
        connection, clock=clock, metrics=metrics, limit=limit, user_agent="charpente"
    ) as client:
        found = ClusterFile(
            taken=clock.now(),
            objects=await take(client),
            instance_types={},
            options=engine_options(settings),
            overlays=settings.feature_gates.node_overlay,
        )
        reader = _Reader(
            settings=settings, connection=connection, client=client, clock=clock, metrics=metrics
        )
        return attrs.evolve(found, instance_types=await reader.instance_types(found))


@attrs.frozen(kw_only=True, eq=False)
class _Reader:
    settings: Settings
    connection: Connection
    client: Client
    clock: Clock
    metrics: Metrics

    async def instance_types(self, found: ClusterFile) -> dict[str, tuple[InstanceType, ...]]:
        """Return what each node class can launch, by its name; a class that is not resolved is left out."""
        mirror = mirror_of(found.objects, overlays=found.overlays)
        random = Random(0)  # noqa: S311 - nothing here is named or delayed by it
        around = Surroundings(
            client=self.client,
            mirror=mirror,
            recorder=Recorder(self.client, clock=self.clock, random=random),
            clock=self.clock,
            random=random,
            registry=self.metrics.registry,
            server_version=self.client.server_version,
        )
        try:
            cloud = await aws.build(aws_settings(self.settings, self.connection.ca_bundle()), around)
            await cloud.parts.prices.refresh()
            return {
                name: cloud.parts.types.resolve(node_class)
                for name, node_class in sorted(mirror.ec2nodeclasses.items())
                if node_class.status.subnets
            }
        except (ValueError, CloudError) as exc:
            raise Unreachable(f"AWS cannot be read: {exc}; set AWS_REGION and credentials") from exc

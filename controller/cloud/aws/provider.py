"""`AwsProvider`: the core's `Provider` on EC2.

Called by `controller.nodeclaims`, `controller.provisioning` and `controller.disruption`. Ties the
provider's parts together and translates their errors; each part's rules stand in its own module.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from controller.clock import Clock
from controller.cloud.aws import answers, drift, fleet
from controller.cloud.aws.adoption import Adoption
from controller.cloud.aws.errors import AwsError, AwsNotFound, AwsUnavailable
from controller.cloud.aws.gateway.records import InstanceRecord
from controller.cloud.aws.launcher import LaunchWish
from controller.cloud.aws.launchplan import ClusterInput
from controller.cloud.aws.overlaid import Overlaid
from controller.cloud.aws.parts import Parts
from controller.cloud.aws.providerid import instance_id
from controller.cloud.aws.ttl import TtlCache
from controller.cloud.provider import (
    CloudError,
    CreateFailed,
    Drifted,
    Instance,
    InsufficientCapacity,
    NodeClaimNotFound,
    NodeClassNotReady,
    RepairPolicy,
)
from controller.cluster import Mirror
from controller.kube.kinds import EC2NODECLASS
from controller.scheduling import InstanceType
from framework.api import ConditionStatus, NodeClaim, NodePool, conditions, labels
from framework.api.ec2nodeclass import AmiFamily, EC2NodeClass
from framework.api.schedulingconfig import DriftSource

__all__ = ["AwsProvider"]

_ANSWER_TTL: Final = timedelta(hours=1)
_HALF_HOUR: Final = timedelta(minutes=30)
_ACCELERATOR: Final = timedelta(minutes=10)


class AwsProvider:
    """EC2 as a cloud."""

    def __init__(self, parts: Parts, mirror: Mirror, clock: Clock) -> None:
        """Take the parts; `build` makes them."""
        self._settings = parts.settings
        self._cluster = parts.cluster
        self._types = parts.types
        self._launcher = parts.launcher
        self._instances = parts.instances
        self._mirror = mirror
        self._clock = clock
        self._region = parts.aws.region
        self._overlaid = Overlaid()
        self.adoption = Adoption(parts.instances, clock, recorded=self._recorded)
        self._answers: TtlCache[str, Instance] = TtlCache(clock, _ANSWER_TTL)

    @property
    def name(self) -> str:
        """Return the provider's name in metric labels."""
        return "aws"

    @property
    def node_class_kinds(self) -> frozenset[tuple[str, str]]:
        """Return EC2NodeClass."""
        return frozenset({(EC2NODECLASS.group, EC2NODECLASS.kind)})

    @property
    def well_known_labels(self) -> frozenset[str]:
        """Return the labels of spec aws/instances §2."""
        return labels.AWS_WELL_KNOWN

    def repair_policies(self) -> Sequence[RepairPolicy]:
        """Return the conditions of spec aws/instances §10."""
        stuck = [("Ready", "False"), ("Ready", "Unknown")]
        stuck += [
            (kind, "False")
            for kind in ("StorageReady", "NetworkingReady", "KernelReady", "ContainerRuntimeReady")
        ]
        slow = [
            RepairPolicy(condition_type=kind, status=status, toleration=_HALF_HOUR) for kind, status in stuck
        ]
        fast = RepairPolicy(
            condition_type="AcceleratedHardwareReady", status="False", toleration=_ACCELERATOR
        )
        return (*slow, fast)

    def _recorded(self) -> frozenset[str]:
        return frozenset(
            claim.status.provider_id for claim in self._mirror.claims.values() if claim.status.provider_id
        )

    def _class(self, name: str) -> EC2NodeClass | None:
        """Return a class that is not being deleted."""
        found = self._mirror.ec2nodeclass(name)
        return None if found is None or found.metadata.deletion_timestamp is not None else found

    async def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        """Return every type for the pool's class. Raises: NodeClassNotReady, CloudError."""
        name = pool.spec.template.spec.node_class_ref.name
        node_class = self._class(name)
        if node_class is None:
            raise NodeClassNotReady(f"EC2NodeClass/{name} does not exist or is being deleted; create it")
        await self._types.prepare(node_class)
        return self._types.resolve(node_class)

    async def create(self, claim: NodeClaim) -> Instance:
        """Launch an instance for the claim, once per claim UID.

        Raises: InsufficientCapacity, NodeClassNotReady, CreateFailed, CloudError.
        """
        known = self._answers.get(claim.metadata.uid)
        if known is not None:
            return known
        node_class = self._ready_class(claim)
        try:
            found = await self._adopt(claim, node_class)
            if found is None:
                found = await self._launch(claim, node_class)
        except AwsUnavailable as exc:
            self.adoption.lost_answer(claim.metadata.uid)
            raise CreateFailed(fleet.launch_reason(str(exc)), str(exc)) from exc
        except AwsError as exc:
            raise CreateFailed(fleet.launch_reason(str(exc)), fleet.launch_message([str(exc)])) from exc
        except ValueError as exc:
            raise CreateFailed("LaunchFailed", f"EC2NodeClass/{node_class.metadata.name}: {exc}") from exc
        return self._answers.put(claim.metadata.uid, found)

    async def _launch(self, claim: NodeClaim, node_class: EC2NodeClass) -> Instance:
        cluster = await self._cluster_input(node_class)
        await self._types.prepare(node_class)
        types = self._types.resolve(node_class)
        pool_of = self._mirror.pools.get(claim.metadata.labels.get(labels.NODEPOOL, ""))
        if pool_of is not None:
            types = self._overlaid.types(pool_of, types, self._mirror.valid_overlays())
        result = await self._launcher.launch(
            LaunchWish(claim=claim, node_class=node_class, cluster=cluster, types=types)
        )
        self.adoption.give(result.instance.id, claim.metadata.uid)
        pool = claim.metadata.labels.get(labels.NODEPOOL, "")
        return answers.launched(result, node_class, pool, self._clock.now())

    async def _adopt(self, claim: NodeClaim, node_class: EC2NodeClass) -> Instance | None:
        record = await self.adoption.find(claim, node_class.metadata.name)
        if record is None:
            return None
        kind = self._types.find(node_class, record.instance_type)
        if kind is None:
            return None
        return answers.adopted(record, kind, node_class, reserved_capacity=self._settings.reserved_capacity)

    def _ready_class(self, claim: NodeClaim) -> EC2NodeClass:
        reference = self._mirror.class_ref(claim)
        node_class = None if reference is None else self._class(reference.name)
        if node_class is None:
            name = "its node class" if reference is None else f"EC2NodeClass/{reference.name}"
            raise InsufficientCapacity(f"{name} does not exist or is being deleted")
        name = f"EC2NodeClass/{node_class.metadata.name}"
        ready = conditions.get(node_class.status.conditions, conditions.READY)
        if ready is None or ready.status is ConditionStatus.UNKNOWN:
            raise CreateFailed("NodeClassReadinessUnknown", f"{name}: whether it is ready is not known yet")
        if ready.status is ConditionStatus.FALSE:
            raise NodeClassNotReady(f"{name} is not ready: {ready.message}")
        if ready.observed_generation != node_class.metadata.generation:
            raise NodeClassNotReady(f"{name} has changed and is not looked at yet")
        return node_class

    async def _cluster_input(self, node_class: EC2NodeClass) -> ClusterInput:
        cidr = None
        if node_class.spec.resolved_ami_family is AmiFamily.AL2023:
            cidr = await self._cluster.service_cidr()
            if cidr is None:
                raise NodeClassNotReady(
                    f"EC2NodeClass/{node_class.metadata.name}: EKS names no range of service addresses"
                )
        return ClusterInput(
            name=self._cluster.name,
            endpoint=await self._cluster.endpoint(),
            ca_bundle=self._cluster.ca_bundle,
            region=self._region,
            service_cidr=cidr,
            dns_ip=self._cluster.dns_ip,
            ipv6=self._cluster.ipv6,
            reserved_capacity=self._settings.reserved_capacity,
        )

    async def get(self, provider_id: str) -> Instance:
        """Return the instance. Raises: NodeClaimNotFound, CloudError."""
        record = await self._record(provider_id)
        return answers.listed(record, reserved_capacity=self._settings.reserved_capacity)

    async def _record(self, provider_id: str) -> InstanceRecord:
        identifier = instance_id(provider_id)
        if identifier is None:
            raise CloudError(f"{provider_id!r} is not a provider id such as aws:///eu-west-2a/i-0abc")
        record = await self._instances.get(identifier)
        if record is None:
            raise NodeClaimNotFound(f"instance {identifier} is gone")
        return record

    async def list(self) -> Sequence[Instance]:
        """Return every instance of this cluster that is not terminated. Raises: CloudError."""
        records = await self._instances.list()
        gate = self._settings.reserved_capacity
        return tuple(answers.listed(record, reserved_capacity=gate) for record in records)

    async def delete(self, provider_id: str) -> None:
        """Start (or go on) ending the instance. Raises: NodeClaimNotFound once it is gone, CloudError."""
        identifier = instance_id(provider_id)
        if identifier is None:
            raise CloudError(f"{provider_id!r} is not a provider id such as aws:///eu-west-2a/i-0abc")
        try:
            await self._instances.terminate(identifier)
        except AwsNotFound as exc:
            self._count_end(provider_id)
            raise NodeClaimNotFound(f"instance {identifier} is gone") from exc

    def _count_end(self, provider_id: str) -> None:
        """Give a reserved instance's place back to its reservation."""
        for claim in self._mirror.claims.values():
            reservation = claim.metadata.labels.get(labels.CAPACITY_RESERVATION_ID)
            if reservation is not None and claim.status.provider_id == provider_id:
                self._types.reserved.ended(reservation)

    async def drift(
        self, claim: NodeClaim, pool: NodePool, *, ignored: frozenset[DriftSource] = frozenset()
    ) -> Drifted | None:
        """Return the first way in which the instance is not what the class asks for, or None.

        Raises: NodeClaimNotFound, CloudError.
        """
        node_class = self._class(pool.spec.template.spec.node_class_ref.name)
        if node_class is None or not claim.status.provider_id:
            return None
        found = None
        if DriftSource.NODE_CLASS not in ignored:
            found = drift.static_drift(claim, node_class)
        if found is None and DriftSource.AMI not in ignored:
            kind = claim.metadata.labels.get(labels.INSTANCE_TYPE, "")
            found = drift.image_drift(claim, node_class, self._types.find(node_class, kind))
        if found is None:
            record = await self._record(claim.status.provider_id)
            reserved = self._settings.reserved_capacity
            found = drift.instance_drift(record, node_class, reserved_capacity=reserved, ignored=ignored)
        return found

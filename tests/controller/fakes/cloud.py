"""A cloud in memory that keeps state: one instance per claim, ended in two calls."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from controller.clock import Clock
from controller.cloud.provider import CloudError, Drifted, Instance, NodeClaimNotFound, RepairPolicy
from controller.scheduling import CapacityType, InstanceType, Offering, Requirement, Requirements
from framework.api import NodeClaim, NodePool, Operator, labels
from framework.api.schedulingconfig import DriftSource

ZONES = ("eu-west-2a", "eu-west-2b")


def an_instance_type(name: str = "m5.large", *, cpu: int = 2000, price: float = 0.1) -> InstanceType:
    return InstanceType(
        name=name,
        requirements=Requirements.of(
            Requirement.new(labels.INSTANCE_TYPE, Operator.IN, (name,)),
            Requirement.new(labels.ARCH, Operator.IN, ("amd64",)),
            Requirement.new(labels.OS, Operator.IN, ("linux",)),
            Requirement.new(labels.ZONE, Operator.IN, ZONES),
            Requirement.new(labels.CAPACITY_TYPE, Operator.IN, ("on-demand",)),
        ),
        offerings=tuple(
            Offering(zone=zone, capacity_type=CapacityType.ON_DEMAND, price=price) for zone in ZONES
        ),
        capacity={"cpu": cpu, "memory": cpu * 4 * 2**20, "pods": 29},
        overhead={"cpu": 100, "memory": 2**28},
    )


class FakeCloud:
    name = "fake"
    node_class_kinds = frozenset({(labels.AWS_GROUP, "EC2NodeClass")})
    well_known_labels = labels.AWS_WELL_KNOWN

    def __init__(self, clock: Clock, types: Sequence[InstanceType] = ()) -> None:
        self.clock = clock
        self.types = tuple(types) or (an_instance_type(), an_instance_type("m5.xlarge", cpu=4000, price=0.2))
        self.instances: dict[str, Instance] = {}
        self.launched: dict[str, str] = {}
        """Provider id by claim UID."""
        self.creates = 0
        self.failures: list[CloudError] = []
        self.drifted: Drifted | None = None
        self.policies: tuple[RepairPolicy, ...] = ()

    def repair_policies(self) -> Sequence[RepairPolicy]:
        return self.policies

    async def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        return self.types

    async def create(self, claim: NodeClaim) -> Instance:
        if self.failures:
            raise self.failures.pop(0)
        self.creates += 1
        known = self.launched.get(claim.metadata.uid)
        if known is not None:
            return self.instances[known]
        wanted = Requirements.from_specs(claim.spec.requirements)
        chosen = next(each for each in self.types if wanted.intersects(each.requirements))
        offering = chosen.cheapest(wanted)
        assert offering is not None
        number = len(self.launched) + 1
        instance = Instance(
            provider_id=f"aws:///{offering.zone}/i-{number:08x}",
            image_id="ami-1",
            capacity=chosen.capacity,
            allocatable=chosen.allocatable,
            labels={
                labels.INSTANCE_TYPE: chosen.name,
                labels.ZONE: offering.zone,
                labels.CAPACITY_TYPE: offering.capacity_type.value,
                labels.ARCH: "amd64",
                labels.OS: "linux",
            },
            annotations={},
            created=self.clock.now(),
        )
        self.launched[claim.metadata.uid] = instance.provider_id
        self.instances[instance.provider_id] = instance
        return instance

    async def get(self, provider_id: str) -> Instance:
        if provider_id not in self.instances:
            raise NodeClaimNotFound(provider_id)
        return self.instances[provider_id]

    async def list(self) -> Sequence[Instance]:
        return tuple(self.instances.values())

    async def delete(self, provider_id: str) -> None:
        instance = await self.get(provider_id)
        if instance.deleting:
            del self.instances[provider_id]
            raise NodeClaimNotFound(provider_id)
        self.instances[provider_id] = attrs.evolve(instance, deleting=True)

    async def drift(
        self, claim: NodeClaim, pool: NodePool, *, ignored: frozenset[DriftSource] = frozenset()
    ) -> Drifted | None:
        return self.drifted

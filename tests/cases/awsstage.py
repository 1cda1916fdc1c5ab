"""The stage of the cases about AWS: the real provider and claim controllers on an account in memory.

The account has what the case lists; where it lists nothing of a kind, a plain platform: a subnet in each
zone and one group, tagged as the node classes ask. Types and prices are those of the case's catalogue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import attrs

from controller import provisioning
from controller.clock import FakeClock
from controller.cloud.aws import AwsOperator, AwsSettings
from controller.cloud.aws.gateway.records import (
    ImageRecord,
    InstanceRecord,
    ReservationRecord,
    SecurityGroupRecord,
    SubnetRecord,
)
from controller.cloud.aws.launchplan import launch_digest
from controller.cloud.aws.shape import Gpu, NetworkCard, TypeShape
from controller.cluster import Mirror, Writer
from controller.kube import Key, kinds
from controller.kube.kinds import ALL_KINDS
from controller.provisioning import Batching, ClaimWriter, Provisioner
from controller.scheduling import InstanceType, Options, Plan, Problem, solve
from framework.api import labels
from framework.api.ec2nodeclass import EC2NodeClass
from tests.cases.catalog import capacity_of
from tests.cases.files import Variant, filled
from tests.controller.fakes.aws import Account, Shortage, an_operator, zone_id
from tests.controller.fakes.world import World

T = TypeVar("T")
Wire = dict[str, Any]
FACTS = frozenset(
    {
        *("catalog", "now", "variants", "name", "objects", "settings", "aws", "subnets", "securityGroups"),
        *("capacityReservations", "images", "overlays", "clusterVpc", "fleetErrors", "policyConditions"),
        *(
            "roles",
            "parameters",
            "clusterName",
            "kubernetesVersion",
            "clusterVersion",
            "queue",
            "generator",
            "clock",
        ),
        *("instanceType", "callTable", "history", "queues"),
    }
)
"""Facts that the account or one of the executors understands."""
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "arm64"}
_TICK_S = 0.05
_PATIENCE = 20_000
"""Ticks until something that should have ended is called stuck."""


def strangers(variant: Variant, known: Iterable[str]) -> str | None:
    """Return which facts or expectations nobody here understands, None when there are none."""
    facts = sorted(set(variant.given) - FACTS)
    if facts:
        return f"needs {', '.join(facts)}"
    unknown = sorted(set(variant.expect) - set(known))
    return f"expects {', '.join(unknown)}" if unknown else None


class AwsStage:
    """One case's world: cluster, account, provider, provisioner."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.given = variant.given
        self.clock = FakeClock(variant.now)
        self.cluster = str(self.given.get("clusterName", "demo"))
        self.account = _account(variant, self.clock, self.cluster)
        self.world = _world(self.clock)
        self.operator = self._operator()
        self._use_catalogue()
        self.world.cloud = self.operator.provider  # type: ignore[assignment]  # the real one for the double
        self.world.start()
        self.plans: list[Plan] = []
        self.problems: list[Problem] = []
        self._load(self.given["objects"])

    def _operator(self) -> AwsOperator:
        settings = self.given.get("settings") or {}
        gates = settings.get("featureGates") or {}
        return an_operator(
            self.account,
            AwsSettings(
                cluster_name=self.cluster,
                region=self.account.region,
                cluster_ca_bundle="Q0E=",
                isolated_vpc=bool(settings.get("isolatedVPC", False)),
                disable_dry_run=bool(settings.get("disableDryRun", False)),
                reserved_enis=int(settings.get("reservedENIs", 0)),
                reserved_capacity=bool(gates.get("ReservedCapacity", True)),
                min_values_strict=settings.get("minValuesPolicy", "Strict") == "Strict",
            ),
            self.world.shell,
            version=lambda: str(
                self.given.get("clusterVersion", self.given.get("kubernetesVersion", "1.34"))
            ),
        )

    def _use_catalogue(self) -> None:
        """Give types the allocatable that the catalogue states, which needs no overhead model."""
        types, entries = self.operator.parts.types, self.variant.catalog["types"]
        by_name = {raw["name"]: raw for raw in entries}
        resolve = types.resolve
        stated: dict[int, tuple[tuple[InstanceType, ...], tuple[InstanceType, ...]]] = {}

        def restated(node_class: EC2NodeClass) -> tuple[InstanceType, ...]:
            found = resolve(node_class)
            known = stated.get(id(found))
            if known is None or known[0] is not found:
                changed = tuple(
                    attrs.evolve(
                        each,
                        capacity=capacity_of(by_name[each.name], self.variant, node_class),
                        overhead={},
                    )
                    for each in found
                )
                known = stated[id(found)] = (found, changed)
            return known[1]

        types.resolve = restated  # type: ignore[method-assign]  # the catalogue's word counts

    def _load(self, objects: Iterable[Wire]) -> None:
        self.world.api.objects.clear()
        self.world.api.put(kinds.NAMESPACE, {"metadata": {"name": "default"}})
        by_name = {kind.kind: kind for kind in ALL_KINDS}
        for number, raw in enumerate((*objects, *_overlays(self.given))):
            kind = by_name.get(raw["kind"])
            if kind is not None:
                self.world.api.put(kind, filled(raw, number, self.variant.now))
        self.world.api.complete_lists()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for something while time passes, since the provider's batches wait for their windows."""
        task = asyncio.ensure_future(work)
        for _ in range(_PATIENCE):
            if task.done():
                return task.result()
            await self.clock.advance(_TICK_S)
        task.cancel()
        raise AssertionError("nothing came of it")

    async def prepare(self, *, resolve: bool = True) -> None:
        """Fill catalogue and prices; resolve every node class."""
        await self.operator.parts.catalogue.refresh()
        await self.operator.parts.prices.refresh()
        for name in self.world.api.names(kinds.EC2NODECLASS) if resolve else ():
            await self.reconcile("nodeclass.hash", name)
            await self.reconcile("nodeclass", name)

    async def reconcile(self, controller: str, name: str = "") -> Exception | None:
        """Run one of the provider's controllers once; return what it raised."""
        spec = next(each for each in self.operator.controllers if each.reconciler.name == controller)
        try:
            await self.run(spec.reconciler.reconcile(Key(name=name)))
        except Exception as exc:  # noqa: BLE001 - the case judges
            return exc
        return None

    def machine(self, identifier: str, raw: Wire) -> InstanceRecord:
        """Return an instance; what our launches put on every one of a claim is filled in."""
        tags = dict(raw.get("tags") or {})
        claim = self.world.mirror.claims.get(tags.get(labels.NODECLAIM_TAG, ""))
        tags.setdefault(labels.EKS_CLUSTER_NAME_TAG, self.cluster)
        tags.setdefault(labels.NODEPOOL, "default")
        tags.setdefault(labels.EC2NODECLASS, "default")
        if claim is not None:
            tags.setdefault(labels.LAUNCH_TAG, launch_digest(claim, claim.spec.node_class_ref.name))
        own = claim.metadata.labels if claim is not None else {}
        zone = raw.get("zone") or own.get(labels.ZONE) or self.account.zones[0]
        launched = raw.get("launchTime")
        return InstanceRecord(
            id=identifier,
            instance_type=raw.get("type") or own.get(labels.INSTANCE_TYPE) or self.account.shapes[0].name,
            image_id=raw.get("image", "ami-1"),
            zone=zone,
            zone_id="",
            state=raw.get("state", "running"),
            launched=datetime.fromisoformat(str(launched)) if launched else self.clock.now(),
            subnet=f"subnet-{zone[-1]}",
            security_groups=frozenset(raw.get("securityGroups") or {"sg-1"}),
            tags=tags,
            spot=own.get(labels.CAPACITY_TYPE) == "spot",
            reservation_id="",
            reservations_only=False,
            capacity_block=False,
            tenancy="default",
            efa_interfaces=0,
        )

    def provisioner(self) -> Provisioner:
        shell = self.world.shell
        launcher = ClaimWriter(
            shell.client, self.world.mirror, metrics=self.world.metrics, random=shell.random
        )
        specs = provisioning.build(
            shell,
            self.operator.provider,
            self._plan,
            launcher,
            options=Options(),
            batching=Batching(),
        )
        found = next(each.reconciler for each in specs if each.reconciler.name == "provisioner")
        assert isinstance(found, Provisioner)
        return found

    async def _plan(self, problem: Problem) -> Plan:
        plan = solve(problem)
        self.problems.append(problem)
        self.plans.append(plan)
        return plan

    def claims(self) -> list[Wire]:
        return [self.world.claim(name) for name in self.world.api.names(kinds.NODECLAIM)]

    def node_class(self, name: str = "default") -> EC2NodeClass:
        found = self.world.mirror.ec2nodeclass(name)
        assert found is not None
        return found

    def texts(self) -> list[str]:
        """Return every message of a condition or an event."""
        found = [event.message for event in self.world.events.seen]
        for kind in (kinds.NODECLAIM, kinds.EC2NODECLASS, kinds.NODEPOOL):
            for name in self.world.api.names(kind):
                raw = self.world.api.read(kind, name)
                conditions = (raw.get("status") or {}).get("conditions") or ()
                found += [f"{each.get('reason', '')}: {each.get('message', '')}" for each in conditions]
        return found

    def missing_words(self, words: Iterable[str]) -> list[str]:
        """Return the words that nothing mentions."""
        texts = self.texts()
        return [word for word in words if not any(word in text for text in texts)]


def _world(clock: FakeClock) -> World:
    world = World()
    world.clock = world.api.clock = clock
    world.mirror = Mirror(overlays=True)
    world.api.mirror = world.mirror
    world.shell = attrs.evolve(
        world.shell,
        clock=clock,
        mirror=world.mirror,
        writer=Writer(world.shell.client, world.mirror),
    )
    return world


def _account(variant: Variant, clock: FakeClock, cluster: str) -> Account:
    given, catalog = variant.given, variant.catalog
    zones = list(catalog["zones"])
    account = Account(
        clock=clock,
        region=catalog["region"],
        cluster=cluster,
        vpc=given.get("clusterVpc", "vpc-1"),
        zones=zones,
        shapes=[_shape(raw) for raw in catalog["types"]],
        on_demand={raw["name"]: raw["onDemandPrice"] for raw in catalog["types"]},
        spot={
            (raw["name"], zone): raw["onDemandPrice"] * catalog["spotFactorByZone"][zone]
            for raw in catalog["types"]
            for zone in zones
        },
        roles=frozenset(given["roles"]) if "roles" in given else None,
        parameters=dict(given.get("parameters") or {}),
        fleet_errors=tuple(given.get("fleetErrors") or ()),
        tags_demanded=given.get("policyConditions") or {},
    )
    account.subnets += [_subnet(each, account.vpc) for each in given.get("subnets") or _plain(given, zones)]
    groups = given.get("securityGroups") or [{"id": "sg-1", "tags": _discovery(given, "securityGroup")}]
    account.groups += [_group(each, account.vpc) for each in groups]
    account.reservations += [_reservation(each) for each in given.get("capacityReservations") or ()]
    for each in given.get("images") or ():
        account.images[each["id"]] = _image(each, variant.now)
        account.image_facts[each["id"]] = _image_facts(each)
    account.shortages += [
        Shortage(instance_type=each["type"], zone=zone, capacity_type=each["capacityType"])
        for each in (given.get("aws") or {}).get("insufficientCapacity", ())
        for zone in each["zones"]
    ]
    return account


def _discovery(given: Wire, what: str) -> Mapping[str, str]:
    """Return tags that the node classes of the case ask for."""
    found: dict[str, str] = {}
    for raw in given.get("objects") or ():
        if raw["kind"] == "EC2NodeClass":
            for term in raw["spec"].get(f"{what}SelectorTerms") or ():
                found.update({k: "x" if v == "*" else v for k, v in (term.get("tags") or {}).items()})
    return found


def _plain(given: Wire, zones: list[str]) -> list[Wire]:
    tags = _discovery(given, "subnet")
    return [{"id": f"subnet-{zone[-1]}", "zone": zone, "tags": tags} for zone in zones]


def _subnet(raw: Wire, home: str | None) -> tuple[SubnetRecord, Mapping[str, str]]:
    zone = raw["zone"]
    record = SubnetRecord(
        id=raw["id"],
        zone=zone,
        zone_id=raw.get("zoneId") or zone_id(zone, ord(zone[-1]) - ord("a") + 1),
        vpc=raw.get("vpc") or home or "vpc-1",
        free_addresses=int(raw.get("freeAddresses", raw.get("availableIpAddressCount", 4000))),
    )
    return record, raw.get("tags") or {}


def _group(raw: Wire, home: str | None) -> tuple[SecurityGroupRecord, Mapping[str, str]]:
    record = SecurityGroupRecord(
        id=raw["id"], name=raw.get("name", raw["id"]), vpc=raw.get("vpc") or home or "vpc-1"
    )
    return record, raw.get("tags") or {}


def _reservation(raw: Wire) -> tuple[ReservationRecord, Mapping[str, str]]:
    end = raw.get("endTime") or raw.get("end")
    record = ReservationRecord(
        id=raw["id"],
        instance_type=raw["type"],
        zone=raw["zone"],
        owner=raw.get("owner", "111122223333"),
        match_criteria=raw.get("instanceMatchCriteria", "targeted"),
        reservation_type=raw.get("reservationType", "default"),
        available=int(raw.get("available", 1)),
        end=None if end is None else datetime.fromisoformat(str(end)),
    )
    return record, raw.get("tags") or {}


def _image(raw: Wire, now: datetime) -> ImageRecord:
    return ImageRecord(
        id=raw["id"],
        name=raw.get("name", ""),
        architecture=_ARCHITECTURES.get(raw.get("arch", "amd64"), raw.get("arch", "")),
        created=_instant(raw.get("created")) or now,
        deprecated_at=_instant(raw.get("deprecated") or raw.get("deprecationTime")),
    )


def _instant(value: object) -> datetime | None:
    if value is None:
        return None
    found = datetime.fromisoformat(str(value))
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _image_facts(raw: Wire) -> dict[str, str]:
    tags = {f"tag:{key}": value for key, value in (raw.get("tags") or {}).items()}
    return {"owner": raw.get("owner", "amazon"), **tags}


def _overlays(given: Wire) -> list[Wire]:
    """Return the case's overlays as objects; a selector is a requirement per label."""
    return [
        {
            "kind": "NodeOverlay",
            "metadata": {"name": each.get("name", f"overlay-{number}")},
            "spec": {
                "requirements": [
                    {"key": key, "operator": "In", "values": value if isinstance(value, list) else [value]}
                    for key, value in (each.get("selector") or {}).items()
                ],
                **{
                    key: str(each[key]) if key != "weight" else each[key]
                    for key in ("price", "priceAdjustment", "weight")
                    if key in each
                },
                **({"capacity": each["capacity"]} if "capacity" in each else {}),
            },
        }
        for number, each in enumerate(given.get("overlays") or ())
    ]


def _shape(raw: Wire) -> TypeShape:
    """Return what EC2 would say of a type of the catalogue."""
    gpus = int(raw["allocatable"].get("nvidia.com/gpu", 0))
    nvme = raw.get("localNvmeGB")
    return TypeShape(
        name=raw["name"],
        architectures=(_ARCHITECTURES[raw["arch"]],),
        vcpus=raw["vcpu"],
        memory_mib=raw["memoryGiB"] * 1024,
        usage_classes=frozenset({"on-demand", "spot"}),
        hypervisor="nitro",
        cpu_manufacturer="aws" if raw["arch"] == "arm64" else "intel",
        clock_ghz=None,
        ebs_bandwidth_mbps=None,
        encryption_in_transit=True,
        nvme_gb=nvme,
        storage_gb=nvme or 0,
        gpus=(Gpu(name="g", manufacturer="NVIDIA", count=gpus, memory_mib=16384),) if gpus else (),
        neuron=(),
        inference=(),
        cards=(NetworkCard(index=0, max_interfaces=1, baseline_mbps=None),),
        default_card=0,
        ipv4_per_interface=max(int(raw["allocatable"]["pods"]) - 1, 2),
        efa_interfaces=0,
    )


__all__ = ["FACTS", "AwsStage", "strangers"]

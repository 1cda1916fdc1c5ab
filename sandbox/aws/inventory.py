"""What is alive in a region: every kind of resource that the stacks or the controller can make.

Used to prove that a destroy leaves nothing. What AWS itself gives every account (the default VPC, managed
policies, default rules) is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moto.ec2 import ec2_backends
from moto.events import events_backends
from moto.iam.models import iam_backends
from moto.kms import kms_backends
from moto.logs import logs_backends
from moto.sqs import sqs_backends

from sandbox.aws.ec2.launching import all_instances
from sandbox.aws.world import ACCOUNT, World

__all__ = ["inventory"]


def inventory(world: World, region: str) -> dict[str, list[str]]:
    """Return the ids of live resources by kind, sorted; kinds without any have []."""
    kinds = {
        **_ec2(region),
        **_iam(),
        **_messaging(region),
        **_eks(world, region),
        **_capacity(world, region),
    }
    return {kind: sorted(ids) for kind, ids in sorted(kinds.items())}


def _ec2(region: str) -> dict[str, Iterable[str]]:
    backend: Any = ec2_backends[ACCOUNT][region]
    default = {vpc.id for vpc in backend.vpcs.values() if vpc.is_default}
    own = [vpc for vpc in backend.vpcs.values() if vpc.id not in default]
    tables = [t for t in backend.route_tables.values() if t.vpc_id not in default]
    groups = [g for by_id in backend.groups.values() for g in by_id.values()]
    return {
        "elastic-ips": [a.allocation_id or a.public_ip for a in backend.addresses],
        "instances": [i.id for i in all_instances(backend) if i.state != "terminated"],
        "internet-gateways": list(backend.internet_gateways),
        "launch-templates": list(backend.launch_templates),
        "nat-gateways": [g.id for g in backend.nat_gateways.values() if g.state != "deleted"],
        "network-interfaces": [e.id for e in backend.enis.values()],
        "route-tables": [t.id for t in tables if not _is_main(t)],
        "security-groups": [g.id for g in groups if g.name != "default" and g.vpc_id not in default],
        "subnets": [
            s.id for zone in backend.subnets.values() for s in zone.values() if s.vpc_id not in default
        ],
        "volumes": list(backend.volumes),
        "vpc-endpoints": [e.id for e in backend.vpc_end_points.values() if e.state != "deleted"],
        "vpcs": [vpc.id for vpc in own],
    }


def _is_main(table: Any) -> bool:
    """Whether the table came with its VPC and goes with it."""
    return bool(table.main_association_id) or bool(getattr(table, "main", False))


def _iam() -> dict[str, Iterable[str]]:
    backend: Any = iam_backends[ACCOUNT]["aws"]
    own = [p for p in backend.managed_policies.values() if f"::{ACCOUNT}:" in p.arn]
    return {
        "iam-policies": [policy.arn for policy in own],
        "iam-roles": [r.name for r in backend.roles.values() if not r.path.startswith("/aws-service-role/")],
        "instance-profiles": [profile.name for profile in backend.instance_profiles.values()],
        "oidc-providers": list(backend.open_id_providers),
        "service-linked-roles": [
            r.name for r in backend.roles.values() if r.path.startswith("/aws-service-role/")
        ],
    }


def _messaging(region: str) -> dict[str, Iterable[str]]:
    rules = events_backends[ACCOUNT][region].describe_event_bus("default").rules
    keys = [key for key in kms_backends[ACCOUNT][region].keys.values() if key.key_state == "Enabled"]
    return {
        "event-rules": list(rules),
        "kms-keys": [k.id for k in keys if not any(alias.startswith("alias/aws/") for alias in k.aliases)],
        "log-groups": list(logs_backends[ACCOUNT][region].groups),
        "queues": list(sqs_backends[ACCOUNT][region].queues),
    }


def _eks(world: World, region: str) -> dict[str, Iterable[str]]:
    clusters = [c for (where, _), c in world.clusters.items() if where == region]
    return {
        "eks-access-entries": [f"{c.name} {arn}" for c in clusters for arn in c.access_entries],
        "eks-addons": [f"{c.name} {name}" for c in clusters for name in c.addons],
        "eks-clusters": [c.name for c in clusters],
        "eks-nodegroups": [f"{c.name} {name}" for c in clusters for name in c.nodegroups],
        "eks-pod-identities": [f"{c.name} {name}" for c in clusters for name in c.pod_identities],
    }


def _capacity(world: World, region: str) -> dict[str, Iterable[str]]:
    reservations = world.capacity_reservations.values()
    return {
        "capacity-reservations": [r.id for r in reservations if r.region == region and r.state == "active"],
        "placement-groups": [g.id for g in world.placement_groups.values() if g.region == region],
    }

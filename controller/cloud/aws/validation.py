"""Whether the controller may launch from a class, asked of AWS by dry runs (spec aws/ec2nodeclass §5.6).

Called by the `nodeclass` reconciler as its last step. Owns the dry runs and the cache of their
verdicts. A verdict is a value; only errors that say nothing about the class are raised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast

import attrs

from controller.clock import Clock
from controller.cloud.aws.errors import AwsDenied, AwsError, AwsUnavailable
from controller.cloud.aws.families import is_windows
from controller.cloud.aws.gateway import Ec2
from controller.cloud.aws.images import chooser
from controller.cloud.aws.instancetypes import InstanceTypes
from controller.cloud.aws.launchplan import ClusterInput, LaunchInput, LaunchPlan, plan_launch
from controller.cloud.aws.launchtemplates import Templates
from controller.cloud.aws.settings import AwsSettings
from controller.cloud.aws.tags import launch_tags, tag_specification
from controller.cloud.aws.ttl import TtlCache
from controller.scheduling import CapacityType, InstanceType, Offering, Requirements
from framework.api import NodeClaim, NodeClaimSpec, NodePool, ObjectMeta, Operator, labels
from framework.api.ec2nodeclass import EC2NodeClass
from framework.iam.calls import CALLS

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import RunInstancesRequestTypeDef

__all__ = ["DryRuns", "Verdict", "run_request"]

_TTL: Final = timedelta(minutes=30)
_FALLBACKS: Final = ("m5.large", "m6g.large")
_PROFILE_UNKNOWN: Final = "Invalid IAM Instance Profile name"

Step = Callable[[], Awaitable[object]]


@attrs.frozen(kw_only=True)
class Verdict:
    """What validation found: nothing wrong, or a condition reason and message."""

    ok: bool
    reason: str = ""
    message: str = ""


VALID: Final = Verdict(ok=True)


class DryRuns:
    """Asks AWS whether a launch from a class would be allowed."""

    def __init__(
        self,
        settings: AwsSettings,
        ec2: Ec2,
        types: InstanceTypes,
        templates: Templates,
        clock: Clock,
    ) -> None:
        """Start without any verdict."""
        self._settings = settings
        self._ec2 = ec2
        self._types = types
        self._templates = templates
        self._verdicts: TtlCache[tuple[str, str], Verdict] = TtlCache(clock, _TTL)

    def forget(self, uid: str) -> None:
        """Drop the verdicts on a class."""
        for key in list(self._verdicts):
            if key[0] == uid:
                self._verdicts.drop(key)

    async def judge(
        self, node_class: EC2NodeClass, pools: Iterable[NodePool], cluster: ClusterInput
    ) -> Verdict:
        """Return the verdict, remembered for half an hour for equal input.

        Raises: AwsError that says nothing about the class (throttling, server errors, a profile not
        visible yet).
        """
        key = (node_class.metadata.uid, _content(node_class))
        known = self._verdicts.get(key)
        if known is not None:
            return known
        return self._verdicts.put(key, await self._ask(node_class, tuple(pools), cluster))

    async def _ask(
        self, node_class: EC2NodeClass, pools: tuple[NodePool, ...], cluster: ClusterInput
    ) -> Verdict:
        await self._types.prepare(node_class)
        launch = self._launch(node_class, pools, cluster)
        if launch is None:
            return Verdict(
                ok=False,
                reason="NoInstanceType",
                message="spec.amiSelectorTerms: no instance type can boot any of the images; "
                "select images for x86_64 or arm64",
            )
        try:
            plan = plan_launch(launch)
        except ValueError as exc:
            return Verdict(ok=False, reason="UserDataInvalid", message=f"spec.userData: {exc}")
        if plan.fleet is None or self._settings.disable_dry_run:
            return VALID
        template, request, run = plan.templates[0], plan.fleet, run_request(launch, plan)
        steps: tuple[tuple[str, Step], ...] = (
            ("CreateLaunchTemplateAuthCheckFailed", lambda: self._templates.ensure(template)),
            ("CreateFleetAuthCheckFailed", lambda: self._ec2.check_fleet(request)),
            ("RunInstancesAuthCheckFailed", lambda: self._ec2.check_run(run)),
        )
        return await _first_denial(steps)

    def _launch(
        self, node_class: EC2NodeClass, pools: tuple[NodePool, ...], cluster: ClusterInput
    ) -> LaunchInput | None:
        chosen = _choose_type(node_class, pools, self._types.resolve(node_class))
        if chosen is None:
            return None
        subnet = node_class.status.subnets[0]
        offer = Offering(zone=subnet.zone, capacity_type=CapacityType.ON_DEMAND, price=0.0)
        pool = next((pool.metadata.name for pool in pools), "")
        return LaunchInput(
            claim=NodeClaim(
                metadata=ObjectMeta(name=node_class.metadata.name, labels={labels.NODEPOOL: pool}),
                spec=NodeClaimSpec(),
            ),
            node_class=node_class,
            cluster=cluster,
            types=(attrs.evolve(chosen, offerings=(offer,)),),
            capacity_type=CapacityType.ON_DEMAND,
            tenancy=_tenancy(pools),
            subnets={subnet.zone: subnet.id},
        )


async def _first_denial(steps: Iterable[tuple[str, Step]]) -> Verdict:
    for reason, step in steps:
        try:
            await step()
        except AwsDenied as exc:
            message = f"the controller may not call {exc.operation}: {exc.message}; {_remedy(exc.operation)}"
            return Verdict(ok=False, reason=reason, message=message)
        except AwsError as exc:
            if _PROFILE_UNKNOWN in exc.message:
                raise AwsUnavailable(exc.operation, exc.code, exc.message) from exc
            raise
    return VALID


def _remedy(operation: str) -> str:
    """Return what to grant: the statements of the controller's policies that allow an operation."""
    sids = ", ".join(sorted({need.sid.value for need in CALLS[operation].needs}))
    return f"give the controller's role the statements {sids}; it is asked again within 30 minutes"


def _content(node_class: EC2NodeClass) -> str:
    status = node_class.status
    parts = (
        node_class.spec,
        sorted(node_class.metadata.annotations.items()),
        status.subnets,
        status.security_groups,
        status.amis,
        status.instance_profile,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _choose_type(
    node_class: EC2NodeClass, pools: Sequence[NodePool], types: Sequence[InstanceType]
) -> InstanceType | None:
    """Return a type that the class's pools would launch, preferring plain ones, else a common one."""
    image_of = chooser(node_class.status.amis)
    bootable = [item for item in types if image_of(item.requirements)]
    if not is_windows(node_class.spec.resolved_ami_family):
        wanted = [Requirements.from_specs(pool.spec.template.spec.requirements) for pool in pools]
        fitting = [item for item in bootable if any(each.intersects(item.requirements) for each in wanted)]
        chosen = min(fitting, key=_plainness, default=None)
        if chosen is not None:
            return chosen
    by_name = {item.name: item for item in bootable}
    common = next((by_name[name] for name in _FALLBACKS if name in by_name), None)
    return common or min(bootable, key=_plainness, default=None)


def _plainness(item: InstanceType) -> tuple[bool, float, str]:
    accelerated = any(
        item.requirements[key].operator is not Operator.DOES_NOT_EXIST
        for key in (labels.INSTANCE_GPU_COUNT, labels.INSTANCE_ACCELERATOR_COUNT)
    )
    prices = [offer.sort_price for offer in item.offerings if offer.capacity_type is CapacityType.ON_DEMAND]
    return accelerated, min(prices, default=float("inf")), item.name


def _tenancy(pools: Sequence[NodePool]) -> str:
    for pool in pools:
        wanted = Requirements.from_specs(pool.spec.template.spec.requirements).get(labels.INSTANCE_TENANCY)
        if wanted is not None and wanted.has("dedicated"):
            return "dedicated"
    return "default"


def run_request(launch: LaunchInput, plan: LaunchPlan) -> RunInstancesRequestTypeDef:
    """Return the RunInstances request that stands for the launch, with the tags of a real one."""
    tags = launch_tags(launch.node_class, launch.cluster.name, launch.pool)
    groups = [group.id for group in launch.node_class.status.security_groups]
    subnet = launch.subnets[min(launch.subnets)]
    request = {
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceType": launch.types[0].name,
        "LaunchTemplate": {
            "LaunchTemplateName": plan.templates[0]["LaunchTemplateName"],
            "Version": "$Latest",
        },
        "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": subnet, "Groups": groups}],
        "TagSpecifications": [
            tag_specification(kind, tags) for kind in ("instance", "volume", "network-interface")
        ],
    }
    return cast("RunInstancesRequestTypeDef", request)

"""Every AWS call the controller makes, as data.

Called by `controller.cloud.aws`, whose gateway takes its methods, batching and
retries from this table, and by `framework.iam.policies`, which generates the
controller's policies from it. Owns the list of operations and the permissions each
one needs; never talks to AWS. A call that is not here is a call the controller has
no permission for (spec aws/iam-and-bootstrap section 2, aws/launch section 6.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType

import attrs

from framework.iam.sids import Sid


class Service(StrEnum):
    """An AWS service, by the name of its boto3 client."""

    EC2 = "ec2"
    IAM = "iam"
    EKS = "eks"
    SQS = "sqs"
    SSM = "ssm"
    PRICING = "pricing"


class Retry(StrEnum):
    """How the gateway may repeat a call that failed."""

    READ = "read"
    """Repeat on throttling and on server errors: nothing changes by asking again."""
    IDEMPOTENT = "idempotent"
    """Repeat like a read: doing it twice ends in the same state, or a client token makes it so."""
    CREATE = "create"
    """Repeat on throttling only, where the service says that nothing was done."""
    NEVER = "never"
    """The caller repeats by itself, with back-off of its own."""


@attrs.frozen(kw_only=True)
class Batch:
    """How requests of one operation are gathered into one call (spec aws/launch section 6.1)."""

    name: str
    """The `batcher` label of the batch metrics."""
    idle: timedelta
    """The window closes when nothing has arrived for this long."""
    longest: timedelta
    """The window closes this long after its first request at the latest."""
    max_items: int
    """The window closes when it holds this many requests."""


@attrs.frozen(kw_only=True)
class Need:
    """One IAM action that a call needs, and the statement that grants it."""

    action: str
    """Such as `ec2:CreateFleet`."""
    sid: Sid


@attrs.frozen(kw_only=True)
class Call:
    """One operation of one AWS service."""

    service: Service
    operation: str
    """The operation in the service's model, such as `CreateFleet`."""
    needs: tuple[Need, ...]
    creates: tuple[str, ...] = ()
    """EC2 resource kinds that the call makes, each of which is tagged at creation."""
    retry: Retry = Retry.READ
    batch: Batch | None = None
    page_size: int | None = None
    """Items a page; None for an operation that is not paged."""

    @property
    def key(self) -> str:
        """`service:Operation`, unique in the table."""
        return f"{self.service}:{self.operation}"

    @property
    def actions(self) -> tuple[str, ...]:
        """The IAM actions that must all be allowed, sorted."""
        return tuple(sorted({need.action for need in self.needs}))


TAGGED_AT_CREATION = (
    "fleet",
    "instance",
    "volume",
    "network-interface",
    "launch-template",
    "spot-instances-request",
)
"""Every EC2 resource kind that a launch makes and tags."""

_WINDOW = timedelta(seconds=1)


def _needs(actions: str | Sequence[str], *sids: Sid) -> tuple[Need, ...]:
    names = (actions,) if isinstance(actions, str) else tuple(actions)
    return tuple(Need(action=action, sid=sid) for action in names for sid in sids)


_LAUNCH = (
    *_needs(
        ("ec2:CreateFleet", "ec2:RunInstances"),
        Sid.SCOPED_INSTANCE_ACCESS,
        Sid.SCOPED_LAUNCH_TEMPLATE_ACCESS,
        Sid.SCOPED_INSTANCE_ACTIONS_WITH_TAGS,
    ),
    *_needs("ec2:CreateTags", Sid.SCOPED_RESOURCE_CREATION_TAGGING),
    *_needs("iam:PassRole", Sid.PASSING_INSTANCE_ROLE),
)


def _read(operation: str, page_size: int | None = None, batch: Batch | None = None) -> Call:
    return Call(
        service=Service.EC2,
        operation=operation,
        needs=_needs(f"ec2:{operation}", Sid.REGIONAL_READ),
        page_size=page_size,
        batch=batch,
    )


def _profile(
    operation: str, sid: Sid, *, retry: Retry = Retry.IDEMPOTENT, page_size: int | None = None
) -> Call:
    return Call(
        service=Service.IAM,
        operation=operation,
        needs=_needs(f"iam:{operation}", sid),
        retry=retry,
        page_size=page_size,
    )


_EC2_WRITES = (
    Call(
        service=Service.EC2,
        operation="CreateFleet",
        needs=_LAUNCH,
        creates=tuple(kind for kind in TAGGED_AT_CREATION if kind != "launch-template"),
        retry=Retry.CREATE,
        batch=Batch(name="create_fleet", idle=timedelta(milliseconds=35), longest=_WINDOW, max_items=1000),
    ),
    Call(
        service=Service.EC2,
        operation="RunInstances",
        needs=_LAUNCH,
        creates=("instance", "volume", "network-interface", "spot-instances-request"),
        retry=Retry.NEVER,
    ),
    Call(
        service=Service.EC2,
        operation="CreateLaunchTemplate",
        needs=(
            *_needs("ec2:CreateLaunchTemplate", Sid.SCOPED_INSTANCE_ACTIONS_WITH_TAGS),
            *_needs("ec2:CreateTags", Sid.SCOPED_RESOURCE_CREATION_TAGGING),
        ),
        creates=("launch-template",),
        retry=Retry.CREATE,
    ),
    Call(
        service=Service.EC2,
        operation="DeleteLaunchTemplate",
        needs=_needs("ec2:DeleteLaunchTemplate", Sid.SCOPED_DELETION),
        retry=Retry.IDEMPOTENT,
    ),
    Call(
        service=Service.EC2,
        operation="CreateTags",
        needs=_needs("ec2:CreateTags", Sid.SCOPED_RESOURCE_TAGGING),
        retry=Retry.IDEMPOTENT,
    ),
    Call(
        service=Service.EC2,
        operation="TerminateInstances",
        needs=_needs("ec2:TerminateInstances", Sid.SCOPED_DELETION),
        retry=Retry.IDEMPOTENT,
        batch=Batch(
            name="terminate_instances", idle=timedelta(milliseconds=100), longest=_WINDOW, max_items=500
        ),
    ),
)

_EC2_READS = (
    _read("DescribeCapacityReservations", page_size=1000),
    _read("DescribeImages", page_size=1000),
    _read(
        "DescribeInstances",
        page_size=1000,
        batch=Batch(
            name="describe_instances", idle=timedelta(milliseconds=100), longest=_WINDOW, max_items=500
        ),
    ),
    _read("DescribeInstanceStatus", page_size=1000),
    _read("DescribeInstanceTypeOfferings", page_size=1000),
    _read("DescribeInstanceTypes", page_size=100),
    _read("DescribeLaunchTemplates", page_size=200),
    _read("DescribeSecurityGroups", page_size=500),
    _read("DescribeSpotPriceHistory", page_size=2000),
    _read("DescribeSubnets", page_size=500),
)

_IAM = (
    _profile("CreateInstanceProfile", Sid.SCOPED_INSTANCE_PROFILE_CREATION, retry=Retry.CREATE),
    _profile("TagInstanceProfile", Sid.SCOPED_INSTANCE_PROFILE_TAGGING),
    Call(
        service=Service.IAM,
        operation="AddRoleToInstanceProfile",
        needs=(
            *_needs("iam:AddRoleToInstanceProfile", Sid.SCOPED_INSTANCE_PROFILE_ACTIONS),
            *_needs("iam:PassRole", Sid.PASSING_INSTANCE_ROLE),
        ),
        retry=Retry.IDEMPOTENT,
    ),
    _profile("RemoveRoleFromInstanceProfile", Sid.SCOPED_INSTANCE_PROFILE_ACTIONS),
    _profile("DeleteInstanceProfile", Sid.SCOPED_INSTANCE_PROFILE_ACTIONS),
    _profile("GetInstanceProfile", Sid.INSTANCE_PROFILE_READ, retry=Retry.READ),
    _profile("ListInstanceProfiles", Sid.INSTANCE_PROFILE_LIST, retry=Retry.READ, page_size=1000),
)

_OTHERS = (
    Call(
        service=Service.EKS,
        operation="DescribeCluster",
        needs=_needs("eks:DescribeCluster", Sid.ENDPOINT_DISCOVERY),
    ),
    Call(
        service=Service.SQS,
        operation="GetQueueUrl",
        needs=_needs("sqs:GetQueueUrl", Sid.INTERRUPTION_QUEUE_ACTIONS),
    ),
    Call(
        service=Service.SQS,
        operation="ReceiveMessage",
        needs=_needs("sqs:ReceiveMessage", Sid.INTERRUPTION_QUEUE_ACTIONS),
        retry=Retry.NEVER,
    ),
    Call(
        service=Service.SQS,
        operation="DeleteMessage",
        needs=_needs("sqs:DeleteMessage", Sid.INTERRUPTION_QUEUE_ACTIONS),
        retry=Retry.IDEMPOTENT,
    ),
    Call(
        service=Service.SSM,
        operation="GetParameter",
        needs=_needs("ssm:GetParameter", Sid.SSM_READ),
    ),
    Call(
        service=Service.PRICING,
        operation="GetProducts",
        needs=_needs("pricing:GetProducts", Sid.PRICING_READ),
        page_size=100,
    ),
)

CALLS: Mapping[str, Call] = MappingProxyType(
    {call.key: call for call in (*_EC2_WRITES, *_EC2_READS, *_IAM, *_OTHERS)}
)
"""Every call by `service:Operation`, in the order in which the spec lists them."""


def call(service: Service, operation: str) -> Call:
    """The table's row for an operation. Raises KeyError when the controller may not make that call."""
    return CALLS[f"{service}:{operation}"]

"""The one gateway to AWS: every call the controller makes, typed, counted and retried.

`Aws` bundles the service gateways over one session and one thread pool; the rest of the provider
takes it as an argument. Nothing outside this package touches boto3.
"""

from __future__ import annotations

import attrs

from controller.clock import Clock
from controller.cloud.aws.gateway.caller import AwsSession, Caller, Observe, ignore_calls
from controller.cloud.aws.gateway.ec2 import Ec2, Filter, tag_filters
from controller.cloud.aws.gateway.others import Eks, Iam, Message, PriceList, Sqs, Ssm

__all__ = [
    "Aws",
    "AwsSession",
    "Ec2",
    "Eks",
    "Filter",
    "Iam",
    "Message",
    "PriceList",
    "Sqs",
    "Ssm",
    "connect",
    "tag_filters",
]


@attrs.frozen(kw_only=True)
class Aws:
    """One gateway per service."""

    region: str
    ec2: Ec2
    iam: Iam
    eks: Eks
    sqs: Sqs
    ssm: Ssm
    prices: PriceList
    caller: Caller


def connect(
    clock: Clock, *, user_agent: str, region: str | None = None, observe: Observe = ignore_calls
) -> Aws:
    """Make every client. Blocks for about a second (botocore reads its models): call it off the loop.

    Raises: ValueError when no region is known.
    """
    session = AwsSession(user_agent=user_agent, region=region)
    caller = Caller(clock, observe)
    return Aws(
        region=session.region,
        ec2=Ec2(session, caller),
        iam=Iam(session, caller),
        eks=Eks(session, caller),
        sqs=Sqs(session, caller),
        ssm=Ssm(session, caller),
        prices=PriceList(session, caller),
        caller=caller,
    )

"""The queue on which AWS says that it will take an instance back.

Called by the programs in `stacks/`. Owns the queue, its policy and the rules that
feed it (spec aws/interruption section 1).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType

import attrs
import pulumi
import pulumi_aws as aws

from framework.iam.trust import queue_policy

TARGET_ID = "KarpenterInterruptionQueueTarget"
RULES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "ScheduledChangeRule": ("aws.health", "AWS Health Event"),
        "SpotInterruptionRule": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
        "RebalanceRule": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
        "InstanceStateChangeRule": ("aws.ec2", "EC2 Instance State-change Notification"),
    }
)
"""Rule → source and detail type."""


@attrs.frozen(kw_only=True)
class InterruptionQueueArgs:
    """What the queue is made from."""

    queue_name: str
    retention: timedelta = timedelta(minutes=5)
    """How long a notice is kept; older ones say nothing about an instance any more."""
    tags: Mapping[str, str] = attrs.field(factory=dict)


class InterruptionQueue(pulumi.ComponentResource):
    """Queue for spot and health notices. Outputs: `name`, `arn`, `url`, `rule_names`."""

    name: pulumi.Output[str]
    arn: pulumi.Output[str]
    url: pulumi.Output[str]
    rule_names: pulumi.Output[Mapping[str, str]]
    """Rule of the table → name in EventBridge."""

    def __init__(
        self, name: str, args: InterruptionQueueArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare queue, policy and rules."""
        super().__init__("charpente:aws:InterruptionQueue", name, None, opts)
        queue = aws.sqs.Queue(
            f"{name}-messages",
            name=args.queue_name,
            message_retention_seconds=int(args.retention.total_seconds()),
            sqs_managed_sse_enabled=True,
            tags=dict(args.tags),
            opts=pulumi.ResourceOptions(parent=self),
        )
        policy = aws.sqs.QueuePolicy(
            f"{name}-policy",
            queue_url=queue.url,
            policy=queue.arn.apply(lambda arn: queue_policy(arn).to_json()),
            opts=pulumi.ResourceOptions(parent=queue),
        )
        made = {
            rule: self._rule(name, rule, source, detail_type, queue, policy, args.tags)
            for rule, (source, detail_type) in RULES.items()
        }
        self.rule_names = pulumi.Output.all(**{rule: found.name for rule, found in made.items()})
        self.name, self.arn, self.url = queue.name, queue.arn, queue.url
        self.register_outputs({"name": self.name, "arn": self.arn, "url": self.url})

    def _rule(  # noqa: PLR0913 (private: one row of the table and what it points to)
        self,
        name: str,
        rule: str,
        source: str,
        detail_type: str,
        queue: aws.sqs.Queue,
        policy: aws.sqs.QueuePolicy,
        tags: Mapping[str, str],
    ) -> aws.cloudwatch.EventRule:
        pattern = json.dumps({"source": [source], "detail-type": [detail_type]})
        made = aws.cloudwatch.EventRule(
            f"{name}-{rule}",
            description=f"{detail_type} to the interruption queue",
            event_pattern=pattern,
            tags=dict(tags),
            opts=pulumi.ResourceOptions(parent=self),
        )
        aws.cloudwatch.EventTarget(
            f"{name}-{rule}",
            rule=made.name,
            arn=queue.arn,
            target_id=TARGET_ID,
            opts=pulumi.ResourceOptions(parent=made, depends_on=[policy]),
        )
        return made

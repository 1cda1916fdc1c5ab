"""SQS queues, EventBridge rules and log groups: what carries notices.

Called by the provider.
"""

from __future__ import annotations

from typing import ClassVar

from sandbox.pulumi_aws.iam import text
from sandbox.pulumi_aws.resource import Resource, changed_tags, declared_tags, picked, tag_list, tag_map
from sandbox.pulumi_aws.session import Session
from sandbox.pulumi_aws.wire import Properties, Value

_ATTRIBUTES = {
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "delaySeconds": "DelaySeconds",
    "maxMessageSize": "MaximumMessageSize",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "kmsMasterKeyId": "KmsMasterKeyId",
}
_BOOLEAN = ("sqsManagedSseEnabled",)


def _attribute(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Queue(Resource):
    """A queue."""

    type = "aws:sqs/queue:Queue"
    force_new = frozenset({"name", "namePrefix", "fifoQueue"})
    autoname = "name"

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the queue; its id is its URL."""
        if inputs.get("policy") or inputs.get("redrivePolicy"):
            raise ValueError("Queue.policy is not carried by the sandbox; declare aws.sqs.QueuePolicy")
        attributes = {name: _attribute(value) for name, value in picked(inputs, _ATTRIBUTES).items()}
        answer = session.client("sqs", inputs.get("region")).create_queue(
            QueueName=inputs["name"], Attributes=attributes, tags=session.tags(inputs)
        )
        return str(answer["QueueUrl"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The queue."""
        client = session.client("sqs", inputs.get("region"))
        found = client.get_queue_attributes(QueueUrl=identifier, AttributeNames=["All"])["Attributes"]
        tags = client.list_queue_tags(QueueUrl=identifier).get("Tags", {})
        values: Properties = {
            key: found[name] == "true" if key in _BOOLEAN else found[name]
            for key, name in _ATTRIBUTES.items()
            if name in found
        }
        return {
            **{key: int(v) if isinstance(v, str) and v.isdigit() else v for key, v in values.items()},
            "arn": found["QueueArn"],
            "url": identifier,
            "name": identifier.rsplit("/", 1)[-1],
            "fifoQueue": found.get("FifoQueue") == "true",
            "policy": found.get("Policy", ""),
            "tags": declared_tags(inputs, tags, session),
            "tagsAll": tags,
            "region": inputs.get("region") or session.region,
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set attributes and tags."""
        client = session.client("sqs", new.get("region"))
        attributes = {name: _attribute(value) for name, value in picked(new, _ATTRIBUTES).items()}
        if attributes:
            client.set_queue_attributes(QueueUrl=identifier, Attributes=attributes)
        gone, wanted = changed_tags(session.tags(old), session.tags(new))
        if gone:
            client.untag_queue(QueueUrl=identifier, TagKeys=gone)
        if wanted:
            client.tag_queue(QueueUrl=identifier, Tags=wanted)

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the queue."""
        session.client("sqs", state.get("region")).delete_queue(QueueUrl=identifier)


class QueuePolicy(Resource):
    """Who may use a queue."""

    type = "aws:sqs/queuePolicy:QueuePolicy"
    force_new = frozenset({"queueUrl"})

    def create(self, session: Session, inputs: Properties) -> str:
        """Set the policy; its id is the queue's URL."""
        self.configure(session, inputs["queueUrl"], inputs)
        return str(inputs["queueUrl"])

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Set the policy."""
        session.client("sqs", inputs.get("region")).set_queue_attributes(
            QueueUrl=identifier, Attributes={"Policy": text(inputs["policy"])}
        )

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The policy, or None when the queue has none."""
        found = (
            session.client("sqs", inputs.get("region"))
            .get_queue_attributes(QueueUrl=identifier, AttributeNames=["Policy"])
            .get("Attributes", {})
        )
        if not found.get("Policy"):
            return None
        region = inputs.get("region") or session.region
        return {"queueUrl": identifier, "policy": found["Policy"], "region": region}

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the policy."""
        session.client("sqs", state.get("region")).set_queue_attributes(
            QueueUrl=identifier, Attributes={"Policy": ""}
        )


class EventRule(Resource):
    """A rule of an event bus."""

    type = "aws:cloudwatch/eventRule:EventRule"
    force_new = frozenset({"name", "namePrefix", "eventBusName"})
    defaults: ClassVar = {"eventBusName": "default", "state": "ENABLED"}
    autoname = "name"

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the rule; its id is its name."""
        self._put(session, inputs, tags=session.tags(inputs))
        return str(inputs["name"])

    def _put(self, session: Session, inputs: Properties, tags: dict[str, str] | None = None) -> None:
        session.client("events", inputs.get("region")).put_rule(
            Name=inputs["name"],
            EventBusName=inputs["eventBusName"],
            State=inputs["state"],
            **picked(
                inputs,
                {
                    "description": "Description",
                    "scheduleExpression": "ScheduleExpression",
                    "roleArn": "RoleArn",
                },
            ),
            **({"EventPattern": text(inputs["eventPattern"])} if inputs.get("eventPattern") else {}),
            **({"Tags": tag_list(tags)} if tags else {}),
        )

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The rule."""
        client = session.client("events", inputs.get("region"))
        bus = inputs.get("eventBusName", "default")
        rule = client.describe_rule(Name=identifier, EventBusName=bus)
        tags = tag_map(client.list_tags_for_resource(ResourceARN=rule["Arn"]).get("Tags"))
        return {
            "arn": rule["Arn"],
            "name": identifier,
            "eventBusName": bus,
            "eventPattern": rule.get("EventPattern", ""),
            "scheduleExpression": rule.get("ScheduleExpression", ""),
            "description": rule.get("Description", ""),
            "state": rule["State"],
            "tags": declared_tags(inputs, tags, session),
            "tagsAll": tags,
            "region": inputs.get("region") or session.region,
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Put the rule again and set tags."""
        self._put(session, new)
        client = session.client("events", new.get("region"))
        arn = client.describe_rule(Name=identifier, EventBusName=new["eventBusName"])["Arn"]
        gone, wanted = changed_tags(session.tags(old), session.tags(new))
        if gone:
            client.untag_resource(ResourceARN=arn, TagKeys=gone)
        if wanted:
            client.tag_resource(ResourceARN=arn, Tags=tag_list(wanted))

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the rule."""
        session.client("events", state.get("region")).delete_rule(
            Name=identifier, EventBusName=state.get("eventBusName", "default")
        )


class EventTarget(Resource):
    """Where the events of a rule go."""

    type = "aws:cloudwatch/eventTarget:EventTarget"
    force_new = frozenset({"rule", "targetId", "eventBusName"})
    defaults: ClassVar = {"eventBusName": "default"}
    autoname = "targetId"

    def create(self, session: Session, inputs: Properties) -> str:
        """Add the target; its id is rule and target id."""
        self.configure(session, "", inputs)
        return f"{inputs['rule']}-{inputs['targetId']}"

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Put the target. Raises ValueError when EventBridge refuses it."""
        answer = session.client("events", inputs.get("region")).put_targets(
            Rule=inputs["rule"],
            EventBusName=inputs["eventBusName"],
            Targets=[{"Id": inputs["targetId"], "Arn": inputs["arn"]}],
        )
        if answer.get("FailedEntryCount"):
            raise ValueError(
                f"target {inputs['targetId']} of rule {inputs['rule']}: {answer['FailedEntries']}"
            )

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The target, or None when the rule does not list it."""
        bus = inputs.get("eventBusName", "default")
        client = session.client("events", inputs.get("region"))
        answer = client.list_targets_by_rule(Rule=inputs["rule"], EventBusName=bus)
        for target in answer["Targets"]:
            if target["Id"] == inputs["targetId"]:
                return {
                    "rule": inputs["rule"],
                    "targetId": target["Id"],
                    "arn": target["Arn"],
                    "eventBusName": bus,
                    "region": inputs.get("region") or session.region,
                }
        return None

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the target."""
        session.client("events", state.get("region")).remove_targets(
            Rule=state["rule"], EventBusName=state.get("eventBusName", "default"), Ids=[state["targetId"]]
        )


class LogGroup(Resource):
    """A group of log streams."""

    type = "aws:cloudwatch/logGroup:LogGroup"
    force_new = frozenset({"name", "namePrefix", "logGroupClass"})
    autoname = "name"

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the group; its id is its name."""
        session.client("logs", inputs.get("region")).create_log_group(
            logGroupName=inputs["name"],
            tags=session.tags(inputs),
            **picked(inputs, {"kmsKeyId": "kmsKeyId"}),
        )
        return str(inputs["name"])

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Set how long logs are kept; 0 or nothing is for ever."""
        client = session.client("logs", inputs.get("region"))
        if inputs.get("retentionInDays"):
            client.put_retention_policy(logGroupName=identifier, retentionInDays=inputs["retentionInDays"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The group, or None when there is none of this very name."""
        client = session.client("logs", inputs.get("region"))
        answer = client.describe_log_groups(logGroupNamePrefix=identifier)
        for group in answer["logGroups"]:
            if group["logGroupName"] == identifier:
                tags = client.list_tags_log_group(logGroupName=identifier).get("tags", {})
                return {
                    "arn": group["arn"].removesuffix(":*"),
                    "name": identifier,
                    "retentionInDays": group.get("retentionInDays", 0),
                    "tags": declared_tags(inputs, tags, session),
                    "tagsAll": tags,
                    "region": inputs.get("region") or session.region,
                }
        return None

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set retention and tags."""
        self.configure(session, identifier, new)
        client = session.client("logs", new.get("region"))
        gone, wanted = changed_tags(session.tags(old), session.tags(new))
        if gone:
            client.untag_log_group(logGroupName=identifier, tags=gone)
        if wanted:
            client.tag_log_group(logGroupName=identifier, tags=wanted)

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the group and its logs."""
        session.client("logs", state.get("region")).delete_log_group(logGroupName=identifier)


RESOURCES: tuple[Resource, ...] = (Queue(), QueuePolicy(), EventRule(), EventTarget(), LogGroup())

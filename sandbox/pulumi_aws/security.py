"""Security groups and KMS keys.

Called by the provider.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sandbox.pulumi_aws.ec2 import Ec2Resource
from sandbox.pulumi_aws.resource import Resource, changed_tags, declared_tags, tag_list
from sandbox.pulumi_aws.session import Session
from sandbox.pulumi_aws.wire import Properties, Value

_RULE = (("protocol", "IpProtocol"), ("fromPort", "FromPort"), ("toPort", "ToPort"))


class SecurityGroup(Ec2Resource):
    """A group with rules for networks; rules that name other groups are not carried."""

    type = "aws:ec2/securityGroup:SecurityGroup"
    kind = "security-group"
    force_new = frozenset({"name", "namePrefix", "description", "vpcId"})
    defaults: ClassVar = {"description": "Managed by Pulumi"}
    autoname = "name"

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the group and its rules."""
        client = session.client("ec2", inputs.get("region"))
        answer = client.create_security_group(
            GroupName=inputs["name"],
            Description=inputs["description"],
            VpcId=inputs["vpcId"],
            **self._tagging(session, inputs),
        )
        rules = _rules(inputs)
        if rules:
            client.authorize_security_group_ingress(GroupId=answer["GroupId"], IpPermissions=rules)
        return str(answer["GroupId"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The group."""
        client = session.client("ec2", inputs.get("region"))
        (group,) = client.describe_security_groups(GroupIds=[identifier])["SecurityGroups"]
        return {
            "arn": session.arn("ec2", f"security-group/{identifier}", region=inputs.get("region")),
            "name": group["GroupName"],
            "description": group["Description"],
            "vpcId": group["VpcId"],
            "ownerId": group.get("OwnerId", session.account),
            "ingress": inputs.get("ingress") or [],
            **self._tag_outputs(session, inputs, group.get("Tags")),
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set tags, and replace the rules when they differ."""
        super().update(session, identifier, old, new)
        client = session.client("ec2", new.get("region"))
        before, after = _rules(old), _rules(new)
        if before != after:
            if before:
                client.revoke_security_group_ingress(GroupId=identifier, IpPermissions=before)
            if after:
                client.authorize_security_group_ingress(GroupId=identifier, IpPermissions=after)

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the group."""
        session.client("ec2", state.get("region")).delete_security_group(GroupId=identifier)


def _rules(inputs: Properties) -> list[dict[str, Any]]:
    found = []
    for rule in inputs.get("ingress") or []:
        unknown = sorted(set(rule) - {key for key, _ in _RULE} - {"cidrBlocks", "description"})
        if unknown:
            raise ValueError(f"SecurityGroup.ingress.{unknown[0]} is not carried by the sandbox")
        ranges = [{"CidrIp": cidr} for cidr in rule.get("cidrBlocks") or []]
        found.append({name: rule[key] for key, name in _RULE} | {"IpRanges": ranges})
    return found


class Key(Resource):
    """A symmetric key for encryption."""

    type = "aws:kms/key:Key"
    defaults: ClassVar = {"deletionWindowInDays": 30, "enableKeyRotation": False}

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the key."""
        answer = session.client("kms", inputs.get("region")).create_key(
            Description=inputs.get("description", ""),
            Tags=tag_list(session.tags(inputs), "TagKey", "TagValue"),
        )
        return str(answer["KeyMetadata"]["KeyId"])

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Switch rotation on or off."""
        client = session.client("kms", inputs.get("region"))
        switch = client.enable_key_rotation if inputs["enableKeyRotation"] else client.disable_key_rotation
        switch(KeyId=identifier)

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The key; one that is to be deleted is gone."""
        client = session.client("kms", inputs.get("region"))
        found = client.describe_key(KeyId=identifier)["KeyMetadata"]
        if found["KeyState"] == "PendingDeletion":
            return None
        listed = client.list_resource_tags(KeyId=identifier).get("Tags", [])
        tags = {tag["TagKey"]: tag["TagValue"] for tag in listed}
        values: dict[str, Value] = {
            "arn": found["Arn"],
            "keyId": identifier,
            "description": found["Description"],
            "enableKeyRotation": client.get_key_rotation_status(KeyId=identifier)["KeyRotationEnabled"],
            "deletionWindowInDays": inputs.get("deletionWindowInDays"),
        }
        return {
            **values,
            "tags": declared_tags(inputs, tags, session),
            "tagsAll": tags,
            "region": inputs.get("region") or session.region,
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set rotation, description and tags."""
        super().update(session, identifier, old, new)
        client = session.client("kms", new.get("region"))
        client.update_key_description(KeyId=identifier, Description=new.get("description", ""))
        gone, wanted = changed_tags(session.tags(old), session.tags(new))
        if gone:
            client.untag_resource(KeyId=identifier, TagKeys=gone)
        if wanted:
            client.tag_resource(KeyId=identifier, Tags=tag_list(wanted, "TagKey", "TagValue"))

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Have the key deleted when its window is over."""
        session.client("kms", state.get("region")).schedule_key_deletion(
            KeyId=identifier, PendingWindowInDays=int(state["deletionWindowInDays"])
        )


RESOURCES: tuple[Resource, ...] = (SecurityGroup(), Key())

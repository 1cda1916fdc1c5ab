"""IAM: roles, policies, attachments, instance profiles, identity providers.

Called by the provider. IAM is global: no resource here has a region.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from sandbox.pulumi_aws.resource import Resource, changed_tags, declared_tags, picked, tag_list, tag_map
from sandbox.pulumi_aws.session import Session
from sandbox.pulumi_aws.wire import Properties, Value, equal

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_OLDEST_KEPT_VERSIONS = 5
"""Most versions of one policy that IAM keeps."""


def text(document: Value) -> str:
    """A policy document as text; the SDK also takes it as an object."""
    return document if isinstance(document, str) else json.dumps(document, separators=(",", ":"))


def _tag_outputs(session: Session, inputs: Properties, tags: list[dict[str, str]] | None) -> Properties:
    found = tag_map(tags)
    return {"tags": declared_tags(inputs, found, session), "tagsAll": found}


class Role(Resource):
    """A role."""

    type = "aws:iam/role:Role"
    force_new = frozenset({"name", "namePrefix", "path"})
    defaults: ClassVar = {"path": "/", "maxSessionDuration": 3600, "forceDetachPolicies": False}
    autoname = "name"

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the role; its id is its name."""
        session.client("iam").create_role(
            RoleName=inputs["name"],
            AssumeRolePolicyDocument=text(inputs["assumeRolePolicy"]),
            Tags=tag_list(session.tags(inputs)),
            **picked(
                inputs,
                {
                    "path": "Path",
                    "description": "Description",
                    "maxSessionDuration": "MaxSessionDuration",
                    "permissionsBoundary": "PermissionsBoundary",
                },
            ),
        )
        return str(inputs["name"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The role."""
        role = session.client("iam").get_role(RoleName=identifier)["Role"]
        return {
            "arn": role["Arn"],
            "name": identifier,
            "uniqueId": role["RoleId"],
            "createDate": role["CreateDate"].strftime(_TIME),
            "path": role["Path"],
            "assumeRolePolicy": text(role["AssumeRolePolicyDocument"]),
            "description": role.get("Description", ""),
            "maxSessionDuration": role["MaxSessionDuration"],
            "forceDetachPolicies": inputs.get("forceDetachPolicies", False),
            "permissionsBoundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn", ""),
            **_tag_outputs(session, inputs, role.get("Tags")),
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set trust, description, session length and tags."""
        client = session.client("iam")
        if not equal(old.get("assumeRolePolicy"), new.get("assumeRolePolicy")):
            client.update_assume_role_policy(
                RoleName=identifier, PolicyDocument=text(new["assumeRolePolicy"])
            )
        client.update_role(
            RoleName=identifier,
            Description=new.get("description", ""),
            MaxSessionDuration=new["maxSessionDuration"],
        )
        gone, wanted = changed_tags(session.tags(old), session.tags(new))
        if gone:
            client.untag_role(RoleName=identifier, TagKeys=gone)
        if wanted:
            client.tag_role(RoleName=identifier, Tags=tag_list(wanted))

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the role, and its policies first when the program said so."""
        client = session.client("iam")
        if state.get("forceDetachPolicies"):
            for policy in client.list_attached_role_policies(RoleName=identifier)["AttachedPolicies"]:
                client.detach_role_policy(RoleName=identifier, PolicyArn=policy["PolicyArn"])
        client.delete_role(RoleName=identifier)


class Policy(Resource):
    """A managed policy."""

    type = "aws:iam/policy:Policy"
    force_new = frozenset({"name", "namePrefix", "path", "description"})
    defaults: ClassVar = {"path": "/"}
    autoname = "name"

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the policy; its id is its ARN."""
        answer = session.client("iam").create_policy(
            PolicyName=inputs["name"],
            PolicyDocument=text(inputs["policy"]),
            Tags=tag_list(session.tags(inputs)),
            **picked(inputs, {"path": "Path", "description": "Description"}),
        )
        return str(answer["Policy"]["Arn"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The policy with its document in force."""
        client = session.client("iam")
        policy = client.get_policy(PolicyArn=identifier)["Policy"]
        version = client.get_policy_version(PolicyArn=identifier, VersionId=policy["DefaultVersionId"])
        return {
            "arn": identifier,
            "name": policy["PolicyName"],
            "path": policy["Path"],
            "policyId": policy["PolicyId"],
            "description": policy.get("Description", ""),
            "policy": text(version["PolicyVersion"]["Document"]),
            "attachmentCount": policy.get("AttachmentCount", 0),
            **_tag_outputs(session, inputs, policy.get("Tags")),
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Put a new version in force, dropping the oldest when there are five, and set tags."""
        client = session.client("iam")
        if not equal(old.get("policy"), new.get("policy")):
            versions = client.list_policy_versions(PolicyArn=identifier)["Versions"]
            spare = [version for version in versions if not version["IsDefaultVersion"]]
            if len(versions) >= _OLDEST_KEPT_VERSIONS:
                oldest = min(spare, key=lambda version: int(version["VersionId"].removeprefix("v")))
                client.delete_policy_version(PolicyArn=identifier, VersionId=oldest["VersionId"])
            client.create_policy_version(
                PolicyArn=identifier, PolicyDocument=text(new["policy"]), SetAsDefault=True
            )
        gone, wanted = changed_tags(session.tags(old), session.tags(new))
        if gone:
            client.untag_policy(PolicyArn=identifier, TagKeys=gone)
        if wanted:
            client.tag_policy(PolicyArn=identifier, Tags=tag_list(wanted))

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove all versions and the policy."""
        client = session.client("iam")
        for version in client.list_policy_versions(PolicyArn=identifier)["Versions"]:
            if not version["IsDefaultVersion"]:
                client.delete_policy_version(PolicyArn=identifier, VersionId=version["VersionId"])
        client.delete_policy(PolicyArn=identifier)


class RolePolicyAttachment(Resource):
    """A policy on a role."""

    type = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    force_new = frozenset({"role", "policyArn"})

    def create(self, session: Session, inputs: Properties) -> str:
        """Attach the policy."""
        session.client("iam").attach_role_policy(RoleName=inputs["role"], PolicyArn=inputs["policyArn"])
        return f"{inputs['role']}/{inputs['policyArn']}"

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The attachment, or None when the role does not carry the policy."""
        role, arn = identifier.split("/", 1)
        pages = session.client("iam").get_paginator("list_attached_role_policies").paginate(RoleName=role)
        found = {policy["PolicyArn"] for page in pages for policy in page["AttachedPolicies"]}
        return {"role": role, "policyArn": arn} if arn in found else None

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Detach the policy."""
        session.client("iam").detach_role_policy(RoleName=state["role"], PolicyArn=state["policyArn"])


class InstanceProfile(Resource):
    """What gives a role to an instance."""

    type = "aws:iam/instanceProfile:InstanceProfile"
    force_new = frozenset({"name", "namePrefix", "path"})
    defaults: ClassVar = {"path": "/"}
    autoname = "name"

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the profile; its id is its name."""
        session.client("iam").create_instance_profile(
            InstanceProfileName=inputs["name"], Path=inputs["path"], Tags=tag_list(session.tags(inputs))
        )
        return str(inputs["name"])

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Put the role in, and take another one out."""
        client = session.client("iam")
        profile = client.get_instance_profile(InstanceProfileName=identifier)["InstanceProfile"]
        found = [role["RoleName"] for role in profile["Roles"]]
        for role in found:
            if role != inputs.get("role"):
                client.remove_role_from_instance_profile(InstanceProfileName=identifier, RoleName=role)
        if inputs.get("role") and inputs["role"] not in found:
            client.add_role_to_instance_profile(InstanceProfileName=identifier, RoleName=inputs["role"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The profile."""
        answer = session.client("iam").get_instance_profile(InstanceProfileName=identifier)
        profile = answer["InstanceProfile"]
        return {
            "arn": profile["Arn"],
            "name": identifier,
            "path": profile["Path"],
            "uniqueId": profile["InstanceProfileId"],
            "createDate": profile["CreateDate"].strftime(_TIME),
            "role": profile["Roles"][0]["RoleName"] if profile["Roles"] else "",
            **_tag_outputs(session, inputs, profile.get("Tags")),
        }

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Take the role out and remove the profile."""
        client = session.client("iam")
        if state.get("role"):
            client.remove_role_from_instance_profile(InstanceProfileName=identifier, RoleName=state["role"])
        client.delete_instance_profile(InstanceProfileName=identifier)


class OpenIdConnectProvider(Resource):
    """The cluster's issuer as an identity provider of the account."""

    type = "aws:iam/openIdConnectProvider:OpenIdConnectProvider"
    force_new = frozenset({"url"})

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the provider; its id is its ARN."""
        answer = session.client("iam").create_open_id_connect_provider(
            Url=inputs["url"],
            ClientIDList=inputs["clientIdLists"],
            Tags=tag_list(session.tags(inputs)),
            **picked(inputs, {"thumbprintLists": "ThumbprintList"}),
        )
        return str(answer["OpenIDConnectProviderArn"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The provider; IAM shows the URL without its scheme, the program gave it with."""
        found = session.client("iam").get_open_id_connect_provider(OpenIDConnectProviderArn=identifier)
        url = found["Url"]
        return {
            "arn": identifier,
            "url": url if "://" in url else f"https://{url}",
            "clientIdLists": found["ClientIDList"],
            "thumbprintLists": found.get("ThumbprintList", []),
            **_tag_outputs(session, inputs, found.get("Tags")),
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set client ids, thumbprints and tags."""
        client = session.client("iam")
        before, after = set(old["clientIdLists"]), set(new["clientIdLists"])
        for name in sorted(after - before):
            client.add_client_id_to_open_id_connect_provider(
                OpenIDConnectProviderArn=identifier, ClientID=name
            )
        for name in sorted(before - after):
            client.remove_client_id_from_open_id_connect_provider(
                OpenIDConnectProviderArn=identifier, ClientID=name
            )
        if new.get("thumbprintLists") and new["thumbprintLists"] != old.get("thumbprintLists"):
            client.update_open_id_connect_provider_thumbprint(
                OpenIDConnectProviderArn=identifier, ThumbprintList=new["thumbprintLists"]
            )
        gone, wanted = changed_tags(session.tags(old), session.tags(new))
        if gone:
            client.untag_open_id_connect_provider(OpenIDConnectProviderArn=identifier, TagKeys=gone)
        if wanted:
            client.tag_open_id_connect_provider(OpenIDConnectProviderArn=identifier, Tags=tag_list(wanted))

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the provider."""
        session.client("iam").delete_open_id_connect_provider(OpenIDConnectProviderArn=identifier)


class ServiceLinkedRole(Resource):
    """A role that a service of AWS uses in this account."""

    type = "aws:iam/serviceLinkedRole:ServiceLinkedRole"
    force_new = frozenset({"awsServiceName", "customSuffix"})

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the role; its id is its ARN."""
        answer = session.client("iam").create_service_linked_role(
            AWSServiceName=inputs["awsServiceName"],
            **picked(inputs, {"customSuffix": "CustomSuffix", "description": "Description"}),
        )
        return str(answer["Role"]["Arn"])

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Tag the role, which its creation cannot."""
        tags = session.tags(inputs)
        if tags:
            session.client("iam").tag_role(RoleName=_role_name(identifier), Tags=tag_list(tags))

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The role."""
        role: dict[str, Any] = session.client("iam").get_role(RoleName=_role_name(identifier))["Role"]
        return {
            "arn": role["Arn"],
            "name": role["RoleName"],
            "path": role["Path"],
            "uniqueId": role["RoleId"],
            "createDate": role["CreateDate"].strftime(_TIME),
            "awsServiceName": role["Path"].split("/")[2],
            "description": role.get("Description", ""),
            **_tag_outputs(session, inputs, role.get("Tags")),
        }

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the role."""
        session.client("iam").delete_service_linked_role(RoleName=_role_name(identifier))


def _role_name(arn: str) -> str:
    return arn.rsplit("/", 1)[-1]


RESOURCES: tuple[Resource, ...] = (
    Role(),
    Policy(),
    RolePolicyAttachment(),
    InstanceProfile(),
    OpenIdConnectProvider(),
    ServiceLinkedRole(),
)

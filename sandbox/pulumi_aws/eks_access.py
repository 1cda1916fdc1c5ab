"""What hangs on an EKS cluster: add-ons, access entries and their policies, pod identities.

Called by the provider.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sandbox.pulumi_aws.eks import is_gone, retag, status_reached, tag_outputs
from sandbox.pulumi_aws.resource import Resource, picked
from sandbox.pulumi_aws.session import Session
from sandbox.pulumi_aws.waiting import wait_until
from sandbox.pulumi_aws.wire import Properties


class Addon(Resource):
    """A component that EKS installs and keeps."""

    type = "aws:eks/addon:Addon"
    force_new = frozenset({"clusterName", "addonName"})

    def _describe(self, session: Session, identifier: str, inputs: Properties) -> dict[str, Any]:
        cluster, name = identifier.split(":", 1)
        client = session.client("eks", inputs.get("region"))
        return dict(client.describe_addon(clusterName=cluster, addonName=name)["addon"])

    def create(self, session: Session, inputs: Properties) -> str:
        """Ask for the add-on; its id is cluster and name."""
        session.client("eks", inputs.get("region")).create_addon(
            clusterName=inputs["clusterName"],
            addonName=inputs["addonName"],
            tags=session.tags(inputs),
            **picked(
                inputs,
                {
                    "addonVersion": "addonVersion",
                    "configurationValues": "configurationValues",
                    "serviceAccountRoleArn": "serviceAccountRoleArn",
                    "resolveConflictsOnCreate": "resolveConflicts",
                },
            ),
        )
        return f"{inputs['clusterName']}:{inputs['addonName']}"

    def configure(self, session: Session, identifier: str, inputs: Properties) -> None:
        """Wait until it runs."""
        wait_until(
            f"add-on {identifier} is ACTIVE",
            lambda: status_reached(lambda: self._describe(session, identifier, inputs), "ACTIVE"),
        )

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The add-on."""
        found = self._describe(session, identifier, inputs)
        return {
            "arn": found["addonArn"],
            "clusterName": found["clusterName"],
            "addonName": found["addonName"],
            "addonVersion": found["addonVersion"],
            "configurationValues": found.get("configurationValues", ""),
            "serviceAccountRoleArn": found.get("serviceAccountRoleArn", ""),
            "createdAt": str(found.get("createdAt", "")),
            "modifiedAt": str(found.get("modifiedAt", "")),
            **{
                key: inputs[key]
                for key in ("resolveConflictsOnCreate", "resolveConflictsOnUpdate", "preserve")
                if key in inputs
            },
            **tag_outputs(session, inputs, found.get("tags")),
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set version, configuration and role, and tags."""
        session.client("eks", new.get("region")).update_addon(
            clusterName=new["clusterName"],
            addonName=new["addonName"],
            **picked(
                new,
                {
                    "addonVersion": "addonVersion",
                    "configurationValues": "configurationValues",
                    "serviceAccountRoleArn": "serviceAccountRoleArn",
                    "resolveConflictsOnUpdate": "resolveConflicts",
                },
            ),
        )
        self.configure(session, identifier, new)
        retag(session, self._describe(session, identifier, new)["addonArn"], old, new)

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the add-on and wait until it is gone."""
        session.client("eks", state.get("region")).delete_addon(
            clusterName=state["clusterName"],
            addonName=state["addonName"],
            **picked(state, {"preserve": "preserve"}),
        )
        wait_until(
            f"add-on {identifier} is gone",
            lambda: is_gone(lambda: self._describe(session, identifier, state)),
        )


class AccessEntry(Resource):
    """A principal that the cluster knows."""

    type = "aws:eks/accessEntry:AccessEntry"
    force_new = frozenset({"clusterName", "principalArn", "type"})
    defaults: ClassVar = {"type": "STANDARD"}

    def create(self, session: Session, inputs: Properties) -> str:
        """Make the entry; its id is cluster and principal."""
        session.client("eks", inputs.get("region")).create_access_entry(
            clusterName=inputs["clusterName"],
            principalArn=inputs["principalArn"],
            tags=session.tags(inputs),
            **picked(
                inputs, {"type": "type", "kubernetesGroups": "kubernetesGroups", "userName": "username"}
            ),
        )
        return f"{inputs['clusterName']}:{inputs['principalArn']}"

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The entry."""
        cluster, principal = identifier.split(":", 1)
        client = session.client("eks", inputs.get("region"))
        found = client.describe_access_entry(clusterName=cluster, principalArn=principal)["accessEntry"]
        return {
            "accessEntryArn": found["accessEntryArn"],
            "clusterName": cluster,
            "principalArn": principal,
            "type": found["type"],
            "kubernetesGroups": found.get("kubernetesGroups", []),
            "userName": found.get("username", ""),
            "createdAt": str(found.get("createdAt", "")),
            "modifiedAt": str(found.get("modifiedAt", "")),
            **tag_outputs(session, inputs, found.get("tags")),
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set groups, user name and tags."""
        client = session.client("eks", new.get("region"))
        names = {"clusterName": new["clusterName"], "principalArn": new["principalArn"]}
        if any(new.get(key) != old.get(key) for key in ("kubernetesGroups", "userName")):
            client.update_access_entry(
                **names, **picked(new, {"kubernetesGroups": "kubernetesGroups", "userName": "username"})
            )
        arn = client.describe_access_entry(**names)["accessEntry"]["accessEntryArn"]
        retag(session, arn, old, new)

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """Remove the entry."""
        session.client("eks", state.get("region")).delete_access_entry(
            clusterName=state["clusterName"], principalArn=state["principalArn"]
        )


class AccessPolicyAssociation(Resource):
    """What a known principal may do."""

    type = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    force_new = frozenset({"clusterName", "principalArn", "policyArn", "accessScope"})

    def create(self, session: Session, inputs: Properties) -> str:
        """Associate the policy; the id is the official provider's: cluster#principal#policy."""
        session.client("eks", inputs.get("region")).associate_access_policy(
            clusterName=inputs["clusterName"],
            principalArn=inputs["principalArn"],
            policyArn=inputs["policyArn"],
            accessScope=inputs["accessScope"],
        )
        return f"{inputs['clusterName']}#{inputs['principalArn']}#{inputs['policyArn']}"

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The association, or None when the entry does not list it."""
        cluster, principal, policy = identifier.split("#")
        client = session.client("eks", inputs.get("region"))
        answer = client.list_associated_access_policies(clusterName=cluster, principalArn=principal)
        for found in answer["associatedAccessPolicies"]:
            if found["policyArn"] == policy:
                return {
                    "clusterName": cluster,
                    "principalArn": principal,
                    "policyArn": policy,
                    "accessScope": found["accessScope"],
                    "associatedAt": str(found.get("associatedAt", "")),
                    "modifiedAt": str(found.get("modifiedAt", "")),
                    "region": inputs.get("region") or session.region,
                }
        return None

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """End the association."""
        session.client("eks", state.get("region")).disassociate_access_policy(
            clusterName=state["clusterName"],
            principalArn=state["principalArn"],
            policyArn=state["policyArn"],
        )


class PodIdentityAssociation(Resource):
    """A role for a service account."""

    type = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
    force_new = frozenset({"clusterName", "namespace", "serviceAccount"})

    def create(self, session: Session, inputs: Properties) -> str:
        """Associate the role; the id is the association's own."""
        answer = session.client("eks", inputs.get("region")).create_pod_identity_association(
            clusterName=inputs["clusterName"],
            namespace=inputs["namespace"],
            serviceAccount=inputs["serviceAccount"],
            roleArn=inputs["roleArn"],
            tags=session.tags(inputs),
        )
        return str(answer["association"]["associationId"])

    def read(self, session: Session, identifier: str, inputs: Properties) -> Properties | None:
        """The association."""
        client = session.client("eks", inputs.get("region"))
        found = client.describe_pod_identity_association(
            clusterName=inputs["clusterName"], associationId=identifier
        )["association"]
        return {
            "associationArn": found["associationArn"],
            "associationId": identifier,
            "clusterName": found["clusterName"],
            "namespace": found["namespace"],
            "serviceAccount": found["serviceAccount"],
            "roleArn": found["roleArn"],
            **tag_outputs(session, inputs, found.get("tags")),
        }

    def update(self, session: Session, identifier: str, old: Properties, new: Properties) -> None:
        """Set the role and tags."""
        client = session.client("eks", new.get("region"))
        if new["roleArn"] != old["roleArn"]:
            client.update_pod_identity_association(
                clusterName=new["clusterName"], associationId=identifier, roleArn=new["roleArn"]
            )
        answer = client.describe_pod_identity_association(
            clusterName=new["clusterName"], associationId=identifier
        )
        retag(session, answer["association"]["associationArn"], old, new)

    def delete(self, session: Session, identifier: str, state: Properties) -> None:
        """End the association."""
        session.client("eks", state.get("region")).delete_pod_identity_association(
            clusterName=state["clusterName"], associationId=identifier
        )


RESOURCES: tuple[Resource, ...] = (
    Addon(),
    AccessEntry(),
    AccessPolicyAssociation(),
    PodIdentityAssociation(),
)

"""IAM where moto is wrong for the bootstrap: trust documents and the service-linked role of EC2 spot."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import moto.iam.urls
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, iam_backends
from moto.iam.responses import IamResponse

from sandbox.aws.errors import AwsError
from sandbox.aws.world import ACCOUNT

__all__ = ["install", "load_managed_policies"]

SPOT_SERVICE = "spot.amazonaws.com"
ROLE_NAMES = {
    SPOT_SERVICE: "EC2Spot",
    "spotfleet.amazonaws.com": "EC2SpotFleet",
    "eks.amazonaws.com": "AmazonEKS",
}
"""Service → what AWS calls it in role names, where moto differs."""


class Iam(IamResponse):  # type: ignore[misc]  # moto is not typed here
    """The actions that differ."""

    def create_role(self) -> Any:
        """Create a role whose trust document is a policy."""
        _check_trust(self._get_param("AssumeRolePolicyDocument"))
        return super().create_role()

    def update_assume_role_policy(self) -> Any:
        """Replace a role's trust document by a policy."""
        _check_trust(self._get_param("PolicyDocument"))
        return super().update_assume_role_policy()

    def list_instance_profiles(self) -> Any:
        """Return the profiles under a path; moto returns all of them."""
        answer = super().list_instance_profiles()
        prefix = self._get_param("PathPrefix") or "/"
        profiles = [each for each in answer.result["InstanceProfiles"] if each.path.startswith(prefix)]
        answer.result["InstanceProfiles"] = profiles
        return answer

    def create_service_linked_role(self) -> Any:
        """Create a role under AWS's name; one that exists is InvalidInput, as in AWS."""
        service = self._get_param("AWSServiceName")
        name = f"AWSServiceRoleFor{ROLE_NAMES[service]}" if service in ROLE_NAMES else None
        taken = {role.name for role in self.backend.roles.values()}
        if name in taken:
            raise AwsError(
                "InvalidInput",
                f"Service role name {name} has been taken in this account, please try a different suffix.",
            )
        answer = super().create_service_linked_role()
        if name:
            answer.result["Role"].name = name
        return answer


def _check_trust(document: str | None) -> None:
    try:
        policy = json.loads(document or "")
    except ValueError as exc:
        raise AwsError("MalformedPolicyDocument", "This policy contains invalid Json") from exc
    statements = policy.get("Statement") if isinstance(policy, dict) else None
    if not statements:
        raise AwsError("MalformedPolicyDocument", "Missing required field Statement")
    for statement in statements if isinstance(statements, list) else [statements]:
        missing = [field for field in ("Effect", "Principal", "Action") if field not in statement]
        if missing:
            raise AwsError("MalformedPolicyDocument", f"Missing required field {missing[0]}")


@cache
def _managed_policies() -> tuple[Any, ...]:
    """Return AWS's managed policies; made once, since that takes half a second."""
    documents = json.loads(aws_managed_policies_data)
    return tuple(AWSManagedPolicy.from_data(name, ACCOUNT, "aws", data) for name, data in documents.items())


def load_managed_policies() -> None:
    """Put AWS's managed policies, attached to nothing, into the account."""
    backend = iam_backends[ACCOUNT]["aws"]
    for policy in _managed_policies():
        policy.attachment_count = 0
        backend.managed_policies[policy.arn] = policy
    backend.aws_managed_policies = list(_managed_policies())


def install() -> None:
    """Let moto's IAM address answer with these actions. Call before the application is made."""
    moto.iam.urls.url_paths["{0}/$"] = Iam.dispatch

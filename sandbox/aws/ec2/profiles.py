"""Instance profiles and the spot role, as launches look them up in moto's IAM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moto.ec2.models.iam_instance_profile import IamInstanceProfileAssociation
from moto.ec2.utils import random_iam_instance_profile_association_id
from moto.iam.models import iam_backends

from sandbox.aws.errors import AwsError
from sandbox.aws.world import ACCOUNT

__all__ = ["associate", "dissociate", "has_spot_role", "resolve"]

SPOT_ROLE = "AWSServiceRoleForEC2Spot"


def _iam() -> Any:
    return iam_backends[ACCOUNT]["aws"]


def resolve(wanted: Mapping[str, Any] | None) -> Any:
    """Return moto's instance profile for {"Name"} or {"Arn"}, None for none.

    Raises AwsError InvalidParameterValue for one that does not exist, with EC2's text.
    """
    if not wanted:
        return None
    name, arn = wanted.get("Name"), wanted.get("Arn")
    for profile in _iam().instance_profiles.values():
        if (name and profile.name == name) or (not name and profile.arn == arn):
            return profile
    field, value = ("name", name) if name else ("arn", arn)
    raise AwsError(
        "InvalidParameterValue",
        f"Value ({value}) for parameter iamInstanceProfile.{field} is invalid. Invalid IAM Instance Profile "
        f"{field}",
    )


class _Association(IamInstanceProfileAssociation):  # type: ignore[misc]  # moto is not typed here
    """moto's association without its search for the instance among all of them."""

    def __init__(self, instance: Any, profile: Any) -> None:
        self.ec2_backend = instance.ec2_backend
        self.association_id = random_iam_instance_profile_association_id()
        self.instance = instance
        self.instance_id = instance.id
        self.iam_instance_profile = profile
        self.state = "associated"


def associate(instance: Any, profile: Any) -> None:
    """Note the profile on the instance, as AssociateIamInstanceProfile would."""
    association = _Association(instance, profile)
    instance.ec2_backend.iam_instance_profile_associations[instance.id] = association
    instance.iam_instance_profile = {"Arn": profile.arn, "Id": profile.id}


def dissociate(instance: Any) -> None:
    """Forget the association when the instance ends."""
    instance.ec2_backend.iam_instance_profile_associations.pop(instance.id, None)


def has_spot_role() -> bool:
    """Whether the account has the service-linked role for spot instances."""
    return any(role.name == SPOT_ROLE for role in _iam().roles.values())

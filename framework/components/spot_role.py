"""The service-linked role without which no spot instance is launched.

Called by the programs in `stacks/`. The role exists once in an account (spec
aws/iam-and-bootstrap section 3): it is declared only where it is missing or was made
by this very stack, which a tag tells.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pulumi
import pulumi_aws as aws

_NAME = "AWSServiceRoleForEC2Spot"
_SERVICE = "spot.amazonaws.com"
OWNER_TAG = "charpente:cluster"


@attrs.frozen(kw_only=True)
class SpotRoleArgs:
    """What the role is made from."""

    cluster_name: str
    tags: Mapping[str, str] = attrs.field(factory=dict)


class SpotRole(pulumi.ComponentResource):
    """The service-linked role of EC2 Spot. Output: `made_here`."""

    made_here: bool

    def __init__(self, name: str, args: SpotRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the role unless the account has one that this stack did not make."""
        super().__init__("charpente:aws:SpotRole", name, None, opts)
        self.made_here = self._owner() in (None, args.cluster_name)
        if self.made_here:
            aws.iam.ServiceLinkedRole(
                f"{name}-role",
                aws_service_name=_SERVICE,
                description="Lets EC2 Spot launch and manage instances",
                tags={**args.tags, OWNER_TAG: args.cluster_name},
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({"made_here": self.made_here})

    def _owner(self) -> str | None:
        """The cluster whose stack made the role, "" when something else did; None when there is no role."""
        options = pulumi.InvokeOptions(parent=self)
        found = aws.iam.get_roles(
            name_regex=f"^{_NAME}$", path_prefix=f"/aws-service-role/{_SERVICE}/", opts=options
        )
        if not found.names:
            return None
        return str(aws.iam.get_role(name=_NAME, opts=options).tags.get(OWNER_TAG, ""))

"""What a policy is about: partition, region, account and cluster.

Called by everything in `framework.iam` that renders a document. Owns ARNs and the
facts about partitions; never looks anything up.
"""

from __future__ import annotations

from types import MappingProxyType

import attrs

_SERVICE_SUFFIX = MappingProxyType({"aws-cn": "amazonaws.com.cn"})


def service_principal(service: str, partition: str) -> str:
    """The principal of an AWS service, such as `ec2.amazonaws.com`; China has a suffix of its own."""
    return f"{service}.{_SERVICE_SUFFIX.get(partition, 'amazonaws.com')}"


@attrs.frozen(kw_only=True)
class Scope:
    """The cluster whose controller is given permissions."""

    partition: str = "aws"
    region: str
    account: str
    cluster: str
    node_role_arn: str
    """The one role that the controller may pass to instances."""
    queue_arn: str | None
    """The interruption queue; None when interruptions are not handled."""

    @property
    def cluster_arn(self) -> str:
        """ARN of the EKS cluster."""
        return f"arn:{self.partition}:eks:{self.region}:{self.account}:cluster/{self.cluster}"

    @property
    def owned_tag(self) -> str:
        """Key of the tag that marks a resource as the cluster's."""
        return f"kubernetes.io/cluster/{self.cluster}"

    def ec2(self, resource: str, *, account: str = "*") -> str:
        """ARN pattern of an EC2 resource, such as `ec2("instance/*")`; images have an empty account."""
        return f"arn:{self.partition}:ec2:{self.region}:{account}:{resource}"

    @property
    def instance_profiles(self) -> str:
        """ARN pattern of every instance profile of the account."""
        return f"arn:{self.partition}:iam::{self.account}:instance-profile/*"

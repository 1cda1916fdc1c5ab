"""The tags that mark what the controller makes (spec aws/launch §6, aws/ec2nodeclass §8).

Used by launches, launch templates, dry runs and instance profiles alike, so that the policy's tag
conditions hold for every request. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from framework.api import labels
from framework.api.ec2nodeclass import EC2NodeClass

if TYPE_CHECKING:
    from mypy_boto3_ec2.literals import ResourceTypeType
    from mypy_boto3_ec2.type_defs import TagSpecificationTypeDef

__all__ = ["OWNED", "bad_tag", "cluster_tag", "launch_tags", "profile_tags", "tag_specification"]

OWNED: Final = "owned"
_RESERVED: Final = frozenset(
    {labels.EKS_CLUSTER_NAME_TAG, labels.NODEPOOL, labels.NODECLAIM_TAG, labels.EC2NODECLASS}
)
_CLUSTER_TAG: Final = re.compile(r"^kubernetes\.io/cluster/[0-9A-Za-z][A-Za-z0-9\-_]*$")


def cluster_tag(cluster: str) -> str:
    """Return the key of the tag that says whose a resource is."""
    return f"{labels.CLUSTER_OWNED_TAG_PREFIX}{cluster}"


def launch_tags(node_class: EC2NodeClass, cluster: str, pool: str) -> dict[str, str]:
    """Return the tags of everything a launch makes; ours win over the user's.

    The pool's tag is there even when the claim has no pool, since the policy asks for its presence.
    """
    return {
        **node_class.spec.tags,
        cluster_tag(cluster): OWNED,
        labels.NODEPOOL: pool,
        labels.EKS_CLUSTER_NAME_TAG: cluster,
        labels.EC2NODECLASS: node_class.metadata.name,
    }


def profile_tags(node_class: EC2NodeClass, cluster: str, region: str) -> dict[str, str]:
    """Return the tags of an instance profile."""
    return {
        **node_class.spec.tags,
        cluster_tag(cluster): OWNED,
        labels.EKS_CLUSTER_NAME_TAG: cluster,
        labels.EC2NODECLASS: node_class.metadata.name,
        labels.REGION: region,
    }


def bad_tag(tags: Mapping[str, str]) -> str | None:
    """Return the first key of the user's tags that is the controller's, or None."""
    return next((key for key in sorted(tags) if key in _RESERVED or _CLUSTER_TAG.match(key)), None)


def tag_specification(resource: ResourceTypeType, tags: Mapping[str, str]) -> TagSpecificationTypeDef:
    """Return tags for one kind of resource as EC2 takes them, sorted by key."""
    return {
        "ResourceType": resource,
        "Tags": [{"Key": key, "Value": value} for key, value in sorted(tags.items())],
    }

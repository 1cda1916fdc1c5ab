"""Whether the security groups that node classes discover are the ones that nodes need.

Called by the controller's program for a cluster that exists already, at every preview. Owns the rule and
the look-up; tags nothing. All groups with the discovery tag are attached to every node: with several, two
may carry the cluster's own tag, which breaks the AWS load balancer controller; with none, no node starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
import pulumi_aws as aws

from framework.api import UserError, labels
from framework.components.pools import Manifest

__all__ = ["TaggedGroup", "WrongGroups", "check_discovery", "node_groups"]


@attrs.frozen(kw_only=True)
class TaggedGroup:
    """One security group and its tags."""

    id: str
    tags: Mapping[str, str]


class WrongGroups(UserError):
    """The tags on security groups do not select what nodes need."""


def node_groups(groups: Iterable[TaggedGroup], cluster: str) -> tuple[str, ...]:
    """Return the ids of the groups that nodes of the cluster would get. Raises WrongGroups."""
    found = sorted(groups, key=lambda group: group.id)
    chosen = [group for group in found if group.tags.get(labels.DISCOVERY_TAG) == cluster]
    tag = f"{labels.DISCOVERY_TAG}={cluster}"
    if len(chosen) != 1:
        named = ", ".join(group.id for group in chosen) or "no security group"
        raise WrongGroups(
            f"{tag} is on {named}; tag exactly one, the group that lets nodes reach the control plane"
        )
    return tuple(group.id for group in chosen)


def check_discovery(manifests: Iterable[Manifest], cluster: str) -> None:
    """Look the groups up and judge them, if a node class discovers any by tag. Raises WrongGroups."""
    if not any(_discovers(manifest, cluster) for manifest in manifests):
        return
    wanted = aws.ec2.GetSecurityGroupsFilterArgs(name=f"tag:{labels.DISCOVERY_TAG}", values=[cluster])
    ids = aws.ec2.get_security_groups(filters=[wanted]).ids
    found = [aws.ec2.get_security_group(id=identifier) for identifier in ids]
    node_groups([TaggedGroup(id=group.id, tags=group.tags) for group in found], cluster)


def _discovers(manifest: Manifest, cluster: str) -> bool:
    """Tell whether a manifest is a node class that finds its groups by the cluster's discovery tag."""
    terms = (manifest.raw.get("spec") or {}).get("securityGroupSelectorTerms") or ()
    return manifest.kind == "EC2NodeClass" and any(
        (term.get("tags") or {}).get(labels.DISCOVERY_TAG) == cluster for term in terms
    )

"""What a teardown sees of the cluster and of the account, and what it may do to them.

Called by `framework.teardown.run`; carried out by `cluster` (the API server) and `account` (AWS), and by
fakes in tests. Holds values and protocols only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

import attrs

Object = Mapping[str, Any]
"""A Kubernetes object as JSON."""

GONE = frozenset({"terminated"})
"""States of an instance that exists no more; one that EC2 does not know is gone as well."""


class Kind(StrEnum):
    """Kinds that a teardown touches, by their plural."""

    POOL = "nodepools"
    CLAIM = "nodeclaims"
    NODE_CLASS = "ec2nodeclasses"
    NODE = "nodes"


@attrs.frozen(kw_only=True)
class Instance:
    """An instance that the controller launched for the cluster."""

    id: str
    state: str
    claim: str | None
    """Name of its NodeClaim, from its tag."""

    @property
    def gone(self) -> bool:
        """Whether it exists no more."""
        return self.state in GONE


@attrs.frozen(kw_only=True)
class Interface:
    """A network interface."""

    id: str
    status: str
    groups: frozenset[str]
    tags: Mapping[str, str]
    description: str
    instance: str | None
    """The instance it is attached to."""


@attrs.frozen(kw_only=True, order=True)
class Leftover:
    """Something that belongs to nodes and outlives them."""

    kind: str
    """`launch template` or `instance profile`."""
    id: str


class Cluster(Protocol):
    """The cluster's API server."""

    def reachable(self) -> bool:
        """Whether it answers at all."""

    def objects(self, kind: Kind) -> Sequence[Object]:
        """All objects of a kind, none when the kind is not served."""

    def delete(self, kind: Kind, name: str) -> None:
        """Begin deleting; an object that is not there is fine."""

    def annotate(self, kind: Kind, name: str, annotations: Mapping[str, str]) -> None:
        """Set annotations; an object that is not there is fine."""

    def drop_finalizer(self, kind: Kind, name: str, finalizer: str) -> None:
        """Take one finalizer off; an object that is not there is fine."""

    def blocking_budgets(self) -> Sequence[str]:
        """`namespace/name` of disruption budgets that allow no eviction now."""

    def controller_answers(self) -> bool:
        """Whether a controller holds and renews the leader lease."""


class Account(Protocol):
    """The AWS account, as far as it holds one cluster's nodes."""

    def cluster_exists(self) -> bool:
        """Whether EKS knows the cluster."""

    def instances(self) -> Sequence[Instance]:
        """Every instance with the cluster's and a pool's tag, terminated ones while EC2 shows them."""

    def terminate(self, ids: Sequence[str]) -> None:
        """Begin ending instances."""

    def leftovers(self) -> Sequence[Leftover]:
        """Launch templates and instance profiles that the controller made for the cluster."""

    def remove(self, leftover: Leftover) -> None:
        """Delete one; one that is not there is fine."""

    def node_groups(self) -> frozenset[str]:
        """Ids of the security groups that the cluster's nodes use."""

    def interfaces(self, groups: frozenset[str]) -> Sequence[Interface]:
        """Interfaces that use any of the groups."""

    def delete_interface(self, identifier: str) -> None:
        """Delete a detached interface; one that is not there is fine."""

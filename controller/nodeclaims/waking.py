"""Which keys a change of another kind wakes.

Used when the controllers of this package are put together; each function makes a mapping for `Watch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from controller.cluster import Mirror
from controller.kube import Change, Key
from controller.nodeclaims.step import pool_of

__all__ = ["claims_of_node", "claims_of_pool", "node_of_claim", "node_of_pod", "pools_of_class"]

Keys = Callable[[Change], Iterable[Key]]


def claims_of_node(mirror: Mirror) -> Keys:
    """Return the mapping from a Node to the claims with its provider id."""
    return lambda change: [Key(name=claim.name) for claim in mirror.claims_of(change.current)]


def node_of_claim(mirror: Mirror) -> Keys:
    """Return the mapping from a claim to its Nodes."""
    return lambda change: [Key(name=node.name) for node in mirror.nodes_of(change.current)]


def node_of_pod(mirror: Mirror) -> Keys:
    """Return the mapping from a pod to its Node, if that is being deleted."""

    def keys(change: Change) -> Iterable[Key]:
        node = mirror.nodes.get(change.current.node_name or "")
        return (Key(name=node.name),) if node is not None and node.deleting else ()

    return keys


def claims_of_pool(mirror: Mirror) -> Keys:
    """Return the mapping from a pool whose spec or hash changed to its claims."""

    def keys(change: Change) -> Iterable[Key]:
        old, new = change.old, change.new
        if old is not None and new is not None:
            same_spec = old.metadata.generation == new.metadata.generation
            if same_spec and old.metadata.annotations == new.metadata.annotations:
                return ()
        name = change.current.name
        return [Key(name=claim.name) for claim in mirror.claims.values() if pool_of(claim) == name]

    return keys


def pools_of_class(mirror: Mirror) -> Keys:
    """Return the mapping from a node class to the pools that name it."""

    def keys(change: Change) -> Iterable[Key]:
        meta, kind = change.current.metadata, change.kind
        for pool in tuple(mirror.pools.values()):
            reference = pool.spec.template.spec.node_class_ref
            if (reference.group, reference.kind, reference.name) == (kind.group, kind.kind, meta.name):
                yield Key(name=pool.name)

    return keys

"""Which nodes are alike, so that what is found out about one holds for the others.

Used by single-node consolidation: in a cluster of equal nodes the peer simulates each of them. Two nodes are
alike when exchanging them would give the same cluster: same pool, type, place, labels, taints and room, and
pods that no scheduler can tell apart. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import cached_property

from controller.disruption.command import Candidate
from controller.disruption.world import World
from controller.scheduling import Pod, is_provisionable, is_terminal
from framework.api import labels

__all__ = ["Likeness"]


class Likeness:
    """Names the class of each candidate of one picture."""

    def __init__(self, world: World) -> None:
        """Keep the picture."""
        self._world = world

    def of(self, candidate: Candidate) -> Hashable:
        """Return a value that is equal for candidates that are alike."""
        node = candidate.node
        pods = Counter(_pod_class(pod) for pod in node.pods if not is_terminal(pod))
        if self._hosts_matter or any(_names_a_host(pod) for pod in node.pods):
            return candidate.name
        own = {key: value for key, value in node.labels.items() if key != labels.HOSTNAME}
        ages = (node.initialized_at, node.last_pod_event) if self._ages_matter else ()
        return (
            candidate.pool.name,
            frozenset(own.items()),
            node.taints,
            frozenset(node.allocatable.items()),
            frozenset(pods.items()),
            frozenset(pod.uid for pod in candidate.pods if pod.volume_claims),
            ages,
        )

    @cached_property
    def _hosts_matter(self) -> bool:
        """Whether a pending pod asks for a node by its name, which makes equal nodes different."""
        return any(_names_a_host(pod) for pod in self._world.snapshot.pods if is_provisionable(pod))

    @cached_property
    def _ages_matter(self) -> bool:
        cooling = any(policy.cooldown for policy in self._world.policies.values())
        return cooling or self._world.gates.protect_settling_nodes


def _pod_class(pod: Pod) -> Hashable:
    """Return what a scheduler and the eviction rules see of a pod."""
    return (pod.namespace, frozenset(pod.labels.items()), id(pod.shape), pod.ready)


def _names_a_host(pod: Pod) -> bool:
    terms = (pod.node_selector, *pod.required_terms, *(term.requirements for term in pod.preferred_terms))
    return any(labels.HOSTNAME in term for term in terms)

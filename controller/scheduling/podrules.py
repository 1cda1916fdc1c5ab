"""Rules about other pods, as a pod's variant carries them (spec core/scheduling §12.3 to §12.6).

Each rule answers three questions about its counter: which domains a new claim may be narrowed to,
which values existing nodes may have, and which rows (nodes, claims) are fine for host names.
Private to the engine.
"""

from __future__ import annotations

from typing import Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from controller.scheduling.requirements import Requirement
from controller.scheduling.topology import Counter

__all__ = ["AffinityRule", "AntiAffinityRule", "PodRule", "SpreadRule"]

_Counts = NDArray[np.int32]
_Mask = NDArray[np.bool_]
_UNKNOWN_MINIMUM = 2**31


class PodRule(Protocol):
    """One rule about other pods."""

    @property
    def counter(self) -> Counter:
        """Return what it counts with."""
        ...

    @property
    def tolerates_unlabelled(self) -> bool:
        """Whether an existing node without the label satisfies it."""
        ...

    @property
    def starts_anywhere(self) -> bool:
        """Whether any host will do because its group has not started."""
        ...

    @property
    def opens(self) -> bool:
        """Whether more pods can make more hosts satisfy it."""
        ...

    def choices(self, node: Requirement | None, pod: Requirement | None) -> tuple[frozenset[str], ...] | None:
        """Return the sets of domains a claim may be narrowed to, best first; None means no narrowing."""
        ...

    def allowed(self, pod: Requirement | None) -> frozenset[str]:
        """Return the domains that an existing node may be in."""
        ...

    def hosts(self, counts: _Counts) -> _Mask:
        """Return which rows satisfy it, for host names."""
        ...

    def host(self, count: int) -> bool:
        """Tell whether one row with this count satisfies it, for host names."""
        ...


@attrs.frozen(kw_only=True, eq=False)
class SpreadRule:
    """Keep the difference to the emptiest domain within `max_skew`."""

    counter: Counter
    max_skew: int
    min_domains: int | None
    selects_itself: bool
    tolerates_unlabelled: bool = False
    starts_anywhere: bool = False
    every_domain: bool = False
    """Measure the skew from domains outside the pod's own node affinity too: nodeAffinityPolicy Ignore."""
    counts_nodes: bool = False
    """Measure the skew of existing hosts from the emptiest of them, as kube-scheduler does."""

    @property
    def opens(self) -> bool:
        """Whether filling the emptiest host lets others take more."""
        return self.counts_nodes

    def choices(self, node: Requirement | None, pod: Requirement | None) -> tuple[frozenset[str], ...] | None:
        """Return single domains, emptiest first, then by name."""
        ceiling = self._ceiling(pod)
        open_domains = [
            (count, domain)
            for domain, count in self.counter.counts.items()
            if count <= ceiling and (node is None or node.has(domain))
        ]
        return tuple(frozenset((domain,)) for _, domain in sorted(open_domains))

    def allowed(self, pod: Requirement | None) -> frozenset[str]:
        """Return the domains with room for one more."""
        ceiling = self._ceiling(pod)
        return frozenset(domain for domain, count in self.counter.counts.items() if count <= ceiling)

    def hosts(self, counts: _Counts) -> _Mask:
        """Return the hosts with room: the emptiest host is always a new one (§12.3)."""
        mask: _Mask = counts <= self.max_skew - self.selects_itself
        return mask

    def host(self, count: int) -> bool:
        """Tell whether a host has room."""
        return count + self.selects_itself <= self.max_skew

    def _ceiling(self, pod: Requirement | None) -> int:
        counts = self.counter.counts
        own = None if self.every_domain else pod
        eligible = [count for domain, count in counts.items() if own is None or own.has(domain)]
        lowest = min(eligible, default=_UNKNOWN_MINIMUM)
        if self.min_domains is not None and len(eligible) < self.min_domains:
            lowest = 0
        return lowest + self.max_skew - self.selects_itself


@attrs.frozen(kw_only=True, eq=False)
class AffinityRule:
    """Be where pods of the selector are; the first of a group that selects itself may start anywhere."""

    counter: Counter
    selects_itself: bool
    required: bool
    tolerates_unlabelled: bool = False
    opens: bool = True

    @property
    def starts_anywhere(self) -> bool:
        """Whether the group has no pod yet and this one may be its first.

        Not before the pods of the group that need not follow it: were they bound first, and elsewhere,
        it could not be.
        """
        return self.selects_itself and not self._is_decided and self.counter.unsettled == 0

    @property
    def settles(self) -> bool:
        """Whether its group is to start where pods of it are that may still come up anywhere."""
        return self.selects_itself and not self._is_decided and self.counter.unsettled > 0

    @property
    def _is_decided(self) -> bool:
        return self.counter.total != 0 or (self.required and self.counter.awaited)

    def choices(self, node: Requirement | None, pod: Requirement | None) -> tuple[frozenset[str], ...] | None:
        """Return all domains with pods at once, or single domains to start in, by name."""
        counts = self.counter.counts
        fine = [d for d in counts if (node is None or node.has(d)) and (pod is None or pod.has(d))]
        populated = frozenset(domain for domain in fine if counts[domain] > 0)
        if populated:
            return (populated,)
        if self.starts_anywhere:
            return tuple(frozenset((domain,)) for domain in sorted(fine))
        return ()

    def allowed(self, pod: Requirement | None) -> frozenset[str]:
        """Return the domains with pods, or every one when the group has not started."""
        if self.starts_anywhere:
            return frozenset(self.counter.counts)
        counts = self.counter.counts
        return frozenset(d for d, count in counts.items() if count > 0 and (pod is None or pod.has(d)))

    def hosts(self, counts: _Counts) -> _Mask:
        """Return the hosts with pods, or all when the group has not started."""
        if self.starts_anywhere:
            return np.ones(counts.shape, dtype=np.bool_)
        mask: _Mask = counts > 0
        return mask

    def host(self, count: int) -> bool:
        """Tell whether a host has pods, or the group has not started."""
        return count > 0 or self.starts_anywhere


@attrs.frozen(kw_only=True, eq=False)
class AntiAffinityRule:
    """Stay out of every counted domain; `inverse` when other pods carry the term."""

    counter: Counter
    inverse: bool
    tolerates_unlabelled: bool = True
    starts_anywhere: bool = False
    opens: bool = False

    def choices(self, node: Requirement | None, pod: Requirement | None) -> tuple[frozenset[str], ...] | None:
        """Return all free domains at once; an inverse rule with nothing in the way does not narrow."""
        counts = self.counter.counts
        if self.inverse and not any(count and (node is None or node.has(d)) for d, count in counts.items()):
            return None
        free = frozenset(
            domain
            for domain, count in counts.items()
            if count == 0 and (node is None or node.has(domain)) and (pod is None or pod.has(domain))
        )
        return (free,) if free else ()

    def allowed(self, pod: Requirement | None) -> frozenset[str]:  # noqa: ARG002 - part of the protocol
        """Return the domains that nothing counted is in."""
        return frozenset(d for d, count in self.counter.counts.items() if count == 0)

    def hosts(self, counts: _Counts) -> _Mask:
        """Return the hosts that nothing counted is on."""
        mask: _Mask = counts == 0
        return mask

    def host(self, count: int) -> bool:
        """Tell whether nothing counted is on a host."""
        return count == 0

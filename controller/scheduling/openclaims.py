"""The claims opened in a run, as rows (spec core/scheduling §11).

Rows keep the order in which claims are tried: fewest pods first; of equals, the one that has waited
longest for a pod. The spec leaves ties open; taking turns mixes the pods best (docs/benchmarks.md).
Mutable scratch of one run, private to the engine.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from controller.scheduling.claimshapes import ClaimShape, ShapeTable
from controller.scheduling.podclasses import NodeRules, PodClass, Variant
from controller.scheduling.podfields import HostPort
from controller.scheduling.pods import Pod

__all__ = ["FEW_CLAIMS", "REFUSED", "ClaimView", "OpenClaim", "OpenClaims"]

REFUSED: Final = 2**62
"""Sort key of a row that may not take the pod."""
_TIES: Final = 2**40
FEW_CLAIMS: Final = 48
"""Up to so many open claims are tried one by one; more are cheaper as vectors."""
_FEW_CHANGES: Final = 16
"""Up to so many changed rows are looked at one by one; more are cheaper as vectors."""


@attrs.define(kw_only=True, eq=False)
class OpenClaim:
    """One claim being filled."""

    row: int
    key: int = 0
    """Place in the order of trial; 0 until it has a pod."""
    shape: ClaimShape
    used: list[int]
    pods: list[Pod] = attrs.field(factory=list)
    counted: dict[PodClass, int] = attrs.field(factory=dict)
    """How many pods it has of each class that some counter counts."""
    ports: list[HostPort] = attrs.field(factory=list)
    held: frozenset[str] = frozenset()
    """Reservations of which it holds a unit."""
    lowered: dict[str, int] = attrs.field(factory=dict)
    """minValues that were relaxed when it was opened."""

    def with_request(self, request: Sequence[int]) -> list[int]:
        """Return what it would use with one more such pod."""
        return [have + more for have, more in zip(self.used, request, strict=True)]

    def has_conflict(self, ports: Sequence[HostPort]) -> bool:
        """Tell whether one of these host ports is taken on it."""
        return any(port.conflicts(taken) for port in ports for taken in self.ports)


@attrs.define(eq=False)
class ClaimView:
    """Which rows may take one variant, kept up to date through the journal of changes."""

    keys: NDArray[np.int64]
    """Sort key per row, REFUSED where the row may not take it."""
    seen: int
    """Journal entries already taken in."""


class OpenClaims:
    """All open claims with their order, shapes and use as arrays."""

    def __init__(self, shapes: ShapeTable, resources: int) -> None:
        """Start without claims."""
        self.shapes = shapes
        self.claims: list[OpenClaim] = []
        self.journal: list[int] = []
        self.order: list[tuple[int, int]] = []
        """(sort key, row), sorted; kept up while there are few."""
        self._keys: NDArray[np.int64] = np.zeros(64, dtype=np.int64)
        self._shape_ids: NDArray[np.int32] = np.zeros(64, dtype=np.int32)
        self._used: NDArray[np.int64] = np.zeros((resources, 64), dtype=np.int64)
        self._sequence = 0

    def __len__(self) -> int:
        return len(self.claims)

    def open(self, shape: ClaimShape, used: list[int]) -> OpenClaim:
        """Add a claim without pods."""
        row = len(self.claims)
        if row >= self._keys.size:
            self._keys = np.concatenate([self._keys, np.zeros_like(self._keys)])
            self._shape_ids = np.concatenate([self._shape_ids, np.zeros_like(self._shape_ids)])
            self._used = np.concatenate([self._used, np.zeros_like(self._used)], axis=1)
        if row == FEW_CLAIMS:
            for other in self.claims:
                self._note(other)
        claim = OpenClaim(row=row, shape=shape, used=used)
        self.claims.append(claim)
        return claim

    def _note(self, claim: OpenClaim) -> None:
        """Bring the arrays up to date; while there are few claims nobody reads them."""
        row = claim.row
        self._keys[row] = claim.key
        self._shape_ids[row] = claim.shape.id
        self._used[:, row] = claim.used
        self.journal.append(row)

    def settle(self, claim: OpenClaim, shape: ClaimShape, used: list[int], pods: Sequence[Pod]) -> None:
        """Let the claim take the pods: new state, new use, new place in the order."""
        claim.shape, claim.used = shape, used
        claim.pods += pods
        self._sequence += len(pods)
        before, claim.key = claim.key, len(claim.pods) * _TIES + self._sequence
        if len(self.claims) > FEW_CLAIMS:
            self._note(claim)
            return
        if before:
            del self.order[bisect_left(self.order, (before, claim.row))]
        insort(self.order, (claim.key, claim.row))

    def reshape(self, claim: OpenClaim, shape: ClaimShape) -> None:
        """Narrow a claim without adding to it."""
        claim.shape = shape
        if len(self.claims) > FEW_CLAIMS:
            self._note(claim)

    def lead(self, claim: OpenClaim, keys: NDArray[np.int64] | None) -> int:
        """Return how many pods the claim may take before another one that may take them comes first.

        `keys` are those of a view; without them the claim after it in the order counts, taking or not.
        """
        if keys is None:
            place = bisect_left(self.order, (claim.key, claim.row)) + 1
            following = self.order[place][0] if place < len(self.order) else REFUSED
        else:
            others = keys.copy()
            others[claim.row] = REFUSED
            following = int(others.min())
        return max(1, following // _TIES - len(claim.pods))

    def shape_ids(self) -> NDArray[np.int32]:
        """Return the state of each row, (claims,) int32."""
        return self._shape_ids[: len(self.claims)]

    def view(self, variant: Variant, rules: NodeRules, cls: PodClass, known: ClaimView | None) -> ClaimView:
        """Return which rows may take the variant now, leaving out only rules about domains."""
        size = len(self.claims)
        if known is None:
            rows = np.arange(size)
            keys = np.where(self._fit(rows, variant, rules, cls), self._keys[:size], REFUSED)
            return ClaimView(keys, len(self.journal))
        if known.seen == len(self.journal):
            return known
        if size > known.keys.size:
            known.keys = np.concatenate([known.keys, np.full(size // 4 + 64, REFUSED, dtype=np.int64)])
        changed = set(self.journal[known.seen :])
        if len(changed) <= _FEW_CHANGES:
            for row in changed:
                fits = self.fits(self.claims[row], variant, rules, cls) is not None
                known.keys[row] = self._keys[row] if fits else REFUSED
        else:
            rows = np.array(sorted(changed))
            known.keys[rows] = np.where(self._fit(rows, variant, rules, cls), self._keys[rows], REFUSED)
        known.seen = len(self.journal)
        return known

    def fits(self, claim: OpenClaim, variant: Variant, rules: NodeRules, cls: PodClass) -> ClaimShape | None:
        """Return the claim's next state if it may take the pod, rules about domains left out."""
        moved = rules.move(claim.shape, self.shapes)
        if moved is None or not moved.holds_more(claim.used, cls.request):
            return None
        row = claim.row
        for rule in variant.host_rules:
            if not rule.host(rule.counter.at_claim(row)):
                return None
        if variant.ports and claim.has_conflict(variant.ports):
            return None
        return moved

    def _fit(
        self, rows: NDArray[np.int64], variant: Variant, rules: NodeRules, cls: PodClass
    ) -> NDArray[np.bool_]:
        """The same for many rows at once, (rows,) bool."""
        moved = rules.moves(self.shapes)[self._shape_ids[rows]]
        wanted = [used[rows] + amount for used, amount in zip(self._used, cls.request, strict=True)]
        mask: NDArray[np.bool_] = np.zeros(rows.size, dtype=np.bool_)
        for level in range(self.shapes.levels):
            fits = moved >= 0
            for room, amount in zip(self.shapes.fronts(level), wanted, strict=True):
                fits &= room[moved] >= amount
            mask |= fits
        size = len(self.claims)
        for rule in variant.host_rules:
            mask &= rule.hosts(rule.counter.at_claims(size)[rows])
        if variant.ports:
            for place in np.flatnonzero(mask).tolist():
                mask[place] = not self.claims[int(rows[place])].has_conflict(variant.ports)
        return mask

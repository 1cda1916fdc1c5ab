"""Replaces drifted nodes of pools with a fixed number of nodes (spec core/disruption §8).

Called by the loop before drift. Pure: no simulation, no price; each replacement comes straight from the
pool's template.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from controller.disruption.command import Candidate, Command, ConsolidationType
from controller.disruption.drifting import drifted_since, not_drifted
from controller.disruption.method import Proposal, Turn, eligible, held_by_budget
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.world import World
from controller.scheduling import Reason
from framework.api import DisruptionReason, NodePool, labels

__all__ = ["ClaimStates", "StaticDrift", "claim_states"]


@attrs.frozen(kw_only=True)
class ClaimStates:
    """How many claims of a static pool stay, are being replaced, and are going."""

    active: int
    pending_disruption: int
    deleting: int

    @property
    def total(self) -> int:
        """Return all of them: what `limits.nodes` counts."""
        return self.active + self.pending_disruption + self.deleting


def claim_states(world: World, pool: str) -> ClaimStates:
    """Return the states of the pool's claims."""
    states = ClaimStates(active=0, pending_disruption=0, deleting=0)
    for claim in world.claims.values():
        if claim.metadata.labels.get(labels.NODEPOOL) != pool:
            continue
        if claim.metadata.deletion_timestamp is not None:
            states = attrs.evolve(states, deleting=states.deleting + 1)
        elif claim.name in world.busy:
            states = attrs.evolve(states, pending_disruption=states.pending_disruption + 1)
        else:
            states = attrs.evolve(states, active=states.active + 1)
    return states


class StaticDrift:
    """Starts one command per drifted node of a static pool, as far as budget and node limit allow."""

    reason: Final = DisruptionReason.DRIFTED
    consolidation_type: Final = ConsolidationType.NONE
    eventual: Final = True
    validated: Final = False

    def refuses(self, candidate: Candidate) -> Reason | None:
        """Return why the candidate is not for this method, or None."""
        if candidate.pool.spec.replicas is None:
            text = f"NodePool {candidate.pool.name} is not static"
            return blocked(BlockCode.NOT_STATIC, text, obj=f"Node/{candidate.name}")
        return not_drifted(candidate)

    def propose(self, turn: Turn) -> Proposal:
        """Return one command for each node that may be replaced now."""
        candidates, refusals = eligible(self, turn.survey)
        allowances = turn.allowances(self.reason)
        by_pool: dict[str, list[Candidate]] = {}
        for candidate in sorted(candidates, key=lambda each: (drifted_since(each), each.name)):
            by_pool.setdefault(candidate.pool.name, []).append(candidate)
        commands: list[Command] = []
        held = False
        for name, drifted in sorted(by_pool.items()):
            allowance = allowances[name]
            taken = drifted[: allowance.remaining]
            for candidate in drifted[len(taken) :]:
                held = True
                refusals[candidate.name] = held_by_budget(candidate, allowance)
            found, reason = self._pool_commands(turn.world, drifted[0].pool, taken)
            commands += found
            if reason is not None:
                refusals.update({each.name: reason for each in taken[len(found) :]})
        return Proposal(commands=tuple(commands), refusals=refusals, held_by_budget=held)

    def _pool_commands(
        self, world: World, pool: NodePool, taken: Sequence[Candidate]
    ) -> tuple[list[Command], Reason | None]:
        """Return the commands that the pool's numbers allow, and what holds the other candidates back."""
        states, replicas = claim_states(world, pool.name), pool.spec.replicas or 0
        at = f"NodePool/{pool.name}"
        if states.active + states.pending_disruption > replicas:
            text = f"NodePool {pool.name} is being scaled down to {replicas} replicas first"
            return [], blocked(BlockCode.SCALING_DOWN, text, obj=at)
        limit = pool.spec.limits.get("nodes")
        room = limit.value() - states.total if limit is not None else len(taken)
        granted = taken[: max(room, 0)]
        commands = [self._command(each, (pool.name,)) for each in granted]
        if len(granted) == len(taken):
            return commands, None
        if world.policy(pool.name).static_drift_deletes_first and not commands:
            return self._delete_first(states, replicas, taken), self._at_limit(pool, limit, states)
        return commands, self._at_limit(pool, limit, states)

    def _delete_first(self, states: ClaimStates, replicas: int, taken: Sequence[Candidate]) -> list[Command]:
        """Return the removal of one node; its replacement is made by the pool's scale-up when it is gone."""
        whole = states.active >= replicas > 1 and not states.deleting and not states.pending_disruption
        return [self._command(taken[0], ())] if whole else []

    def _command(self, candidate: Candidate, replacements: tuple[str, ...]) -> Command:
        return Command(
            reason=self.reason,
            consolidation_type=self.consolidation_type,
            candidates=(candidate,),
            static_replacements=replacements,
        )

    def _at_limit(self, pool: NodePool, limit: object, states: ClaimStates) -> Reason:
        text = (
            f"limits.nodes ({limit}) of static NodePool {pool.name} leaves no room for a replacement beside"
            f" its {states.total} nodes (replicas: {pool.spec.replicas}); set limits.nodes above replicas"
        )
        return blocked(BlockCode.NODE_LIMIT, text, obj=f"NodePool/{pool.name}")

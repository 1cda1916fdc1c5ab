"""Replaces nodes that no longer match their pool or class (spec core/disruption §9).

Called by the loop after static drift. Pure; nothing is validated after a wait, and price plays no part.
"""

from __future__ import annotations

from typing import Final

from controller.disruption.command import Candidate, Command, ConsolidationType
from controller.disruption.drifting import drifted_since, not_drifted
from controller.disruption.method import Proposal, Turn, eligible, held_by_budget
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.rollout import held_by_rollout
from controller.disruption.simulation import Simulation
from controller.scheduling import Reason
from framework.api import DisruptionReason

__all__ = ["Drift"]


class Drift:
    """Replaces one drifted node per pass: the empty ones first, then the longest drifted."""

    reason: Final = DisruptionReason.DRIFTED
    consolidation_type: Final = ConsolidationType.NONE
    eventual: Final = True
    validated: Final = False

    def refuses(self, candidate: Candidate) -> Reason | None:
        """Return why the candidate is not for this method, or None."""
        if candidate.pool.spec.replicas is not None:
            text = f"NodePool {candidate.pool.name} is static"
            return blocked(BlockCode.STATIC, text, obj=f"Node/{candidate.name}")
        return not_drifted(candidate)

    def propose(self, turn: Turn) -> Proposal:
        """Return the command for the first drifted node whose pods all find a place."""
        candidates, refusals = eligible(self, turn.survey)
        allowances = turn.allowances(self.reason)
        held = False
        for candidate in sorted(candidates, key=lambda c: (not c.empty, drifted_since(c), c.name)):
            allowance = allowances[candidate.pool.name]
            if allowance.remaining <= 0:
                held = True
                refusals[candidate.name] = held_by_budget(candidate, allowance)
                continue
            hold = held_by_rollout(candidate, turn.world)
            if hold is not None:
                refusals[candidate.name] = hold
                continue
            simulation = turn.simulator.without((candidate,))
            failure = simulation.reason()
            if failure is None:
                command = self._command(candidate, simulation)
                return Proposal(commands=(command,), refusals=refusals, held_by_budget=held)
            refusals[candidate.name] = failure
        return Proposal(refusals=refusals, held_by_budget=held)

    def _command(self, candidate: Candidate, simulation: Simulation) -> Command:
        """Return the command; claims that hold only pods pending anyway stay with the provisioner."""
        moving = {pod.uid for pod in candidate.pods}
        return Command(
            reason=self.reason,
            consolidation_type=self.consolidation_type,
            candidates=(candidate,),
            replacements=tuple(each for each in simulation.claims if moving.intersection(each.pods)),
            placements=simulation.placements,
        )

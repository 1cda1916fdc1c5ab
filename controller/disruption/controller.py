"""The loop of voluntary disruption (spec core/disruption §1).

One reconciler with one key, made by `build` and run by `charpente run`. It takes a picture, asks one
method after the other, waits and validates where a method wants that, and hands commands to the queue. At
most one decision is in the making at a time; many commands may be running.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import timedelta
from typing import Final

import attrs
import structlog

from controller.clock import Clock
from controller.cloud import CloudError
from controller.disruption import notices
from controller.disruption.budgets import Allowance, budget_problems
from controller.disruption.candidates import Survey, survey
from controller.disruption.command import Command, ConsolidationType
from controller.disruption.decisions import Decision, DecisionLog, Outcome
from controller.disruption.history import Journal
from controller.disruption.marks import Marks
from controller.disruption.method import Method, Proposal, Turn, eligible
from controller.disruption.pauses import RolloutPauses
from controller.disruption.policy import policies
from controller.disruption.ports import Cluster, InstanceTypes, Offload, Publisher
from controller.disruption.queue import CommandAborted, CommandQueue
from controller.disruption.reasons import BlockCode
from controller.disruption.simulation import Expired
from controller.disruption.validation import Rejection, unchanged, validate
from controller.disruption.world import Gates, World
from controller.kube import NOW, SINGLETON, Client, Key, Requeue
from controller.observability import Metrics
from controller.scheduling import InstanceType, Options, Reason
from framework.api import ClaimCondition, DisruptionReason, NodePool, conditions, labels

__all__ = ["VALIDATION_WAIT_SECONDS", "DisruptionLoop", "LoopSettings"]

_log: Final = structlog.get_logger("controller")
VALIDATION_WAIT_SECONDS: Final = 15.0
"""From a decision of emptiness or consolidation to its validation."""
_IDLE: Final = timedelta(seconds=10)
_UNSYNCED: Final = timedelta(seconds=1)
_OVERDUE: Final = timedelta(minutes=15)
"""A method that has not run for this long is worth a line in the log."""
_QUIET: Final = frozenset(
    {
        BlockCode.STATIC,
        BlockCode.NOT_STATIC,
        BlockCode.NOT_DRIFTED,
        BlockCode.SETTLING,
        BlockCode.BUDGET,
        BlockCode.EMPTY,
        BlockCode.NOT_EMPTY,
        BlockCode.CANDIDATE_DELETING,
    }
)
"""Refusals that are the ordinary state of a node, so no event tells of them."""


@attrs.define(kw_only=True)
class _Memory:
    """What a method keeps from pass to pass."""

    settled: Hashable = None
    """The consolidation stamp at which it found nothing to do; None when it is to look again."""
    unreached: frozenset[str] = frozenset()
    last_run: float | None = None


@attrs.frozen(kw_only=True)
class LoopSettings:
    """What the operator set for disruption."""

    options: Options
    """What simulations ask the engine with, reserved mode Fallback."""
    gates: Gates = attrs.field(factory=Gates)


class DisruptionLoop:
    """Finds nodes that may go, one method after the other."""

    name: Final = "disruption"

    def __init__(  # noqa: PLR0913 - the one place where everything the loop needs comes together
        self,
        *,
        client: Client,
        cluster: Cluster,
        instance_types: InstanceTypes,
        queue: CommandQueue,
        methods: tuple[Method, ...],
        recorder: Publisher,
        metrics: Metrics,
        clock: Clock,
        offload: Offload,
        decisions: DecisionLog,
        journal: Journal,
        settings: LoopSettings,
    ) -> None:
        """Keep the arguments."""
        self._cluster = cluster
        self._instance_types = instance_types
        self._queue = queue
        self._methods = methods
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._offload = offload
        self._decisions = decisions
        self._journal = journal
        self._settings = settings
        self._marks = Marks(client, cluster, clock)
        self._pauses = RolloutPauses(client, cluster, clock, journal)
        self._memory = {id(method): _Memory() for method in methods}

    async def reconcile(self, key: Key) -> Requeue:
        """Run one pass; say when to come back: at once after a command, else in 10 seconds."""
        if key != SINGLETON:
            raise ValueError(f"the loop has no object {key}")
        self._log_overdue()
        for pool in self._cluster.pools.values():
            for problem in budget_problems(pool):
                _log.error("disruption budget cannot be read", NodePool={"name": pool.name}, error=problem)
        if not self._cluster.is_synced():
            return Requeue(_UNSYNCED)
        await self._clear_leftovers()
        for method in self._methods:
            if await self._run(method):
                return NOW
        return Requeue(_IDLE)

    async def picture(self) -> World:
        """Return the cluster as it is now, with the instance types of every pool that has any."""
        types: dict[str, tuple[InstanceType, ...]] = {}
        for name, pool in sorted(self._cluster.pools.items()):
            found = await self._types(pool)
            if found:
                types[name] = found
        snapshot = self._cluster.snapshot(self._clock.now())
        return World(
            snapshot=snapshot,
            claims=dict(self._cluster.claims),
            instance_types=types,
            options=self._settings.options,
            busy=self._queue.busy,
            gates=self._settings.gates,
            history=self._journal.history(snapshot.now),
            policies=policies(snapshot.pools, snapshot.scheduling_configs),
        )

    async def _types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        try:
            return tuple(await self._instance_types(pool))
        except CloudError as exc:
            _log.debug("instance types could not be listed", NodePool={"name": pool.name}, error=str(exc))
            return ()

    # One method

    async def _run(self, method: Method) -> bool:
        """Give the method its turn; return whether a command was started."""
        memory = self._memory[id(method)]
        memory.last_run = self._clock.monotonic()
        stamp = self._cluster.consolidation_stamp(self._clock.now())
        if method.validated and memory.settled == stamp:
            return False
        started = self._clock.monotonic()
        world = await self.picture()
        if method.reason is DisruptionReason.DRIFTED:
            await self._pauses.sync(world)
        turn, proposal = await self._offload(lambda: self._propose(method, world, memory.unreached))
        self._observe(method, self._clock.monotonic() - started, proposal)
        self._tell(method, turn, proposal)
        memory.unreached = proposal.unreached
        memory.settled = stamp if proposal.settled and not turn.survey.awaits_pods else None
        commands = proposal.commands
        if method.validated:
            commands = await self._validated(method, commands)
        return await self._start(commands, world)

    def _propose(self, method: Method, world: World, unreached: frozenset[str]) -> tuple[Turn, Proposal]:
        turn = Turn(world=world, survey=survey(world), deadline=self._deadline, unreached=unreached)
        return turn, method.propose(turn)

    def _deadline(self, seconds: float) -> Expired:
        end = self._clock.monotonic() + seconds
        return lambda: self._clock.monotonic() >= end

    async def _validated(self, method: Method, commands: tuple[Command, ...]) -> tuple[Command, ...]:
        """Return what still holds after the wait."""
        if not commands:
            return ()
        for command in commands:
            self._tell_candidates(command)
        await self._clock.sleep(VALIDATION_WAIT_SECONDS)
        kept = []
        for command in commands:
            outcome = await self._validate(method, command)
            if isinstance(outcome, Rejection):
                self._reject(method, command, outcome)
            else:
                kept.append(outcome)
        return tuple(kept)

    async def _validate(self, method: Method, command: Command) -> Command | Rejection:
        world = await self.picture()
        outcome = await self._offload(lambda: validate(command, method, world))
        if isinstance(outcome, Rejection) or command.consolidation_type is ConsolidationType.EMPTY:
            return outcome
        # While the engine simulated, the cluster went on: look once more at the nodes themselves.
        again = await self.picture()
        return await self._offload(lambda: unchanged(outcome, method, again))

    def _reject(self, method: Method, command: Command, rejection: Rejection) -> None:
        kind = str(command.consolidation_type)
        self._metrics.disruption.failed_validations.labels(consolidation_type=kind).inc()
        now = self._clock.now()
        self._decisions.record(
            Decision(
                id=self._queue.new_id(),
                at=now,
                command=command,
                outcome=Outcome.REJECTED,
                reason=rejection.reason,
                finished=now,
            )
        )
        self._memory[id(method)].settled = None
        _log.debug("disruption command rejected", command=command.text(), reason=rejection.reason.short())
        for candidate in command.candidates:
            node = self._cluster.nodes.get(candidate.name)
            why = f"{rejection.kind} ({rejection.reason.short()})"
            self._recorder.publish(*notices.rejected_events(node, candidate, command, why))

    async def _start(self, commands: tuple[Command, ...], world: World) -> bool:
        """Start the commands; return whether there were any. Raises CommandAborted when none could start."""
        aborted: list[CommandAborted] = []
        for command in commands:
            try:
                await self._queue.start(command, world, self._queue.new_id())
            except CommandAborted as exc:
                _log.error("disruption command could not start", command=command.text(), error=str(exc))
                aborted.append(exc)
        if aborted and len(aborted) == len(commands):
            raise aborted[0]
        return bool(commands)

    # What others see

    def _observe(self, method: Method, seconds: float, proposal: Proposal) -> None:
        metrics, reason = self._metrics.disruption, method.reason.lower()
        kind = str(method.consolidation_type)
        metrics.evaluation.labels(reason=reason, consolidation_type=kind).observe(seconds)
        if proposal.timed_out:
            metrics.timeouts.labels(consolidation_type=kind).inc()
            _log.debug("disruption method ran out of time", method=kind, unreached=len(proposal.unreached))

    def _tell(self, method: Method, turn: Turn, proposal: Proposal) -> None:
        taken, _ = eligible(method, turn.survey)
        self._metrics.disruption.eligible.labels(reason=method.reason.lower()).set(len(taken))
        self._tell_blocked(turn.survey)
        self._tell_budgets(turn.allowances(method.reason), method.reason)
        for name, reason in sorted(proposal.refusals.items()):
            if reason.code not in _QUIET and name in turn.survey.by_name:
                self._tell_refusal(method, turn, name, reason)

    def _tell_refusal(self, method: Method, turn: Turn, name: str, reason: Reason) -> None:
        node, claim = self._cluster.nodes.get(name), turn.survey.by_name[name].claim
        if method.reason is DisruptionReason.DRIFTED:
            self._recorder.publish(*notices.blocked_events(node, claim, reason.message))
        elif method.reason is DisruptionReason.UNDERUTILIZED or reason.code is BlockCode.HEADROOM:
            self._recorder.publish(*notices.unconsolidatable_events(node, claim, reason.message))

    def _tell_blocked(self, found: Survey) -> None:
        for each in found.blocked:
            if not each.silent:
                node = self._cluster.nodes.get(each.node.name)
                self._recorder.publish(*notices.blocked_events(node, each.claim, each.reason.message))

    def _tell_budgets(self, found: Mapping[str, Allowance], reason: DisruptionReason) -> None:
        pools = self._metrics.pools
        for name, each in found.items():
            pools.allowed_disruptions.labels(nodepool=name, reason=str(reason)).set(each.limit)
            pools.nodes_consuming_budgets.labels(nodepool=name, reason=str(reason)).set(each.disrupting)
            pool = self._cluster.pools.get(name)
            if each.counted and each.limit == 0 and pool is not None:
                self._recorder.publish(notices.budget_event(pool, each))

    def _tell_candidates(self, command: Command) -> None:
        if command.reason is not DisruptionReason.UNDERUTILIZED:
            return
        for candidate in command.candidates:
            node = self._cluster.nodes.get(candidate.name)
            self._recorder.publish(*notices.candidate_events(node, candidate, command))

    def _log_overdue(self) -> None:
        now = self._clock.monotonic()
        for method in self._methods:
            last = self._memory[id(method)].last_run
            if last is not None and now - last > _OVERDUE.total_seconds():
                _log.debug(
                    "disruption method has not run for a while",
                    method=type(method).__name__,
                    seconds=round(now - last),
                )

    # Leftovers

    async def _clear_leftovers(self) -> None:
        """Take taint and condition off nodes that no command owns: a controller before us left them."""
        busy = self._queue.busy
        for node in self._cluster.snapshot(self._clock.now()).nodes:
            claim = self._cluster.claims.get(node.claim_name or "")
            if claim is None or node.node_name is None or claim.name in busy or node.marked_for_deletion:
                continue
            tainted = any(taint.key == labels.DISRUPTED_TAINT for taint in node.taints) and not node.deleting
            marked = node.initialized and conditions.is_true(
                claim.status.conditions, ClaimCondition.DISRUPTION_REASON
            )
            if tainted or marked:
                await self._marks.clear(node.node_name if tainted else None, claim.name)

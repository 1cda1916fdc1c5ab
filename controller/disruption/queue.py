"""Carries commands out: taint, launch, wait, delete, or take everything back (spec core/disruption §15, §16).

The loop starts commands here; the queue's own reconciler moves them on about once a second and whenever a
claim changes. Nothing is kept across a restart: the loop clears taints and conditions that no command
owns, and replacements stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Final

import attrs
import structlog

from controller.clock import Clock
from controller.disruption import notices
from controller.disruption.command import Candidate, Command
from controller.disruption.costs import node_price
from controller.disruption.decisions import Decision, DecisionLog, Outcome
from controller.disruption.history import Journal
from controller.disruption.marks import Marks
from controller.disruption.ports import Cluster, Launcher, Publisher
from controller.disruption.reasons import BlockCode, blocked
from controller.disruption.validation import late_blocker
from controller.disruption.world import World
from controller.kube import SINGLETON, Client, Key, KubeError, NotFound, Requeue, kinds
from controller.observability import Metrics
from controller.scheduling import Options, Reason
from framework.api import CharpenteError, ClaimCondition, NodeClaim, conditions, labels

__all__ = ["CommandAborted", "CommandQueue", "command_timeout"]

_log: Final = structlog.get_logger("controller")
_TICK: Final = timedelta(seconds=1)
_SETTLE: Final = timedelta(seconds=1)
"""Time from the taint to the last look at the candidates: the scheduler has seen the taint by then."""
_SHORTEST: Final = timedelta(minutes=10)
_LONGEST: Final = timedelta(hours=1)
_PER_CANDIDATE: Final = timedelta(milliseconds=80)


def command_timeout(candidates: int) -> timedelta:
    """Return how old a command may become with that many candidates in the queue."""
    return min(max(_PER_CANDIDATE * candidates, _SHORTEST), _LONGEST)


class CommandAborted(CharpenteError):
    """A command could not be started; what it had done is taken back by the next pass of the loop."""


@attrs.define(kw_only=True)
class _Running:
    """A command on its way; the queue's scratch state."""

    id: str
    command: Command
    world: World
    started: datetime
    replacements: tuple[str, ...] = ()
    ready: set[str] = attrs.field(factory=set)
    checked: bool = False

    @property
    def claims(self) -> frozenset[str]:
        return frozenset(candidate.claim.name for candidate in self.command.candidates)


class CommandQueue:
    """The commands that run, and the reconciler that moves them on."""

    name: Final = "disruption.queue"

    def __init__(  # noqa: PLR0913 - the one place where everything a command touches comes together
        self,
        *,
        client: Client,
        cluster: Cluster,
        launcher: Launcher,
        recorder: Publisher,
        metrics: Metrics,
        clock: Clock,
        random: Random,
        decisions: DecisionLog,
        journal: Journal,
        nomination: timedelta,
    ) -> None:
        """Keep the arguments; `nomination` is how long a node that is to take pods is left alone."""
        self._client = client
        self._cluster = cluster
        self._launcher = launcher
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._random = random
        self._decisions = decisions
        self._journal = journal
        self._nomination = nomination
        self._marks = Marks(client, cluster, clock)
        self._running: dict[str, _Running] = {}

    @property
    def busy(self) -> frozenset[str]:
        """Return the names of the claims that belong to a running command."""
        return frozenset(name for each in self._running.values() for name in each.claims)

    def new_id(self) -> str:
        """Return an identifier for a decision."""
        return f"{self._random.getrandbits(48):012x}"

    async def start(self, command: Command, world: World, id: str) -> None:
        """Start a command: mark its nodes, launch its replacements, and wait for them.

        Raises CommandAborted when a candidate is busy already, or when too little of it could be done.
        """
        busy = self.busy
        taken = [each.claim.name for each in command.candidates if each.claim.name in busy]
        if taken:
            raise CommandAborted(f"claims {', '.join(taken)} belong to a running command")
        running = _Running(id=id, command=command, world=world, started=self._clock.now())
        self._running[id] = running
        try:
            self._announce(running)
            running.command = await self._mark(command)
            running.replacements = await self._launch(running)
        except (CommandAborted, asyncio.CancelledError):
            del self._running[id]
            raise
        self._cluster.mark_for_deletion(running.claims)
        self._nominate(running)
        self._count(running.command)
        self._journal.started(running.command, running.started)
        self._record(running, Outcome.STARTED)

    async def reconcile(self, key: Key) -> Requeue:
        """Move every running command on as far as it goes now."""
        if key != SINGLETON:
            raise ValueError(f"the queue has no object {key}")
        await asyncio.gather(*(self._advance(each) for each in tuple(self._running.values())))
        return Requeue(_TICK)

    # Starting

    def _announce(self, running: _Running) -> None:
        command = running.command
        new = [
            {"NodePool": planned.pool, "instance-types": list(planned.instance_types[:5])}
            for planned in command.replacements
        ]
        _log.info(
            "disrupting node(s)",
            command=command.text(),
            decision=str(command.decision),
            **{
                "command-id": running.id,
                "disrupted-node-count": len(command.candidates),
                "replacement-node-count": len(command.replacements) + len(command.static_replacements),
                "pod-count": command.pod_count,
                "disrupted-nodes": [_node_fields(each) for each in command.candidates],
                "replacement-nodes": new,
            },
        )

    async def _mark(self, command: Command) -> Command:
        """Return the command with those candidates that could be marked; all of them if it replaces."""
        results = await asyncio.gather(
            *(self._marks.set(each.name, each.claim.name, command.reason) for each in command.candidates),
            return_exceptions=True,
        )
        marked, failed = [], []
        for candidate, result in zip(command.candidates, results, strict=True):
            if result is None:
                marked.append(candidate)
            elif isinstance(result, KubeError):
                failed.append(f"{candidate.name}: {result}")
            else:
                raise result
        if failed and (not marked or command.replacements or command.static_replacements):
            raise CommandAborted(f"nodes could not be marked ({'; '.join(failed)})")
        return attrs.evolve(command, candidates=tuple(marked))

    async def _launch(self, running: _Running) -> tuple[str, ...]:
        command = running.command
        reason = command.reason.lower()
        names: list[str] = []
        try:
            for planned in command.replacements:
                pool = self._cluster.pools[planned.pool]
                names.append(await self._launcher.launch(planned, pool, reason=reason))
            for static in command.static_replacements:
                names.append(await self._launcher.launch_static(self._cluster.pools[static], reason=reason))
        except KeyError as exc:
            raise CommandAborted(f"NodePool {exc.args[0]} is gone") from exc
        except CharpenteError as exc:
            raise CommandAborted(f"a replacement could not be created: {exc}") from exc
        return tuple(names)

    def _nominate(self, running: _Running) -> None:
        until = self._clock.now() + self._nomination
        nodes = running.world.nodes
        pods = {pod.uid: pod for each in running.command.candidates for pod in each.pods}
        for placed in running.command.placements:
            pod, node = pods.get(placed.pod_uid), nodes.get(placed.node)
            if pod is not None and node is not None:
                self._cluster.nominate(placed.node, until)
                self._recorder.publish(notices.nominated_event(pod, node))

    def _count(self, command: Command) -> None:
        fields = {
            "decision": str(command.decision),
            "reason": command.reason.lower(),
            "consolidation_type": str(command.consolidation_type),
        }
        self._metrics.disruption.decisions.labels(**fields).inc()
        for pool in sorted({candidate.pool.name for candidate in command.candidates}):
            self._metrics.disruption.decisions_by_nodepool.labels(nodepool=pool, **fields).inc()

    # Waiting

    async def _advance(self, running: _Running) -> None:
        """Wait, finish or give up one command; errors of the API server are tried again at the next tick."""
        try:
            failure = await self._failure(running)
            if failure is not None:
                await self._abandon(running, failure)
            elif len(running.ready) == len(running.replacements) and running.checked:
                await self._finish(running)
        except KubeError as exc:
            _log.info("disruption command is tried again", **{"command-id": running.id}, error=str(exc))

    async def _failure(self, running: _Running) -> Reason | None:
        """Return why the command cannot succeed any more; notes on the way what is ready."""
        now = self._clock.now()
        if not running.checked and now - running.started >= _SETTLE:
            late = late_blocker(running.command, self._picture(now))
            if late is not None:
                return late
            running.checked = True
        for name in running.replacements:
            if name not in running.ready:
                failure = await self._replacement_failure(running, name)
                if failure is not None:
                    return failure
        if now - running.started > command_timeout(len(self.busy)):
            return blocked(BlockCode.TIMED_OUT, f"the command did not finish within {now - running.started}")
        return None

    async def _replacement_failure(self, running: _Running, name: str) -> Reason | None:
        claim = self._cluster.claims.get(name)
        if claim is None:
            claim = await self._read_claim(name)
        if claim is None or claim.deleting:
            text = f"replacement NodeClaim {name} is gone: no capacity, or it did not come up"
            return blocked(BlockCode.REPLACEMENT_GONE, text, obj=f"NodeClaim/{name}")
        if conditions.is_true(claim.status.conditions, ClaimCondition.INITIALIZED):
            running.ready.add(name)
            return None
        self._recorder.publish(notices.launching_event(claim, running.command), notices.waiting_event(claim))
        return None

    async def _read_claim(self, name: str) -> NodeClaim | None:
        try:
            raw = await self._client.get(kinds.NODECLAIM, name)
        except NotFound:
            return None
        self._cluster.apply(kinds.NODECLAIM, raw)
        return NodeClaim.from_wire(raw)

    def _picture(self, now: datetime) -> World:
        """Return what `late_blocker` looks at: nodes, pods and budgets."""
        snapshot = self._cluster.snapshot(now)
        return World(snapshot=snapshot, claims={}, instance_types={}, options=Options())

    # Ending

    async def _finish(self, running: _Running) -> None:
        """Delete the candidates' claims; raises KubeError when one could not be deleted yet."""
        for candidate in running.command.candidates:
            await self._delete(candidate, running.command)
        del self._running[running.id]
        self._journal.completed(running.command, self._launched_types(running), self._clock.now())
        self._record(running, Outcome.COMPLETED)
        _log.debug("disruption command finished", **{"command-id": running.id})

    async def _delete(self, candidate: Candidate, command: Command) -> None:
        claim = self._cluster.claims.get(candidate.claim.name)
        if claim is None or claim.deleting or claim.metadata.uid != candidate.claim.metadata.uid:
            return
        node = self._cluster.nodes.get(candidate.name)
        self._recorder.publish(*notices.terminating_events(node, claim, command))
        try:
            await self._client.delete(kinds.NODECLAIM, claim.name, uid=claim.metadata.uid)
        except NotFound:
            return
        self._metrics.claims.disrupted.labels(
            reason=command.reason.lower(),
            nodepool=candidate.pool.name,
            capacity_type=candidate.capacity_type or "",
        ).inc()

    async def _abandon(self, running: _Running, reason: Reason) -> None:
        """Take back what was done; replacements that exist stay and may be consolidated later."""
        command = running.command
        for candidate in command.candidates:
            await self._marks.clear(candidate.name, candidate.claim.name)
        self._cluster.unmark_for_deletion(running.claims)
        del self._running[running.id]
        if reason.code in (BlockCode.REPLACEMENT_GONE, BlockCode.TIMED_OUT):
            self._journal.replacement_failed(command)
        self._metrics.disruption.queue_failures.labels(
            decision=str(command.decision),
            reason=command.reason.lower(),
            consolidation_type=str(command.consolidation_type),
        ).inc()
        self._record(running, Outcome.ABANDONED, reason)
        _log.info("disruption command given up", **{"command-id": running.id}, reason=reason.short())
        for candidate in command.candidates:
            node = self._cluster.nodes.get(candidate.name)
            claim = self._cluster.claims.get(candidate.claim.name)
            message = f"disruption for {command.reason} given up: {reason.short()}"
            self._recorder.publish(*notices.blocked_events(node, claim, message))

    def _record(self, running: _Running, outcome: Outcome, reason: Reason | None = None) -> None:
        done = outcome is not Outcome.STARTED
        self._decisions.record(
            Decision(
                id=running.id,
                at=running.started,
                command=running.command,
                outcome=outcome,
                reason=reason,
                replaced_by=running.replacements,
                finished=self._clock.now() if done else None,
                real_savings=self._real_savings(running) if outcome is Outcome.COMPLETED else None,
            )
        )

    def _real_savings(self, running: _Running) -> float | None:
        """Return USD per hour saved, by the types that were really launched; None when a price is unknown."""
        before = [candidate.price for candidate in running.command.candidates]
        after = list(self._launched_prices(running))
        known = [price for price in (*before, *after) if price is not None]
        if len(known) < len(before) + len(after):
            return None
        return sum(known[: len(before)]) - sum(known[len(before) :])

    def _launched_types(self, running: _Running) -> tuple[str, ...]:
        found = (self._cluster.claims.get(name) for name in running.replacements)
        return tuple(
            claim.metadata.labels.get(labels.INSTANCE_TYPE, "") for claim in found if claim is not None
        )

    def _launched_prices(self, running: _Running) -> Iterator[float | None]:
        for name in running.replacements:
            claim = self._cluster.claims.get(name)
            if claim is None:
                yield None
                continue
            own = claim.metadata.labels
            pool = own.get(labels.NODEPOOL, "")
            found = running.world.types_by_name.get(pool, {}).get(own.get(labels.INSTANCE_TYPE, ""))
            price = node_price(found, own) if found is not None else None
            yield price + running.world.policy(pool).node_cost if price is not None else None


def _node_fields(candidate: Candidate) -> dict[str, object]:
    return {
        "Node": {"name": candidate.name},
        "NodeClaim": {"name": candidate.claim.name},
        "instance-type": candidate.type_name,
        "capacity-type": candidate.capacity_type or "",
    }

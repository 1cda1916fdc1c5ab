"""Claims through random faults: nothing leaked, nothing launched twice, nobody evicted against a budget.

The machine drives claims with API errors, lost watches, kills before and after every call, an EC2 whose
lists lag, and joining nodes in any order; then faults end, and what must hold is checked after the dust has
settled. That EC2 itself launches once per claim is the provider's part, proven in its own tests.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controller.cloud.provider import CreateFailed, InsufficientCapacity
from controller.kube import Conflict, KubeError, Unavailable, kinds
from framework.api import CharpenteError
from tests.controller.fakes.objects import a_claim, a_node, a_pod
from tests.controller.fakes.world import World

NAMES = ("default-aaaaa", "default-bbbbb", "default-ccccc")


class Killed(BaseException):
    """The process ends here and now; nothing may catch it."""


class Fuse:
    """Kills the process at the n-th place between two calls to the outside, counted from when it is lit."""

    def __init__(self) -> None:
        self.left: int | None = None

    def guard(self, target: Any, *names: str) -> None:
        for name in names:
            setattr(target, name, self._guarded(getattr(target, name)))

    def _guarded(self, method: Any) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            self._burn()
            answer = await method(*args, **options)
            self._burn()
            return answer

        return call

    def _burn(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Killed


class Claims(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.recorded: set[str] = set()
        self.do(self._begin())

    async def _begin(self) -> None:
        self.world = World()
        self.fuse = Fuse()
        self.fuse.guard(self.world.api, "get", "create", "patch", "delete", "evict")
        self.fuse.guard(self.world.cloud, "create", "get", "list", "delete")

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.do(self._settle())
            self.check_the_end()
            self.loop.close()

    # what happens

    @rule(name=st.sampled_from(NAMES))
    def create(self, name: str) -> None:
        if not self.world.api.exists(kinds.NODECLAIM, name):
            self.world.api.put(kinds.NODECLAIM, a_claim(name, spec={"terminationGracePeriod": "5m"}))

    @rule(name=st.sampled_from(NAMES), failures=st.lists(st.sampled_from(["conflict", "down"]), max_size=2))
    def reconcile(self, name: str, failures: list[str]) -> None:
        errors: dict[str, KubeError] = {
            "conflict": Conflict("patch", "modified"),
            "down": Unavailable("patch", "down"),
        }
        self.world.api.failures = [errors[each] for each in failures]
        self.do(self._try(name))
        self.world.api.failures = []

    @rule(name=st.sampled_from(NAMES), at=st.integers(0, 15))
    def kill(self, name: str, at: int) -> None:
        """Kill the process before or after one of its calls, and start it again."""
        self.fuse.left = at
        try:
            self.do(self._try(name))
        except Killed:
            self.world.start()
        self.fuse.left = None

    @precondition(lambda self: bool(self.world.cloud.instances))
    @rule()
    def collect_garbage_by_a_list_that_lags(self) -> None:
        """EC2's list leaves an instance out that is there."""
        hidden = min(self.world.cloud.instances)
        instance = self.world.cloud.instances.pop(hidden)
        self.do(self._collect())
        self.world.cloud.instances[hidden] = instance

    async def _collect(self) -> None:
        try:
            await self.world.run("nodeclaim.garbagecollection")
        except CharpenteError:
            return

    @rule(error=st.sampled_from(["capacity", "throttled"]))
    def cloud_trouble(self, error: str) -> None:
        found = InsufficientCapacity("none") if error == "capacity" else CreateFailed("Throttled", "slow")
        self.world.cloud.failures = [found]

    @rule()
    def lose_the_watch(self) -> None:
        self.world.api.lagging = True

    @rule()
    def regain_the_watch(self) -> None:
        self.world.api.lagging = False
        self.world.api.deliver()

    @rule()
    def restart(self) -> None:
        self.world.start()

    @rule(number=st.integers(0, 2))
    def join(self, number: int) -> None:
        launched = sorted(self.world.cloud.instances)
        if number < len(launched):
            name = f"node-{launched[number][-1]}"
            if not self.world.api.exists(kinds.NODE, name):
                self.world.api.put(kinds.NODE, a_node(name, launched[number]))
                self.world.api.put(kinds.POD, a_pod(f"web-{name}", node=name))
                self.world.api.protected.add(f"web-{name}")

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        if self.world.api.exists(kinds.NODECLAIM, name):
            self.do(self.world.api.delete(kinds.NODECLAIM, name))

    @rule(seconds=st.sampled_from([1, 10, 120, 1000]))
    def wait(self, seconds: int) -> None:
        self.do(self.world.clock.advance(seconds))

    @precondition(lambda self: bool(self.world.cloud.instances))
    @rule()
    def lose_an_instance(self) -> None:
        self.world.cloud.instances.pop(min(self.world.cloud.instances))

    # what must hold at any time

    @invariant()
    def remember_what_was_recorded(self) -> None:
        if hasattr(self, "world"):
            for name in self.world.api.names(kinds.NODECLAIM):
                found = self.world.claim(name).get("status", {}).get("providerID")
                self.recorded |= {found} if found else set()

    @invariant()
    def nobody_is_evicted_against_a_budget(self) -> None:
        if hasattr(self, "world"):
            assert self.world.api.evicted == []

    @invariant()
    def no_claim_has_two_instances(self) -> None:
        if hasattr(self, "world"):
            assert len(set(self.world.cloud.launched.values())) == len(self.world.cloud.launched)

    async def _try(self, name: str) -> None:
        try:
            await self.world.lifecycle(name)
            for node in self.world.api.names(kinds.NODE):
                await self.world.run("node.termination", node)
            await self.world.evict()
        except CharpenteError:
            return

    async def _settle(self) -> None:
        """End all faults and let everything be deleted; grace periods end what budgets protect."""
        world = self.world
        world.api.failures, world.cloud.failures, world.api.lagging = [], [], False
        world.api.deliver()
        for name in world.api.names(kinds.NODECLAIM):
            if "deletionTimestamp" not in world.claim(name)["metadata"]:
                await world.api.delete(kinds.NODECLAIM, name)
        for _ in range(12):
            for name in NAMES:
                await self._try(name)
            await world.clock.advance(60)

    def check_the_end(self) -> None:
        """No claim is left, and no instance that a claim had recorded.

        One that was launched but never written is the provider's to collect, by its tags.
        """
        alive = {key for key, each in self.world.cloud.instances.items() if not each.deleting}
        assert self.world.api.names(kinds.NODECLAIM) == []
        assert alive & self.recorded == set()


TestClaims = Claims.TestCase
TestClaims.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)

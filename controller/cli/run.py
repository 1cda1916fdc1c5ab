"""`charpente run`: the controller, on every replica.

Started by the Deployment. Puts everything together, serves metrics and probes, keeps the mirror warm, and
while it holds the lease runs the controllers. SIGTERM lets reconciles in hand finish and gives the
lease up; a lost lease ends the process, and the Deployment starts it again.
"""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, closing
from random import Random, SystemRandom
from typing import Any, Final, NoReturn

import attrs
import click
import structlog

from controller.cli.memory import collect_rarely, stay_under
from controller.cli.operator import Operated, Operator, controllers
from controller.cli.settings import Mode, Settings, env_name, flag_name
from controller.clock import Clock, SystemClock
from controller.cluster import Mirror, Shell, Writer, watch_all
from controller.kube import (
    Client,
    Connection,
    Controller,
    ControllerSpec,
    LeaderElector,
    LeaseSettings,
    Recorder,
    TokenBucket,
    connect,
    kinds,
    pod_namespace,
)
from controller.observability import Endpoints, Metrics, Ports, logs
from controller.observability.cluster import ClusterObserver
from controller.observability.conditions import ConditionObserver
from framework.api import UserError

__all__ = ["run"]

_log: Final = structlog.get_logger("controller")
_VERSION: Final = "0.1.0"
_LISTED_POLL_S: Final = 0.05
_STOP_WITHIN_S: Final = 15.0
"""How long reconciles in hand may take after SIGTERM; under the usual grace period of 30 s."""
_LAG_EVERY_S: Final = 0.5
_SWITCH_S: Final = 0.0005
"""How long the planning thread may keep the interpreter from the event loop, which asks for it often."""
_TOKEN_EVERY_S: Final = 60.0
_LEASE_RATE: Final = (5.0, 10)
"""Requests a second and at once of the lease's own client, which no other request can hold up."""


Views = dict[str, Callable[[], object]]
"""What `/debug/<name>` shows, by name."""


class LeadershipLost(UserError):
    """The lease went to another replica; this process must not act any longer."""


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Add one option per setting; all are text here, `Settings.load` reads them."""
    for field in reversed(attrs.fields(Settings)):
        option = click.option(
            flag_name(field.name),
            field.name,
            metavar=field.metadata["expected"].upper().replace(" ", "-"),
            help=f"{field.metadata['help']} [{env_name(field.name)}]",
        )
        command = option(command)
    return command


@click.command()
@click.option("--kubeconfig", help="Kubeconfig to use instead of the pod's service account.")
@_options
def run(kubeconfig: str | None, **flags: str | None) -> None:
    """Run the controller until it is told to stop."""
    try:
        settings = Settings.load(os.environ, flags)
        outputs = logs.Outputs(settings.log_output_paths, settings.log_error_output_paths)
    except UserError as exc:
        _refuse(exc)
    clock = SystemClock()
    commit = os.environ.get("COMMIT", "")
    with closing(outputs):
        logs.configure(settings.log_level, now=clock.now, commit=commit, stream=outputs)
        try:
            asyncio.run(_serve(settings, kubeconfig, clock))
        except UserError as exc:
            _refuse(exc)
        except BaseExceptionGroup as group:
            _report(group)
            sys.exit(1)


def _refuse(exc: UserError) -> NoReturn:
    click.echo(f"charpente: {exc}", err=True)
    sys.exit(2)


def _report(group: BaseExceptionGroup[BaseException]) -> None:
    for exc in group.exceptions:
        if isinstance(exc, BaseExceptionGroup):
            _report(exc)
        else:
            _log.error("stopped", error=str(exc) or type(exc).__name__, exc_info=exc)


async def _serve(settings: Settings, kubeconfig: str | None, clock: Clock) -> None:
    """Open what every replica needs and stay until told to stop."""
    sys.setswitchinterval(_SWITCH_S)
    collect_rarely()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    gates = settings.feature_gates
    metrics, mirror = Metrics(), Mirror(overlays=gates.node_overlay, buffers=gates.capacity_buffer)
    random = Random(SystemRandom().getrandbits(64))  # noqa: S311 - names and jitter, no secrets
    metrics.runtime.build.labels(
        version=_VERSION, goversion=f"python{platform.python_version()}", goarch=platform.machine(), commit=""
    ).set(1)
    connection = await connect(kubeconfig)
    views: Views = {}
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            _client(connection, clock, metrics, settings.kube_client_qps, settings.kube_client_burst)
        )
        lease_client = await stack.enter_async_context(_client(connection, clock, metrics, *_LEASE_RATE))
        await stack.enter_async_context(_endpoints(settings, metrics, mirror, views, clock))
        shell = Shell(
            client=client,
            mirror=mirror,
            writer=Writer(client, mirror),
            recorder=Recorder(client, clock=clock, random=random),
            metrics=metrics,
            clock=clock,
            random=random,
            workers=settings.workers,
        )
        replica = _Replica(
            settings=settings,
            shell=shell,
            lease_client=lease_client,
            stop=stop,
            ca_bundle=connection.ca_bundle(),
            views=views,
        )
        await _attend(replica, connection)


def _client(connection: Connection, clock: Clock, metrics: Metrics, rate: float, burst: int) -> Client:
    limit = TokenBucket(clock, rate=rate, burst=burst)
    return Client(
        connection, clock=clock, metrics=metrics, limit=limit, user_agent=f"karpenter/{_VERSION} (charpente)"
    )


def _endpoints(
    settings: Settings,
    metrics: Metrics,
    mirror: Mirror,
    views: Mapping[str, Callable[[], object]],
    clock: Clock,
) -> Endpoints:
    return Endpoints(
        metrics,
        host=settings.bind_address,
        ports=Ports(metrics=settings.metrics_port, probes=settings.health_probe_port),
        views=views,
        profiling=settings.enable_profiling,
        ready={
            "mirror": lambda: mirror.listed,
            "watches": lambda: mirror.is_fresh(clock.monotonic()),
            "nodepools.karpenter.sh": lambda: mirror.store(kinds.NODEPOOL).installed,
            "nodeclaims.karpenter.sh": lambda: mirror.store(kinds.NODECLAIM).installed,
        },
    )


@attrs.frozen(kw_only=True, eq=False)
class _Replica:
    settings: Settings
    shell: Shell
    lease_client: Client
    stop: asyncio.Event
    ca_bundle: str
    views: Views
    """What `/debug/<name>` shows as JSON; filled once the controllers are there."""

    @property
    def observes(self) -> bool:
        """Return whether nothing may be written."""
        return self.settings.mode is Mode.OBSERVE

    @property
    def lease(self) -> LeaseSettings:
        """Return the election's settings; the identity is the pod and one start of it."""
        namespace = self.settings.leader_election_namespace or pod_namespace(os.environ)
        # The kubelet names the pod in HOSTNAME, also where pods share a host's name.
        pod = os.environ.get("HOSTNAME") or socket.gethostname()
        identity = f"{pod}_{self.shell.random.getrandbits(64):016x}"
        return LeaseSettings(name=self.settings.leader_election_name, namespace=namespace, identity=identity)


async def _attend(replica: _Replica, connection: Connection) -> None:
    """Keep mirror, events, token and lag gauge going, and lead when the lease is ours."""
    shell = replica.shell
    async with asyncio.TaskGroup() as group:
        background = [
            group.create_task(watch_all(shell.client, shell.mirror, clock=shell.clock, random=shell.random)),
            group.create_task(_watch_lag(shell)),
            group.create_task(_refresh_token(connection, shell.clock)),
        ]
        if replica.settings.memory_limit > 0:
            background.append(group.create_task(stay_under(replica.settings.memory_limit, shell.clock)))
        if not replica.observes:
            background.append(group.create_task(shell.recorder.run()))
        try:
            await _lead(replica)
        finally:
            for task in background:
                task.cancel()


async def _lead(replica: _Replica) -> None:
    """Make everything ready, wait for the lease, act until told to stop or until it is lost, give it up.

    The controllers are made before the lease is won, so that a standby acts at once when it wins.
    """
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="planner")
    try:
        operator = Operator(
            settings=replica.settings, shell=replica.shell, executor=executor, ca_bundle=replica.ca_bundle
        )
        operated = await controllers(operator)
        if await _unless_stopped(replica.stop, _listed(replica.shell)):
            await _elect(replica, operated)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


async def _elect(replica: _Replica, operated: Operated) -> None:
    if replica.settings.disable_leader_election or replica.observes:
        await _act(replica, operated)
        return
    elector = LeaderElector(replica.lease_client, replica.lease, clock=replica.shell.clock)
    if not await _unless_stopped(replica.stop, elector.acquire()):
        return
    replica.shell.metrics.runtime.leader.labels(name=replica.settings.leader_election_name).set(1)
    async with asyncio.TaskGroup() as group:
        hold = group.create_task(_hold(elector))
        await _act(replica, operated)
        hold.cancel()
    await elector.release()


async def _hold(elector: LeaderElector) -> None:
    await elector.hold()
    raise LeadershipLost("leadership lost; exiting so that two replicas never act")


async def _act(replica: _Replica, operated: Operated) -> None:
    """Run every controller until told to stop."""
    replica.views.update(operated.views)
    gc.freeze()  # what lives from start to end is not looked through again and again
    _observe(replica)
    await _run_all(operated.specs, replica.shell, replica.stop)


def _observe(replica: _Replica) -> None:
    """Show objects as metrics and condition changes as events, unless that is switched off."""
    if replica.settings.disable_cluster_state_observability:
        return
    shell = replica.shell
    ClusterObserver(shell.mirror, shell.metrics, shell.clock).follow()
    ConditionObserver(shell.mirror, shell.metrics, shell.recorder, shell.clock).follow()


async def _run_all(specs: tuple[ControllerSpec, ...], shell: Shell, stop: asyncio.Event) -> None:
    loops = [
        Controller(spec, clock=shell.clock, metrics=shell.metrics, random=shell.random) for spec in specs
    ]
    for loop in loops:
        loop.listen(shell.mirror)
    _log.info("controllers started", controllers=len(loops))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(loop.run(stop), name=loop.name) for loop in loops]
        await stop.wait()
        _log.info("stopping: letting reconciles in hand finish")
        await asyncio.wait(tasks, timeout=_STOP_WITHIN_S)
        for task in tasks:
            task.cancel()


async def _listed(shell: Shell) -> None:
    """Return once every kind was listed: acting on half a picture would delete what is only not seen yet."""
    while not shell.mirror.listed:
        await shell.clock.sleep(_LISTED_POLL_S)


async def _unless_stopped(stop: asyncio.Event, work: Any) -> bool:
    """Do the work unless told to stop first; tell whether it was done."""
    task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return True
        return False
    finally:
        task.cancel()
        stopped.cancel()


async def _watch_lag(shell: Shell) -> None:
    while True:
        started = shell.clock.monotonic()
        await shell.clock.sleep(_LAG_EVERY_S)
        shell.metrics.runtime.loop_lag.observe(max(0.0, shell.clock.monotonic() - started - _LAG_EVERY_S))


async def _refresh_token(connection: Connection, clock: Clock) -> None:
    while True:
        await clock.sleep(_TOKEN_EVERY_S)
        await connection.refresh()

"""Puts every controller together from the settings.

Called by `charpente run` once it leads. The one place that knows all packages; the order of the list has
no meaning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from datetime import timedelta
from typing import Final, TypeVar

import attrs

from controller import disruption, interruption, nodeclaims, provisioning
from controller.cli.observing import Observed, ObservingLauncher, ObservingWriter, WouldDisrupt
from controller.cli.settings import Mode, Settings
from controller.cloud import aws
from controller.cloud.aws import AwsOperator, AwsSettings, Surroundings
from controller.cloud.metered import MeteredProvider
from controller.cloud.provider import CloudError
from controller.cluster import Shell
from controller.disruption import Disruption, Gates, LoopSettings
from controller.disruption.costs import disruption_cost
from controller.kube import ControllerSpec
from controller.provisioning import Batching, ClaimWriter, Launcher
from controller.scheduling import (
    MinValuesPolicy,
    Objective,
    Options,
    Plan,
    PreferencePolicy,
    Problem,
    ReservedMode,
    search_limit,
    solve,
)
from framework.api import UserError

__all__ = ["NoProvider", "Operated", "Operator", "aws_settings", "controllers", "engine_options"]

T = TypeVar("T")
_READING: Final = frozenset({"providers.instancetype", "providers.pricing", "providers.ssm.invalidation"})
"""The provider's controllers that write nothing, for observe mode."""
_SOLVE_WITHIN_S: Final = 60.0
"""Planning that takes longer goes on with what is placed so far (spec core/scheduling §1)."""
_LEAST_NOMINATION: Final = timedelta(seconds=10)


class NoProvider(UserError):
    """The provider cannot be set up; nothing can be launched."""


@attrs.frozen(kw_only=True, eq=False)
class Operator:
    """What the controllers are made from."""

    settings: Settings
    shell: Shell
    executor: Executor
    """The one thread that plans."""
    ca_bundle: str = ""
    """The CA that we trust the API server by, base64; what nodes get unless the settings say otherwise."""

    async def offload(self, work: Callable[[], T]) -> T:
        """Run planning in the planning thread."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, work)

    async def plan(self, problem: Problem) -> Plan:
        """Solve a problem in the planning thread."""
        clock = self.shell.clock
        start = clock.monotonic()
        end, search_end = start + _SOLVE_WITHIN_S, start + search_limit(problem).total_seconds()
        return await self.offload(
            lambda: solve(
                problem,
                expired=lambda: clock.monotonic() > end,
                searched=lambda: clock.monotonic() > search_end,
            )
        )

    @property
    def options(self) -> Options:
        """Return how the engine is to solve for the provisioner."""
        return engine_options(self.settings)


@attrs.frozen(kw_only=True, eq=False)
class Operated:
    """What runs, and what it shows at `/debug/<name>` as JSON."""

    specs: tuple[ControllerSpec, ...]
    views: Mapping[str, Callable[[], object]]


async def controllers(operator: Operator) -> Operated:
    """Return everything to run, the provider's controllers included.

    Raises UserError when the provider cannot be set up, for instance without a region.
    """
    shell, settings = operator.shell, operator.settings
    try:
        around = Surroundings(
            client=shell.client,
            mirror=shell.mirror,
            recorder=shell.recorder,
            clock=shell.clock,
            random=shell.random,
            registry=shell.metrics.registry,
            server_version=shell.client.server_version,
        )
        operated = await aws.build(aws_settings(settings, operator.ca_bundle), around)
    except (ValueError, CloudError) as exc:
        raise NoProvider(f"AWS cannot be used: {exc}; set AWS_REGION and give the pod credentials") from exc
    metered = MeteredProvider(operated.provider, shell.metrics, shell.clock)
    if settings.mode is Mode.OBSERVE:
        reading = tuple(each for each in operated.controllers if each.reconciler.name in _READING)
        return _observing(operator, metered, reading)
    launcher = ClaimWriter(shell.client, shell.mirror, metrics=shell.metrics, random=shell.random)
    gates, found = settings.feature_gates, _disruption(operator, metered, launcher)
    specs = (
        *operated.controllers,
        *nodeclaims.build(shell, metered, repair=gates.node_repair, overlays=gates.node_overlay),
        *_provisioning(operator, metered, launcher),
        *(provisioning.build_static(shell, launcher, disruption_cost) if gates.static_capacity else ()),
        *interruption.build(_queue(settings, operated), shell),
        *(interruption.build_statuses(operated.parts.aws.ec2, shell) if gates.instance_status else ()),
        *found.specs,
    )
    return Operated(specs=specs, views={"decisions": found.decisions.to_json})


def _observing(
    operator: Operator, provider: MeteredProvider, reading: tuple[ControllerSpec, ...]
) -> Operated:
    """Return what decides without acting: refreshers that only read, planning, and a look at disruption."""
    shell = operator.shell
    observed = Observed(shell)
    silent = attrs.evolve(
        operator, shell=attrs.evolve(shell, writer=ObservingWriter(shell.client, shell.mirror))
    )
    look = WouldDisrupt(
        shell=operator.shell,
        provider=provider,
        options=attrs.evolve(operator.options, reserved_mode=ReservedMode.FALLBACK),
        offload=operator.offload,
        observed=observed,
    )
    specs = (
        *reading,
        *_provisioning(silent, provider, ObservingLauncher(observed)),
        ControllerSpec(reconciler=look, singleton=True, workers=1),
    )
    return Operated(specs=specs, views={"observed": observed.to_json})


def _provisioning(
    operator: Operator, provider: MeteredProvider, launcher: Launcher
) -> tuple[ControllerSpec, ...]:
    settings = operator.settings
    batching = Batching(idle=settings.batch_idle_duration, longest=settings.batch_max_duration)
    return provisioning.build(
        operator.shell, provider, operator.plan, launcher, options=operator.options, batching=batching
    )


def _disruption(operator: Operator, provider: MeteredProvider, launcher: ClaimWriter) -> Disruption:
    shell, settings = operator.shell, operator.settings
    options = attrs.evolve(operator.options, reserved_mode=ReservedMode.FALLBACK)
    gates = Gates(spot_to_spot=settings.feature_gates.spot_to_spot_consolidation)
    return disruption.build(
        client=shell.client,
        cluster=shell.mirror,
        instance_types=provider.instance_types,
        launcher=launcher,
        recorder=shell.recorder,
        metrics=shell.metrics,
        clock=shell.clock,
        random=shell.random,
        offload=operator.offload,
        settings=LoopSettings(options=options, gates=gates),
        nomination=max(_LEAST_NOMINATION, 2 * settings.batch_max_duration),
    )


def _queue(settings: Settings, operated: AwsOperator) -> interruption.Queue:
    return interruption.Queue(
        given=settings.interruption_queue,
        sqs=operated.parts.aws.sqs,
        unavailable=operated.parts.unavailable,
    )


def engine_options(settings: Settings) -> Options:
    """Return how the engine is to solve for pending pods."""
    return Options(
        objective=Objective(settings.packing_objective),
        preference_policy=PreferencePolicy(settings.preference_policy),
        min_values_policy=MinValuesPolicy(settings.min_values_policy),
        reserved_capacity=settings.feature_gates.reserved_capacity,
        ignore_dra=settings.ignore_dra_requests,
    )


def aws_settings(settings: Settings, ca_bundle: str) -> AwsSettings:
    """Return the provider's settings; `ca_bundle` is the CA that the API server is trusted by, base64."""
    return AwsSettings(
        cluster_name=settings.cluster_name,
        cluster_endpoint=settings.cluster_endpoint or None,
        cluster_ca_bundle=settings.cluster_ca_bundle or ca_bundle,
        isolated_vpc=settings.isolated_vpc,
        eks_control_plane=settings.eks_control_plane,
        vm_memory_overhead=settings.vm_memory_overhead_percent,
        reserved_enis=settings.reserved_enis,
        disable_dry_run=settings.disable_dry_run,
        reserved_capacity=settings.feature_gates.reserved_capacity,
        min_values_strict=settings.min_values_policy == MinValuesPolicy.STRICT,
    )

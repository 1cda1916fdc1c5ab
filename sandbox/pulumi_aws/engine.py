"""Pulumi's real engine on the sandbox: up, preview, refresh and destroy of a program.

Called by the demo, by tests and by `python -m sandbox`. Owns the engine's
environment: state in the sandbox's folder, AWS at the sandbox's endpoint, nothing
from the user's own Pulumi, AWS or Kubernetes configuration.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import attrs
from pulumi import automation
from pulumi.automation import events as engine_events

from sandbox import tools
from sandbox.errors import SandboxError
from sandbox.pulumi_aws.launchers import PulumiHome

Program = Callable[[], None]


class Action(StrEnum):
    """What to do with a stack."""

    PREVIEW = "preview"
    UP = "up"
    REFRESH = "refresh"
    DESTROY = "destroy"


class Step(StrEnum):
    """Where one resource stands."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class Progress:
    """One step of one resource, for a progress display."""

    step: Step
    operation: str
    """The engine's word: create, update, delete, same, refresh …"""
    urn: str

    @property
    def type(self) -> str:
        """The resource's type."""
        return self.urn.split("::")[2].rsplit("$", 1)[-1]

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return self.urn.split("::", 3)[3]


@attrs.frozen(kw_only=True)
class Outcome:
    """How it ended."""

    action: Action
    changes: Mapping[str, int]
    """Operation → number of resources; a no-op up has only `same`."""
    outputs: Mapping[str, Any]
    seconds: float

    @property
    def changed(self) -> Mapping[str, int]:
        """The changes without what stayed the same."""
        return {op: count for op, count in self.changes.items() if op not in ("same", "discard", "read")}


@attrs.frozen
class PulumiFailed(SandboxError):
    """The engine ended with an error; `problem` holds its diagnostics."""


class Engine:
    """The engine of one sandbox."""

    def __init__(
        self, *, root: Path, aws_endpoint: str, region: str, environment: Mapping[str, str] | None = None
    ) -> None:
        """Prepare `root` for the engine. Raises ToolMissing when engine or provider cannot be had."""
        self._home = PulumiHome(root=root)
        self._home.prepare(
            engine=tools.find("pulumi"), kubernetes_provider=tools.find("pulumi-resource-kubernetes")
        )
        self._aws_endpoint, self._region = aws_endpoint, region
        self._extra = dict(environment or {})

    @property
    def backend(self) -> Path:
        """Where the states are."""
        return self._home.backend

    def environment(self) -> dict[str, str]:
        """The environment for `pulumi` and its plugins, also for running the command line by hand."""
        path = os.pathsep.join(
            (str(self._home.programs), str(Path(sys.executable).parent), os.environ.get("PATH", ""))
        )
        return {
            "PATH": path,
            "PULUMI_HOME": str(self._home.home),
            "PULUMI_BACKEND_URL": f"file://{self._home.backend}",
            "PULUMI_CONFIG_PASSPHRASE": "",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "AWS_ENDPOINT_URL": self._aws_endpoint,
            "AWS_REGION": self._region,
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "sandbox",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "KUBECONFIG": os.devnull,
            **self._extra,
        }

    def run(
        self,
        action: Action,
        program: Program,
        *,
        project: str,
        stack: str,
        config: Mapping[str, str],
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> Outcome:
        """Carry out an action. Raises PulumiFailed with the engine's own diagnostics."""
        opened = self._open(program, project, stack, config)
        diagnostics: list[str] = []

        def listen(event: engine_events.EngineEvent) -> None:
            diagnostics.extend(_errors(event))
            found = _progress(event)
            if found is not None:
                on_progress(found)

        started = time.monotonic()
        try:
            changes = _carry_out(opened, action, listen)
        except automation.errors.CommandError as error:
            raise PulumiFailed(
                f"pulumi {action} of {stack}",
                "\n".join(dict.fromkeys(diagnostics)) or str(error),
                "mend the cause and run it again; the state is kept",
            ) from error
        outputs = {} if action is Action.DESTROY else opened.outputs()
        return Outcome(
            action=action,
            changes=changes,
            outputs={name: output.value for name, output in outputs.items()},
            seconds=time.monotonic() - started,
        )

    def _open(
        self, program: Program, project: str, stack: str, config: Mapping[str, str]
    ) -> automation.Stack:
        folder = self._home.root / "projects" / f"{project}-{stack}"
        folder.mkdir(parents=True, exist_ok=True)
        backend = automation.ProjectBackend(f"file://{self._home.backend}")
        settings = automation.ProjectSettings(name=project, runtime="python", backend=backend)
        opened = automation.create_or_select_stack(
            stack,
            project_name=project,
            program=program,
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(folder),
                project_settings=settings,
                pulumi_home=str(self._home.home),
                env_vars=self.environment(),
                pulumi_command=automation.PulumiCommand(root=str(self._home.root)),
            ),
        )
        stale = opened.get_all_config().keys() - config.keys()
        if stale:  # of an earlier run: a key that is not given must not act
            opened.remove_all_config(sorted(stale))
        opened.set_all_config({key: automation.ConfigValue(value) for key, value in config.items()})
        return opened


def _carry_out(
    stack: automation.Stack, action: Action, listen: Callable[[engine_events.EngineEvent], None]
) -> Mapping[str, int]:
    if action is Action.PREVIEW:
        preview = stack.preview(on_event=listen)
        return {_word(operation): count for operation, count in preview.change_summary.items()}
    calls: Mapping[Action, Callable[..., Any]] = {
        Action.UP: stack.up,
        Action.REFRESH: stack.refresh,
        Action.DESTROY: stack.destroy,
    }
    return dict(calls[action](on_event=listen).summary.resource_changes or {})


def _word(operation: automation.OpType) -> str:
    """The engine's word; the SDK leaves it a plain text in some events."""
    return automation.OpType(operation).value


def _errors(event: engine_events.EngineEvent) -> list[str]:
    found = event.diagnostic_event
    if found is None or found.severity != "error":
        return []
    where = found.urn.rsplit("::", 1)[-1] if found.urn else "program"
    return [f"{where}: {found.message.strip()}"]


def _progress(event: engine_events.EngineEvent) -> Progress | None:
    if event.resource_pre_event is not None:
        metadata, step = event.resource_pre_event.metadata, Step.STARTED
    elif event.res_outputs_event is not None:
        metadata, step = event.res_outputs_event.metadata, Step.DONE
    elif event.res_op_failed_event is not None:
        metadata, step = event.res_op_failed_event.metadata, Step.FAILED
    else:
        return None
    return Progress(step=step, operation=_word(metadata.op), urn=metadata.urn)

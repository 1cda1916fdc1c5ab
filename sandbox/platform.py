"""The whole platform on a sandbox: the root program, run by the real engine, up and down.

Used by the demo and the end-to-end tests. The program, its configuration keys and the engine are those a user
runs; only the AWS endpoint is the sandbox's, and tokens come without the `aws` command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sandbox.machine import Sandbox
from sandbox.pulumi_aws.engine import Action, Engine, Outcome, Progress, Step
from stacks.programs.platform import platform_program

__all__ = ["Platform"]

PROJECT, STACK = "charpente", "sandbox"


class Platform:
    """One stack of the root program on one sandbox."""

    def __init__(self, sandbox: Sandbox, config: Mapping[str, str] | None = None) -> None:
        """Prepare the engine; nothing runs yet. `config` adds to the sandbox's own configuration.

        Raises: ToolMissing, SandboxError when AWS is not up.
        """
        region = sandbox.environment["AWS_REGION"]
        self._engine = Engine(
            root=sandbox.directory / "pulumi", aws_endpoint=sandbox.aws_endpoint, region=region
        )
        self._config = {
            "aws:region": region,
            "charpente:tokenCommand": "charpente",
            **(config or {}),
        }

    def up(self, progress: Callable[[str], None] = lambda _: None) -> Outcome:
        """Make everything, or bring it up to date. Raises: PulumiFailed."""
        return self._run(Action.UP, progress)

    def destroy(self, progress: Callable[[str], None] = lambda _: None) -> Outcome:
        """Take everything down. Raises: PulumiFailed."""
        return self._run(Action.DESTROY, progress)

    def _run(self, action: Action, progress: Callable[[str], None]) -> Outcome:
        done = 0

        def tell(event: Progress) -> None:
            nonlocal done
            done += event.step is Step.DONE
            progress(f"({done} resources done; {event.step} {event.operation} {event.name})")

        return self._engine.run(
            action, platform_program, project=PROJECT, stack=STACK, config=self._config, on_progress=tell
        )

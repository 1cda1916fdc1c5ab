"""The command `charpente`.

Each subcommand lives in a module of its own that is imported only when it is called, so that small
commands start at once.
"""

from __future__ import annotations

import importlib
from typing import Final

import click

__all__ = ["main"]

_COMMANDS: Final = {
    "crds": "controller.cli.crds:crds",
    "explain": "controller.cli.explain:explain",
    "lint": "controller.cli.lint:lint",
    "run": "controller.cli.run:run",
    "simulate": "controller.cli.simulate:simulate",
    "snapshot": "controller.cli.snapshot:snapshot",
}


class _Lazy(click.Group):
    """A group that imports a command when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, sorted."""
        del ctx
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, imported now, or None."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.group(cls=_Lazy)
@click.version_option(package_name="charpente")
def main() -> None:
    """Nodes for pods, on AWS."""

"""The reference page of the stacks' configuration: `python -m stacks.programs.config_reference DIR`.

Called by the maintainers and by the test that keeps `docs/reference` fresh. Prints what `config` holds; has
no knowledge of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import attrs

from framework.components.controller_settings import ControllerSettings
from stacks.programs.config import NAMESPACE, StackConfig, wire

__all__ = ["FILE", "page"]

FILE = "configuration.md"


def page() -> str:
    """The page, in Markdown."""
    defaults = StackConfig()
    rows = [
        f"| `{NAMESPACE}:{wire(field.name)}` | {field.metadata['help']} | {field.metadata['allowed']} "
        f"| {_shown(getattr(defaults, field.name))} |"
        for field in attrs.fields(StackConfig)
    ]
    settings = [f"`{wire(field.name)}`" for field in attrs.fields(ControllerSettings)]
    parts = (
        "# Configuration of the stacks",
        "Every stack takes the same keys, by `pulumi config set KEY VALUE`; lists and maps are written as "
        "JSON, or key by key with `--path`. A wrong value or an unknown key stops the preview. Written by "
        "`python -m stacks.programs.config_reference docs/reference`.",
        "\n".join(("| Key | Meaning | Allowed | Default |", "|---|---|---|---|", *rows)),
        f"`{NAMESPACE}:settings` is a map of {', '.join(settings)}; what it lacks has the controller's own "
        "default.",
    )
    return "\n\n".join(parts) + "\n"


def _shown(default: object) -> str:
    if default is None or (isinstance(default, Sequence | Mapping) and not default):
        return ""
    if isinstance(default, bool | tuple):
        return f"`{json.dumps(default)}`"
    return f"`{default!s}`" if isinstance(default, str | int | timedelta) else ""


def main(folder: Path) -> None:
    """Write the page."""
    (folder / FILE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

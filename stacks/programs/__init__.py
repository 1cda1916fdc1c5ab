"""The programs as functions, and the one way to run them.

Called by the `__main__` of each stack, by the Automation API and by tests.
"""

from __future__ import annotations

from collections.abc import Callable

import pulumi

from framework.api import UserError


def run_program(program: Callable[[], None]) -> None:
    """Run a program; what the user must mend ends it with one line and no trace."""
    try:
        program()
    except UserError as error:
        raise pulumi.RunError(str(error)) from error

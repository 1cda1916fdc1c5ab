"""Errors of the sandbox that a person reads.

    SandboxError            something the user can mend; printed as one line, exit code 2
    ├─ ToolMissing          a program cannot be had (no Go, no network, a build that failed)
    └─ StartFailed          a process did not come up; carries the end of its log

Raised by every part of the sandbox; caught once, in `sandbox.__main__`.
"""

from __future__ import annotations

import attrs

__all__ = ["SandboxError", "StartFailed", "ToolMissing"]


@attrs.frozen
class SandboxError(Exception):
    """A problem and its mend: `<what>: <problem>; <remedy>`."""

    what: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.problem}; {self.remedy}"


@attrs.frozen
class ToolMissing(SandboxError):
    """A program that is not a Python package cannot be found, downloaded or built."""


@attrs.frozen
class StartFailed(SandboxError):
    """A process of the sandbox ended or stayed silent instead of becoming ready."""

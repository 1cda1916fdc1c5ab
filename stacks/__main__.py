"""The whole platform in one program: cluster, then controller and pools (root Pulumi.yaml)."""

from __future__ import annotations

from stacks.programs import run_program
from stacks.programs.platform import platform_program

run_program(platform_program)

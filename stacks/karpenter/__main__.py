"""The controller and its pools, on a cluster that exists."""

from __future__ import annotations

from stacks.programs import run_program
from stacks.programs.karpenter import karpenter_program

run_program(karpenter_program)

"""The cluster with its network, roles and interruption queue."""

from __future__ import annotations

from stacks.programs import run_program
from stacks.programs.cluster import cluster_program

run_program(cluster_program)

"""`make demo`: the main job, end to end, on a sandbox of its own, with the time and the cost of each step."""

from __future__ import annotations

from sandbox.demo.run import run

__all__ = ["run"]

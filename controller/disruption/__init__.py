"""Voluntary disruption: removes nodes nobody needs, refreshes drifted ones, makes the rest cheaper.

`build` gives `charpente run` the reconcilers. Everything up to a `Command` is pure and decides from a
frozen `World`; the loop and the queue are the only parts that act. Spec: core/disruption.
"""

from __future__ import annotations

from controller.disruption.build import Disruption, build, methods
from controller.disruption.controller import LoopSettings
from controller.disruption.decisions import DecisionLog
from controller.disruption.world import Gates, World

__all__ = ["DecisionLog", "Disruption", "Gates", "LoopSettings", "World", "build", "methods"]

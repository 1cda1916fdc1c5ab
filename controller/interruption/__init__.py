"""Announcements of the cloud that an instance will go, read from a queue (spec aws/interruption)."""

from __future__ import annotations

from controller.interruption.controller import InterruptionReconciler, Queue, build
from controller.interruption.messages import Interruption, InterruptionKind, parse_message

__all__ = ["Interruption", "InterruptionKind", "InterruptionReconciler", "Queue", "build", "parse_message"]

"""Announcements of the cloud that an instance will go, read from a queue (spec aws/interruption)."""

from __future__ import annotations

from controller.interruption.controller import InterruptionReconciler, Queue, build
from controller.interruption.messages import Interruption, InterruptionKind, parse_message
from controller.interruption.statuses import InstanceStatusReconciler, build_statuses

__all__ = [
    "InstanceStatusReconciler",
    "Interruption",
    "InterruptionKind",
    "InterruptionReconciler",
    "Queue",
    "build",
    "build_statuses",
    "parse_message",
]

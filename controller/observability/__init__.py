"""Metrics, logs and health endpoints; what each replica shows of itself."""

from __future__ import annotations

from controller.observability import logs
from controller.observability.http import Endpoints, Ports, PortTaken
from controller.observability.metrics import DURATION_BUCKETS, Metrics

__all__ = ["DURATION_BUCKETS", "Endpoints", "Metrics", "PortTaken", "Ports", "logs"]

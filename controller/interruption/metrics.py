"""The metrics of interruption handling (spec aws/iam-and-bootstrap §10), in the core's registry."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from controller.observability.metrics import DURATION_BUCKETS

__all__ = ["InterruptionMetrics"]


class InterruptionMetrics:
    """Counts messages."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        prefix = "karpenter_interruption_"
        self.received = Counter(
            f"{prefix}received_messages", "Messages read from the queue", ["message_type"], registry=registry
        )
        self.deleted = Counter(
            f"{prefix}deleted_messages", "Messages dealt with and removed", registry=registry
        )
        self.waited = Histogram(
            f"{prefix}message_queue_duration_seconds",
            "From the event to its handling",
            buckets=DURATION_BUCKETS,
            registry=registry,
        )

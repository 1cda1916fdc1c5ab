"""The provider's metrics, in the core's registry (spec aws/iam-and-bootstrap §10).

Made once by `build`. Owns names and labels, and the translation of calls and batches to counts.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controller.cloud.aws.catalogue import Catalogue
from controller.observability.metrics import DURATION_BUCKETS
from framework.iam.calls import Call

__all__ = ["AwsMetrics"]

_PREFIX: Final = "karpenter_cloudprovider_"
_SIZES: Final = (1, 2, 4, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 400, 500, 750, 1000)
_MIB: Final = 1024**2


class AwsMetrics:
    """Counts what the provider does."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the metrics."""
        self.cpu = Gauge(
            f"{_PREFIX}instance_type_cpu_cores", "vCPUs of a type", ["instance_type"], registry=registry
        )
        self.memory = Gauge(
            f"{_PREFIX}instance_type_memory_bytes", "Memory of a type", ["instance_type"], registry=registry
        )
        pool = ["instance_type", "capacity_type", "zone"]
        self.available = Gauge(
            f"{_PREFIX}instance_type_offering_available", "1 when on offer", pool, registry=registry
        )
        self.price = Gauge(
            f"{_PREFIX}instance_type_offering_price_estimate", "Price per hour", pool, registry=registry
        )
        self._batch_size = Histogram(
            f"{_PREFIX}batcher_batch_size",
            "Requests in a batch",
            ["batcher"],
            buckets=_SIZES,
            registry=registry,
        )
        self._batch_time = Histogram(
            f"{_PREFIX}batcher_batch_time_seconds",
            "From a batch's first request to its call",
            ["batcher"],
            buckets=DURATION_BUCKETS,
            registry=registry,
        )
        call = ["service", "action", "status"]
        self._requests = Counter("aws_sdk_go_request", "Calls to AWS", call, registry=registry)
        self._duration = Histogram(
            "aws_sdk_go_request_duration_seconds",
            "Calls to AWS, retries included",
            ["service", "action"],
            buckets=DURATION_BUCKETS,
            registry=registry,
        )

    def observe_call(self, call: Call, status: str, seconds: float) -> None:
        """Count one call; `status` is `ok` or the error code."""
        service = call.service.value
        self._requests.labels(service=service, action=call.operation, status=status).inc()
        self._duration.labels(service=service, action=call.operation).observe(seconds)

    def observe_batch(self, batcher: str, size: int, seconds: float) -> None:
        """Count one batch."""
        self._batch_size.labels(batcher=batcher).observe(size)
        self._batch_time.labels(batcher=batcher).observe(seconds)

    def show_types(self, catalogue: Catalogue) -> None:
        """Publish the shapes of the types."""
        for shape in catalogue.shapes.values():
            self.cpu.labels(instance_type=shape.name).set(shape.vcpus)
            self.memory.labels(instance_type=shape.name).set(shape.memory_mib * _MIB)

"""A summary with quantiles, which the client library leaves out (spec core/observability §1).

Made by `controller.observability.metrics`. Keeps the latest observations of each series; never waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from prometheus_client import Summary
from prometheus_client.samples import Sample

__all__ = ["QuantileSummary"]

_KEPT: Final = 1000
"""Observations of a series that its quantiles are taken from: the error of 0.01 asks for a hundred."""
_QUANTILES: Final = ("0", "0.5", "0.9", "0.99", "1")


class QuantileSummary(Summary):
    """Count, sum and the quantiles 0, 0.5, 0.9, 0.99 and 1 of the latest observations."""

    def _metric_init(self) -> None:
        super()._metric_init()
        self._latest: deque[float] = deque(maxlen=_KEPT)

    def observe(self, amount: float) -> None:
        """Take one observation, in the metric's unit."""
        super().observe(amount)
        self._latest.append(amount)

    def _child_samples(self) -> Iterable[Sample]:
        found = sorted(self._latest.copy())  # a copy is one step, also beside the event loop
        for quantile in _QUANTILES if found else ():
            place = min(int(float(quantile) * len(found)), len(found) - 1)
            yield Sample("", {"quantile": quantile}, found[place], None, None)
        yield from super()._child_samples()

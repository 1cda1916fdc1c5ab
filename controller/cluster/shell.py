"""What every controller of the core is built from.

Made once by `charpente run`, by tests with doubles; taken apart by the `build` function of each package.
Values only.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import attrs

from controller.clock import Clock
from controller.cluster.mirror import Mirror
from controller.cluster.writer import Writer
from controller.kube import Client, Recorder
from controller.observability import Metrics

__all__ = ["Shell"]


@attrs.frozen(kw_only=True, eq=False)
class Shell:
    """The way to the cluster, to the clock, and to whoever watches us."""

    client: Client
    mirror: Mirror
    writer: Writer
    recorder: Recorder
    metrics: Metrics
    clock: Clock
    random: Random
    workers: Callable[[int, int], int] = lambda least, most: least  # noqa: ARG005 - the default ignores it
    """Workers of a controller between least and most, by the CPU request (spec core/lifecycle §2)."""

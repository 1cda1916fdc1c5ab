"""Taking down what the controller made: nodes first, while it still runs, then whatever is left of them.

Called by the Pulumi resource `framework.components.teardown` and usable without Pulumi. Owns the order, the
deadlines and the rule that nothing is given up before its instance is proven gone; knows no engine.
"""

from __future__ import annotations

from framework.teardown.run import Pace, Report, TearDown, TearDownFailed
from framework.teardown.values import Account, Cluster, Instance, Interface, Kind, Leftover, Object

__all__ = [
    "Account",
    "Cluster",
    "Instance",
    "Interface",
    "Kind",
    "Leftover",
    "Object",
    "Pace",
    "Report",
    "TearDown",
    "TearDownFailed",
]

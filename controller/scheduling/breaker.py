"""How many nodes a pool may have on their way while its launches do not register (issue 7: breaker).

Read from the pool's condition `RegistrationPaused`, which the registration health of
`controller.nodeclaims` keeps. Asked by the engine and by static pools. Pure.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from framework.api.condition_types import PoolCondition
from framework.api.conditions import get, is_true
from framework.api.nodepool import NodePool

__all__ = ["PAUSE", "launch_slots"]

PAUSE: Final = timedelta(minutes=10)
"""How long a paused pool launches nothing; then it tries one node at a time until one registers."""


def launch_slots(pool: NodePool, now: datetime) -> int | None:
    """Return how many unregistered nodes the pool may have at once; None when it is not held back.

    The condition counts for the spec it was written for only: a changed pool is tried at once.
    """
    conditions, type = pool.status.conditions, PoolCondition.REGISTRATION_PAUSED
    found = get(conditions, type)
    if found is None or not is_true(conditions, type, generation=pool.metadata.generation):
        return None
    since = found.last_transition_time
    return 0 if since is not None and now < since + PAUSE else 1

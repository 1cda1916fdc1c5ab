"""Which idle nodes hold the room that headroom keeps free (spec core/scheduling §16; design: headroom).

Called by the world when a node is judged empty. Pure: headroom is first put where pods run already; only
the idle nodes that it needs beyond that are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from controller.scheduling import Plan, Pod, Problem, headroom_pods, is_reschedulable, solve

if TYPE_CHECKING:
    from controller.disruption.world import World

__all__ = ["kept_rooms"]


def kept_rooms(world: World) -> Mapping[str, int]:
    """Return by name of idle node how many virtual pods only it has room for."""
    spare = headroom_pods(world.snapshot)
    if not spare:
        return {}
    busy = frozenset(n.name for n in world.snapshot.nodes if any(map(is_reschedulable, n.pods)))
    idle = frozenset(world.nodes) - busy
    homeless = {each.pod_uid for each in _on_nodes(world, spare, without=idle).unplaced}
    left = tuple(pod for pod in spare if pod.uid in homeless)
    return Counter(placed.node for placed in _on_nodes(world, left, without=busy).placements)


def _on_nodes(world: World, pods: tuple[Pod, ...], *, without: frozenset[str]) -> Plan:
    """Put the pods on the nodes there are."""
    return solve(
        Problem(
            snapshot=world.snapshot,
            pods=pods,
            instance_types={},
            options=attrs.evolve(world.options, excluded=without),
        )
    )

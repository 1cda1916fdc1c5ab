"""Room kept free for pods that are not there yet, as virtual pods (design: SchedulingConfig, headroom).

Called by the provisioner and by disruption, which add them to the pods of a problem. Sizes the headroom
of SchedulingConfigs and adds that of CapacityBuffers. Pure: windows are judged by the snapshot's time.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.scheduling.pods import Pod, is_active, is_daemonset
from controller.scheduling.pools import governing_config
from controller.scheduling.requirements import Requirement, Requirements
from controller.scheduling.resources import PODS, Resources, add
from controller.scheduling.snapshot import Snapshot
from controller.scheduling.virtualpods import LEAST_PRIORITY, buffer_pods
from framework.api import labels
from framework.api.cron import Cron, InvalidCron
from framework.api.quantity import parse_resources
from framework.api.requirement_spec import Operator
from framework.api.schedulingconfig import Headroom, SchedulingConfig

__all__ = ["headroom_pods"]

_NAMESPACE = "headroom"


def headroom_pods(snapshot: Snapshot) -> tuple[Pod, ...]:
    """Return the virtual pods that configs and buffers ask for now, by config or buffer and number."""
    found: list[Pod] = []
    for config in sorted(snapshot.scheduling_configs, key=lambda c: c.name):
        governed = sorted(
            pool.name
            for pool in snapshot.pools
            if governing_config(pool, snapshot.scheduling_configs) is config
        )
        for headroom in config.spec.headroom:
            if governed and _is_open(headroom, snapshot):
                found += _pods(config, headroom, governed, _count(headroom, governed, snapshot))
    return (*found, *buffer_pods(snapshot.buffers))


def _is_open(headroom: Headroom, snapshot: Snapshot) -> bool:
    """Tell whether now is within [hit, hit + duration) of its schedule; one that never hits is shut."""
    if headroom.schedule is None or headroom.duration is None:
        return True
    try:
        return Cron.parse(headroom.schedule).next_after(snapshot.now - headroom.duration) <= snapshot.now
    except InvalidCron:
        return False


def _count(headroom: Headroom, governed: list[str], snapshot: Snapshot) -> int:
    if headroom.percent is None:
        return headroom.replicas or 0
    nodes = [node for node in snapshot.nodes if node.pool in governed]
    running = [pod for node in nodes for pod in node.pods if is_active(pod) and not is_daemonset(pod)]
    wanted = add(*(pod.requests for pod in running))
    request = parse_resources(headroom.pod_template.resources.requests)
    parts = [
        -(-wanted.get(n, 0) * headroom.percent // (100 * amount)) for n, amount in request.items() if amount
    ]
    return max(parts, default=0)


def _pods(config: SchedulingConfig, headroom: Headroom, governed: list[str], count: int) -> Iterator[Pod]:
    requests: Resources = {**parse_resources(headroom.pod_template.resources.requests), PODS: 1}
    own = Requirement.new(labels.NODEPOOL, Operator.IN, governed)
    wanted = Requirements.from_specs(headroom.requirements).add(own)
    for number in range(1, count + 1):
        yield Pod(
            namespace=_NAMESPACE,
            name=f"{config.name}-{headroom.name}-{number}",
            uid=f"{config.metadata.uid}-{headroom.name}-{number:05d}",
            annotations={labels.HEADROOM: f"{config.name}/{headroom.name}"},
            created=config.metadata.creation_timestamp,
            priority=LEAST_PRIORITY,
            requests=requests,
            node_selector=wanted,
        )

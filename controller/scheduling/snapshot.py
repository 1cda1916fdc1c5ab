"""A frozen picture of the cluster: what the engine knows of it (spec core/scheduling §4, §10, §20).

Made by `controller.cluster`, `simulate`, stack previews and tests. Holds values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property

import attrs

from controller.scheduling.evictionbudgets import PodDisruptionBudget
from controller.scheduling.podfields import HostPort
from controller.scheduling.pods import Pod, is_daemonset, is_terminal
from controller.scheduling.requirements import EMPTY, Requirements
from controller.scheduling.resources import NO_RESOURCES, Resources
from controller.scheduling.taints import Taint
from controller.scheduling.virtualpods import Buffer
from controller.scheduling.volumes import VolumeIndex
from framework.api.nodeoverlay import NodeOverlay
from framework.api.nodepool import NodePool
from framework.api.schedulingconfig import SchedulingConfig

__all__ = ["BoundPods", "Snapshot", "StateNode"]


@attrs.frozen(kw_only=True)
class BoundPods:
    """What the pods on one node take of it; ended pods take nothing."""

    requests: Resources
    daemon_requests: Resources
    """The part of it that DaemonSet pods take."""
    host_ports: tuple[HostPort, ...]
    volume_claims: tuple[str, ...]
    """`namespace/name` of their PersistentVolumeClaims."""

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> BoundPods:
        """Return the sums over the pods that have not ended."""
        requests: dict[str, int] = {}
        daemons: dict[str, int] = {}
        ports: list[HostPort] = []
        claims: list[str] = []
        for pod in pods:
            if is_terminal(pod):
                continue
            sums = (requests, daemons) if is_daemonset(pod) else (requests,)
            for name, amount in pod.requests.items():
                for each in sums:
                    each[name] = each.get(name, 0) + amount
            ports += pod.host_ports
            claims += [f"{pod.namespace}/{claim}" for claim in pod.volume_claims]
        return cls(
            requests=requests,
            daemon_requests=daemons,
            host_ports=tuple(ports),
            volume_claims=tuple(claims),
        )


@attrs.frozen(kw_only=True)
class StateNode:
    """A Node and its NodeClaim seen as one; every field already resolved by the table of §10."""

    name: str
    """The Node's name, or the claim's before a Node joined: unique and what placements name."""
    provider_id: str | None = None
    node_name: str | None = None
    claim_name: str | None = None
    pool: str | None = None
    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    taints: tuple[Taint, ...] = ()
    """Those that count now: start-up and ephemeral ones are left out until initialization."""
    startup_taints: tuple[Taint, ...] = ()
    capacity: Resources = NO_RESOURCES
    allocatable: Resources = NO_RESOURCES
    pods: tuple[Pod, ...] = ()
    """Pods bound to it, terminal ones included."""
    requirements: Requirements = EMPTY
    """The claim's own, for claims whose machine is not known yet."""
    registered: bool = False
    initialized: bool = False
    managed: bool = True
    """Has a NodeClaim."""
    marked_for_deletion: bool = False
    deleting: bool = False
    nominated: bool = False
    ready: bool = True
    """The Node's Ready condition is True; budgets count nodes that are not."""
    created: datetime | None = None
    termination_deadline: datetime | None = None
    """When a node that is being deleted is ended whatever still runs on it."""
    last_pod_event: datetime | None = None
    initialized_at: datetime | None = None

    @cached_property
    def bound(self) -> BoundPods:
        """What its pods take; worked out once, since many runs look at the same node."""
        return BoundPods.of(self.pods)

    @property
    def is_in_flight(self) -> bool:
        """Whether it is on its way: not registered yet."""
        return not self.registered


@attrs.frozen(kw_only=True)
class Snapshot:
    """Everything that exists at one instant."""

    now: datetime
    nodes: tuple[StateNode, ...] = ()
    """Every node and launched claim, those marked for deletion included."""
    pods: tuple[Pod, ...] = ()
    """Pods without a node."""
    daemonsets: tuple[Pod, ...] = ()
    """One sample pod per DaemonSet, required node affinity taken from the template (§13.2)."""
    pools: tuple[NodePool, ...] = ()
    scheduling_configs: tuple[SchedulingConfig, ...] = ()
    node_overlays: tuple[NodeOverlay, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    """CapacityBuffers whose pods are known; none without the gate."""
    namespaces: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    """Labels by namespace."""
    pdbs: tuple[PodDisruptionBudget, ...] = ()
    volumes: VolumeIndex = attrs.field(factory=VolumeIndex)

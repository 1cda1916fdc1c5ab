"""The living picture of the cluster: typed objects, how they belong together, and what only we know.

Filled by reflectors and by the answers to our own writes; read by every controller. Owns the stores, the
indexes, nominations and marks for deletion; never writes to the API server. `snapshot` freezes it all
for a decision and costs little when little changed. Spec: core/scheduling §20.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from controller.cluster.daemonsets import DaemonSamples
from controller.cluster.objects import (
    DaemonSet,
    LimitRange,
    Namespace,
    Node,
    VolumeAttachment,
    admitted,
)
from controller.cluster.statenodes import Marks, is_marked, state_node
from controller.cluster.store import Index, Malformed, Store
from controller.cluster.volumes import Volumes
from controller.kube import Change, Key, Kind, WireObject, kinds
from controller.scheduling import (
    Buffer,
    Pod,
    PodDisruptionBudget,
    Resources,
    Snapshot,
    StateNode,
    governing_config,
)
from controller.scheduling.pods import is_terminal
from controller.scheduling.resources import add
from framework.api import (
    CapacityBuffer,
    EC2NodeClass,
    NodeClaim,
    NodeClassRef,
    NodeOverlay,
    NodePool,
    SchedulingConfig,
    labels,
)
from framework.api.validation import validate_nodeoverlay

__all__ = ["Mirror"]

_CONSOLIDATION_PERIOD: Final = timedelta(minutes=5)
"""Consolidation looks again at least this often, changed or not."""
_STALE_S: Final = 120.0
_AWS_CLASS: Final = (kinds.EC2NODECLASS.group, kinds.EC2NODECLASS.kind)


@attrs.frozen(eq=False)
class _Frozen:
    """A state node with what it was made from; made again only when one of these is another object."""

    node: Node | None
    claim: NodeClaim | None
    pods: tuple[Pod, ...]
    marks: Marks
    value: StateNode

    def holds(self, node: Node | None, claim: NodeClaim | None, pods: tuple[Pod, ...], marks: Marks) -> bool:
        """Tell whether it is still made from these."""
        return self.node is node and self.claim is claim and self.marks == marks and self.pods == pods


class Mirror:
    """What exists, as far as the watches have told."""

    def __init__(
        self,
        *,
        node_class_kinds: frozenset[tuple[str, str]] = frozenset({_AWS_CLASS}),
        overlays: bool = False,
        buffers: bool = False,
    ) -> None:
        """Start empty.

        `node_class_kinds` are the (group, kind) pairs whose claims and nodes are ours; `overlays` is the
        gate NodeOverlay, without which snapshots hold none, `buffers` the gate CapacityBuffer, without
        which none are watched.
        """
        self._overlays_count = overlays
        self._class_kinds = node_class_kinds
        self._claims = Store(kinds.NODECLAIM, NodeClaim.from_wire)
        self._pools = Store(kinds.NODEPOOL, NodePool.from_wire)
        self._nodes = Store(kinds.NODE, Node.from_wire)
        self._pods = Store(kinds.POD, Pod.from_wire)
        self._classes = Store(kinds.EC2NODECLASS, EC2NodeClass.from_wire)
        self._configs = Store(kinds.SCHEDULINGCONFIG, SchedulingConfig.from_wire)
        self._overlays = Store(kinds.NODEOVERLAY, NodeOverlay.from_wire)
        self._budgets = Store(kinds.PDB, PodDisruptionBudget.from_wire)
        self._namespaces = Store(kinds.NAMESPACE, Namespace.from_wire)
        self._attachments = Store(kinds.VOLUMEATTACHMENT, VolumeAttachment.from_wire)
        self._volumes = Volumes()
        daemonsets = Store(kinds.DAEMONSET, DaemonSet.from_wire)
        limit_ranges = Store(kinds.LIMITRANGE, LimitRange.from_wire)
        stores: tuple[Store[Any], ...] = (self._claims, self._pools, self._nodes, self._pods, self._classes)
        stores += (self._configs, self._overlays, self._budgets, self._namespaces, self._attachments)
        self._buffers = Store(kinds.CAPACITYBUFFER, CapacityBuffer.from_wire)
        stores += (self._buffers,) if buffers else ()
        self._stores = {
            store.kind: store for store in (*stores, daemonsets, limit_ranges, *self._volumes.stores)
        }
        self._daemons = DaemonSamples(daemonsets, self._pods, limit_ranges)
        self._index()
        self._marked: set[str] = set()
        self._nominated: dict[str, datetime] = {}
        self._resolved: dict[Key, Buffer] = {}
        self._ever_synced = False
        self._frozen: dict[str, _Frozen] = {}
        self._changes = 0

    def _index(self) -> None:
        self._pods_by_node = Index(self._pods, lambda pod: (pod.node_name or "",))
        self._nodes_by_provider = Index(self._nodes, _node_provider_id)
        self._claims_by_provider = Index(self._claims, _provider_id)
        self._unlaunched = Index(self._claims, lambda claim: ("",) if not claim.status.provider_id else ())
        self._attachments_by_node = Index(self._attachments, lambda each: (each.node_name,))
        self._pods.subscribe(self._pod_changed)
        self._nodes.subscribe(self._node_changed)
        self._claims.subscribe(self._claim_changed)
        self._pools.subscribe(self._pool_changed)
        self._overlays.subscribe(self._pool_changed)
        self._configs.subscribe(self._pool_changed)

    # What exists

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return every kind that must be watched."""
        return tuple(self._stores)

    def store(self, kind: Kind) -> Store[Any]:
        """Return the store of a kind; raises KeyError for kinds that are not mirrored."""
        return self._stores[kind]

    def subscribe(self, kind: Kind, listener: Callable[[Change], None]) -> None:
        """Call the listener for every change of the kind, and at once for every object already known."""
        self._stores[kind].subscribe(listener)

    def apply(self, kind: Kind, obj: WireObject) -> None:
        """Take the answer to one of our own writes, so that it is seen before its watch event comes."""
        self._stores[kind].upsert(obj)

    @property
    def claims(self) -> Mapping[str, NodeClaim]:
        """Return the NodeClaims by name."""
        return self._claims.by_name

    @property
    def pools(self) -> Mapping[str, NodePool]:
        """Return the NodePools by name."""
        return self._pools.by_name

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Return the Nodes by name."""
        return self._nodes.by_name

    @property
    def scheduling_configs(self) -> Mapping[str, SchedulingConfig]:
        """Return the SchedulingConfigs by name."""
        return self._configs.by_name

    def config_of(self, pool: NodePool) -> SchedulingConfig | None:
        """Return the config that governs the pool, or None."""
        return governing_config(pool, self._configs.by_name.values())

    def governed_by(self, config: SchedulingConfig) -> tuple[NodePool, ...]:
        """Return the pools that a config governs, by name."""
        return tuple(pool for _, pool in sorted(self.pools.items()) if self.config_of(pool) is config)

    @property
    def buffers(self) -> Mapping[Key, CapacityBuffer]:
        """Return the CapacityBuffers by key; none without the gate."""
        return self._buffers.objects

    @property
    def pods(self) -> Iterable[Pod]:
        """Return every pod."""
        return self._pods.objects.values()

    @property
    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """Return every PodDisruptionBudget."""
        return tuple(self._budgets.objects.values())

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return one pod, or None."""
        return self._pods.get(name, namespace)

    def ec2nodeclass(self, name: str) -> EC2NodeClass | None:
        """Return one EC2NodeClass, or None."""
        return self._classes.by_name.get(name)

    @property
    def ec2nodeclasses(self) -> Mapping[str, EC2NodeClass]:
        """Return the EC2NodeClasses by name."""
        return self._classes.by_name

    def node_class(self, reference: NodeClassRef) -> EC2NodeClass | None:
        """Return the node class of a reference, None when it does not exist or is of another kind."""
        if (reference.group, reference.kind) != _AWS_CLASS:
            return None
        return self._classes.by_name.get(reference.name)

    def pods_on(self, node_name: str) -> tuple[Pod, ...]:
        """Return the pods bound to a node, ended ones included."""
        return self._pods_by_node.get(node_name)

    def unbound_pods(self) -> tuple[Pod, ...]:
        """Return the pods without a node."""
        return self._pods_by_node.get("")

    def attachments_on(self, node_name: str) -> tuple[VolumeAttachment, ...]:
        """Return the volume attachments of a node."""
        return self._attachments_by_node.get(node_name)

    @property
    def volumes(self) -> Volumes:
        """Return claims, volumes, storage classes and attach limits."""
        return self._volumes

    @property
    def malformed(self) -> tuple[Malformed, ...]:
        """Return the objects of any kind that cannot be read as they are now."""
        return tuple(each for store in self._stores.values() for each in store.malformed)

    def on_malformed(self, listener: Callable[[], None]) -> None:
        """Call the listener whenever the malformed objects are others."""
        for store in self._stores.values():
            store.on_malformed(listener)

    # How they belong together

    def nodes_of(self, claim: NodeClaim) -> tuple[Node, ...]:
        """Return the Nodes with the claim's provider id: one, unless something is wrong or too early."""
        return self._nodes_by_provider.get(claim.status.provider_id) if claim.status.provider_id else ()

    def claims_of(self, node: Node) -> tuple[NodeClaim, ...]:
        """Return our claims with the node's provider id."""
        if not node.provider_id:
            return ()
        return tuple(each for each in self._claims_by_provider.get(node.provider_id) if self.is_ours(each))

    def claim_of(self, node: Node) -> NodeClaim | None:
        """Return the node's one claim; None when there is none or more than one."""
        claims = self.claims_of(node)
        return claims[0] if len(claims) == 1 else None

    def class_ref(self, claim: NodeClaim) -> NodeClassRef | None:
        """Return the claim's node class: its own, or its pool's when it names none."""
        if claim.spec.node_class_ref is not None:
            return claim.spec.node_class_ref
        pool = self.pools.get(claim.metadata.labels.get(labels.NODEPOOL, ""))
        return pool.spec.template.spec.node_class_ref if pool is not None else None

    def is_ours(self, claim: NodeClaim) -> bool:
        """Tell whether our provider supports the claim's node class."""
        ref = self.class_ref(claim)
        return ref is not None and (ref.group, ref.kind) in self._class_kinds

    def our_pool(self, name: str) -> NodePool | None:
        """Return the pool of that name if our provider supports its node class, else None."""
        pool = self.pools.get(name)
        return pool if pool is not None and self._is_our_pool(pool) else None

    def _is_our_pool(self, pool: NodePool) -> bool:
        ref = pool.spec.template.spec.node_class_ref
        return (ref.group, ref.kind) in self._class_kinds

    def is_our_node(self, node: Node) -> bool:
        """Tell whether the node carries the label of a node class that our provider supports."""
        return any(class_label(group, kind) in node.labels for group, kind in self._class_kinds)

    # What only we know

    @property
    def listed(self) -> bool:
        """Return whether every kind was listed once; before that nothing may be acted on."""
        return all(store.synced for store in self._stores.values())

    def is_fresh(self, monotonic: float) -> bool:
        """Tell whether every watch heard from the server within two minutes; bookmarks come each minute."""
        return all(monotonic - store.heard_at <= _STALE_S for store in self._stores.values())

    def is_synced(self) -> bool:
        """Tell whether decisions may be made: everything listed once, and every claim launched."""
        if not self._ever_synced:
            self._ever_synced = self.listed
        return self._ever_synced and not any(self.is_ours(claim) for claim in self._unlaunched.get(""))

    def mark_for_deletion(self, claim_names: Iterable[str]) -> None:
        """Note that these claims' nodes go away by a command of ours."""
        self._marked.update(claim_names)
        self._changes += 1

    def unmark_for_deletion(self, claim_names: Iterable[str]) -> None:
        """Take the note back."""
        self._marked.difference_update(claim_names)
        self._changes += 1

    def is_marked(self, claim: NodeClaim) -> bool:
        """Tell whether the claim goes away, by a command or by its own state."""
        return claim.name in self._marked or is_marked(None, claim)

    def nominate(self, node_name: str, until: datetime) -> None:
        """Note that pending pods count on a node, named as in snapshots, until then."""
        self._nominated[self._stable(node_name)] = until

    def resolve_buffer(self, key: Key, buffer: Buffer | None) -> None:
        """Note what room a CapacityBuffer asks for; None while that is not known."""
        old = self._resolved.pop(key, None)
        if buffer is not None:
            self._resolved[key] = buffer
        if _room_of(old) != _room_of(buffer):
            self._changes += 1

    def consolidation_stamp(self, now: datetime) -> Hashable:
        """Return a value that differs once something consolidation cares for changed, or 5 min passed."""
        return (self._changes, int(now.timestamp() // _CONSOLIDATION_PERIOD.total_seconds()))

    def snapshot(self, now: datetime) -> Snapshot:
        """Return everything as of now, frozen."""
        self._nominated = {name: until for name, until in self._nominated.items() if until > now}
        return Snapshot(
            now=now,
            nodes=self.state_nodes(),
            pods=tuple(sorted(self.unbound_pods(), key=lambda pod: (pod.namespace, pod.name))),
            daemonsets=self._daemons.samples(),
            pools=tuple(pool for _, pool in sorted(self.pools.items()) if self._is_our_pool(pool)),
            scheduling_configs=tuple(each for _, each in sorted(self._configs.by_name.items())),
            node_overlays=self.valid_overlays(),
            buffers=tuple(self._resolved_buffers()),
            namespaces={name: each.metadata.labels for name, each in self._namespaces.by_name.items()},
            pdbs=tuple(sorted(self.budgets, key=lambda budget: budget.key)),
            volumes=self._volumes.index(),
        )

    @property
    def overlays(self) -> Mapping[str, NodeOverlay]:
        """Return the NodeOverlays by name."""
        return self._overlays.by_name

    def valid_overlays(self) -> tuple[NodeOverlay, ...]:
        """Return the overlays that apply, by name; none without the gate."""
        if not self._overlays_count:
            return ()
        return tuple(each for _, each in sorted(self.overlays.items()) if not validate_nodeoverlay(each))

    def _resolved_buffers(self) -> Iterable[Buffer]:
        for key, buffer in sorted(self._resolved.items(), key=lambda item: item[1].key):
            known = self.buffers.get(key)
            if known is not None and known.metadata.uid == buffer.uid and not known.deleting:
                yield buffer

    def admitted(self, namespace: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a pod's spec with the requests that admission would give it there."""
        return admitted(spec, self._daemons.defaults(namespace))

    def state_nodes(self) -> tuple[StateNode, ...]:
        """Return every node and launched claim of ours as one, by name."""
        found: dict[str, StateNode] = {}
        frozen: dict[str, _Frozen] = {}
        for node, claim in self._pairs():
            key = claim.name if claim is not None else f"node/{node.name}" if node is not None else ""
            pods = self.pods_on(node.name) if node is not None else ()
            marks = Marks(marked_for_deletion=key in self._marked, nominated=key in self._nominated)
            cached = self._frozen.get(key)
            if cached is None or not cached.holds(node, claim, pods, marks):
                cached = _Frozen(node, claim, pods, marks, state_node(node, claim, pods, marks))
            frozen[key] = cached
            found[cached.value.name] = cached.value
        self._frozen = frozen
        return tuple(found[name] for name in sorted(found))

    def usage(self, pool: str) -> Resources:
        """Return what the pool's launched nodes have that are not going away, `nodes` counted too."""
        nodes = [each for each in self.state_nodes() if each.pool == pool and not each.marked_for_deletion]
        return add(*(each.capacity for each in nodes), {"nodes": len(nodes)})

    def _pairs(self) -> Iterable[tuple[Node | None, NodeClaim | None]]:
        paired: set[str] = set()
        for node in tuple(self.nodes.values()):
            claim = self.claim_of(node)
            if claim is not None:
                paired.add(claim.name)
                yield node, claim
            elif not (labels.NODEPOOL in node.labels and self._too_early(node)):
                yield node, None
        for claim in tuple(self.claims.values()):
            if claim.name not in paired and claim.status.provider_id and self.is_ours(claim):
                yield None, claim

    def _too_early(self, node: Node) -> bool:
        """Nodes of a pool say too little before they have provider id and instance type."""
        if not node.provider_id:
            return True
        return labels.INSTANCE_TYPE not in node.labels and node.labels.get(labels.INITIALIZED) != "true"

    def _stable(self, node_name: str) -> str:
        """Return what a node is remembered under: its claim's name, which never changes, if it has one."""
        if node_name in self.claims:
            return node_name
        node = self.nodes.get(node_name)
        claim = self.claim_of(node) if node is not None else None
        return claim.name if claim is not None else f"node/{node_name}"

    def _pod_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if new is None or _use_of_node(new) != (_use_of_node(old) if old is not None else None):
            self._changes += 1

    def _node_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if old is None or new is None or _node_states(old) != _node_states(new):
            self._changes += 1

    def _claim_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if new is None:
            self._marked.discard(old.name)
            self._nominated.pop(old.name, None)
        if old is None or new is None or _condition_states(old) != _condition_states(new):
            self._changes += 1

    def _pool_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if old is None or new is None or old.metadata.generation != new.metadata.generation:
            self._changes += 1


def class_label(group: str, kind: str) -> str:
    """Return the label that claims and nodes of a node class kind carry (core/api §8.1)."""
    return f"{group}/{kind.lower()}"


def _provider_id(claim: NodeClaim) -> tuple[str, ...]:
    return (claim.status.provider_id,) if claim.status.provider_id else ()


def _node_provider_id(node: Node) -> tuple[str, ...]:
    return (node.provider_id,) if node.provider_id else ()


def _room_of(buffer: Buffer | None) -> Hashable:
    return None if buffer is None else (buffer.uid, buffer.replicas, buffer.sample.shape)


def _use_of_node(pod: Pod) -> str | None:
    """Return the node on which the pod takes room, or None: a finished pod takes none."""
    return None if is_terminal(pod) else pod.node_name or None


def _node_states(node: Node) -> tuple[object, ...]:
    return (node.labels, node.taints, node.ready, node.unschedulable)


def _condition_states(claim: NodeClaim) -> tuple[Hashable, ...]:
    return (claim.deleting, *((each.type, each.status) for each in claim.status.conditions))

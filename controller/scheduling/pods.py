"""Pods as the engine and the controllers see them, and what is asked of them (spec core/scheduling §2).

Built by the mirror from watched objects. Owns parsing and the predicates; never looks at nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, TypeVar

import attrs

from controller.scheduling.evictionbudgets import PodDisruptionBudget
from controller.scheduling.podfields import (
    HostPort,
    OwnerReference,
    PodAffinityTerm,
    PreferredNodeTerm,
    PreferredPodTerm,
    TopologySpread,
    node_term,
    parse_instant,
)
from controller.scheduling.podresources import effective_limits, effective_requests, has_resource_claims
from controller.scheduling.podshapes import PodConstraints, PodShape, intern_shape
from controller.scheduling.requirements import EMPTY, Requirements
from controller.scheduling.resources import NO_RESOURCES, Resources
from controller.scheduling.taints import DISRUPTED, Toleration
from framework.api import labels
from framework.api.errors import InvalidField

__all__ = [
    "Pod",
    "do_not_disrupt_span",
    "has_do_not_disrupt",
    "is_active",
    "is_currently_reschedulable",
    "is_daemonset",
    "is_disruptable",
    "is_evictable",
    "is_fully_blocked",
    "is_mirror",
    "is_provisionable",
    "is_reschedulable",
    "is_terminal",
    "is_terminating",
    "will_need_a_place",
]

_LEAD: Final = timedelta(minutes=1)
"""About as long as a node takes to start."""
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@attrs.frozen(kw_only=True, slots=True, eq=False, weakref_slot=True)
class Pod:
    """A pod; two are the same when they are one object. Requests hold `pods: 1`."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    created: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_seconds: int | None = None
    owners: tuple[OwnerReference, ...] = ()
    node_name: str | None = None
    nominated_node_name: str | None = None
    phase: str = "Pending"
    ready: bool = False
    unschedulable: bool = False
    """Has a PodScheduled condition with reason Unschedulable."""
    start_time: datetime | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    scheduler_name: str = "default-scheduler"
    termination_grace_period_seconds: int | None = None
    requests: Resources = attrs.field(factory=lambda: {"pods": 1})
    limits: Resources = NO_RESOURCES
    node_selector: Requirements = EMPTY
    required_terms: tuple[Requirements, ...] = ()
    preferred_terms: tuple[PreferredNodeTerm, ...] = ()
    affinity: tuple[PodAffinityTerm, ...] = ()
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_affinity: tuple[PreferredPodTerm, ...] = ()
    preferred_anti_affinity: tuple[PreferredPodTerm, ...] = ()
    topology_spread: tuple[TopologySpread, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    volume_claims: tuple[str, ...] = ()
    """Names of its PersistentVolumeClaims, those of generic ephemeral volumes included."""
    resource_claims: bool = False
    problem: str | None = None
    """Why its constraints could not be read; such a pod is reported and never placed."""

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @cached_property
    def shape(self) -> PodShape:
        """What decides where it may run, shared with every pod alike."""
        return intern_shape(
            tuple(sorted((name, amount) for name, amount in self.requests.items() if amount)),
            PodConstraints(
                selector=self.node_selector,
                required_terms=self.required_terms,
                preferred_terms=_heaviest_first(self.preferred_terms),
                affinity=self.affinity,
                anti_affinity=self.anti_affinity,
                preferred_affinity=_heaviest_first(self.preferred_affinity),
                preferred_anti_affinity=_heaviest_first(self.preferred_anti_affinity),
                spread=self.topology_spread,
                tolerations=self.tolerations,
                host_ports=self.host_ports,
                volume_claims=self.volume_claims,
                resource_claims=self.resource_claims,
            ),
        )

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any]) -> Pod:
        """Return the pod of a core/v1 object.

        Constraints that cannot be read do not raise when the pod is already bound (its requests still
        count); a pending pod carries the text in `problem`. Raises InvalidField for amounts that are
        negative or no quantity.
        """
        metadata, spec, status = raw.get("metadata") or {}, raw.get("spec") or {}, raw.get("status") or {}
        name = str(metadata.get("name") or metadata.get("generateName") or "")
        try:
            requests, limits = effective_requests(spec, status), effective_limits(spec)
        except ValueError as exc:
            where, _, problem = str(exc).partition(": ")
            raise InvalidField(
                obj=f"Pod/{metadata.get('namespace', 'default')}/{name}",
                field=where,
                problem=problem,
                remedy="give amounts such as 500m or 1Gi, 0 or more",
            ) from exc
        fields = {**_identity(metadata, name), **_standing(spec, status)}
        try:
            fields |= _constraints(spec, fields["labels"], name)
        except (ValueError, KeyError, TypeError) as exc:
            fields["problem"] = str(exc)
        return cls(requests=requests, limits=limits, resource_claims=has_resource_claims(spec), **fields)


_Weighted = TypeVar("_Weighted", PreferredNodeTerm, PreferredPodTerm)


def _heaviest_first(terms: tuple[_Weighted, ...]) -> tuple[_Weighted, ...]:
    return tuple(sorted(terms, key=lambda term: -term.weight)) if len(terms) > 1 else terms


def _identity(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {
        "namespace": str(metadata.get("namespace") or "default"),
        "name": name,
        "uid": str(metadata.get("uid") or ""),
        "labels": dict(metadata.get("labels") or {}),
        "annotations": dict(metadata.get("annotations") or {}),
        "created": parse_instant(metadata.get("creationTimestamp")),
        "deletion_timestamp": parse_instant(metadata.get("deletionTimestamp")),
        "deletion_grace_seconds": metadata.get("deletionGracePeriodSeconds"),
        "owners": tuple(OwnerReference.from_wire(owner) for owner in metadata.get("ownerReferences") or ()),
    }


def _standing(spec: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]:
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled") or {}
    return {
        "node_name": spec.get("nodeName") or None,
        "nominated_node_name": status.get("nominatedNodeName") or None,
        "phase": str(status.get("phase") or "Pending"),
        "ready": (conditions.get("Ready") or {}).get("status") == "True",
        "unschedulable": scheduled.get("reason") == "Unschedulable",
        "start_time": parse_instant(status.get("startTime")),
        "priority": spec.get("priority"),
        "priority_class_name": spec.get("priorityClassName"),
        "scheduler_name": str(spec.get("schedulerName") or "default-scheduler"),
        "termination_grace_period_seconds": spec.get("terminationGracePeriodSeconds"),
    }


def _constraints(spec: Mapping[str, Any], pod_labels: Mapping[str, str], name: str) -> dict[str, Any]:
    node, near, away = (
        (spec.get("affinity") or {}).get(kind) or {}
        for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity")
    )
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    return {
        "node_selector": Requirements.from_labels(spec.get("nodeSelector") or {}),
        "required_terms": tuple(
            node_term(t) for t in (node.get(required) or {}).get("nodeSelectorTerms") or ()
        ),
        "preferred_terms": tuple(
            PreferredNodeTerm(int(t["weight"]), node_term(t["preference"]))
            for t in node.get(preferred) or ()
            if t["preference"].get("matchFields") is None  # wishes for a node by name; no new one has it
        ),
        "affinity": tuple(PodAffinityTerm.from_wire(t, pod_labels) for t in near.get(required) or ()),
        "anti_affinity": tuple(PodAffinityTerm.from_wire(t, pod_labels) for t in away.get(required) or ()),
        "preferred_affinity": _preferred_pods(near.get(preferred), pod_labels),
        "preferred_anti_affinity": _preferred_pods(away.get(preferred), pod_labels),
        "topology_spread": tuple(
            TopologySpread.from_wire(t, pod_labels) for t in spec.get("topologySpreadConstraints") or ()
        ),
        "tolerations": tuple(Toleration.from_wire(t) for t in spec.get("tolerations") or ()),
        "host_ports": tuple(
            HostPort(int(port["hostPort"]), str(port.get("protocol") or "TCP"), str(port.get("hostIP") or ""))
            for container in spec.get("containers") or ()
            for port in container.get("ports") or ()
            if port.get("hostPort")
        ),
        "volume_claims": tuple(_volume_claims(spec, name)),
    }


def _preferred_pods(
    raw: Iterable[Mapping[str, Any]] | None, pod_labels: Mapping[str, str]
) -> tuple[PreferredPodTerm, ...]:
    return tuple(
        PreferredPodTerm(int(t["weight"]), PodAffinityTerm.from_wire(t["podAffinityTerm"], pod_labels))
        for t in raw or ()
    )


def _volume_claims(spec: Mapping[str, Any], name: str) -> Iterable[str]:
    for volume in spec.get("volumes") or ():
        if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            yield str(claim)
        elif volume.get("ephemeral") is not None:
            yield f"{name}-{volume.get('name')}"


def is_terminal(pod: Pod) -> bool:
    """Tell whether it has ended."""
    return pod.phase in ("Failed", "Succeeded")


def is_terminating(pod: Pod) -> bool:
    """Tell whether it is being deleted."""
    return pod.deletion_timestamp is not None


def is_active(pod: Pod) -> bool:
    """Tell whether it has neither ended nor is being deleted."""
    return not is_terminal(pod) and not is_terminating(pod)


def is_daemonset(pod: Pod) -> bool:
    """Tell whether a DaemonSet made it."""
    return any(owner.kind == "DaemonSet" and owner.api_version == "apps/v1" for owner in pod.owners)


def is_mirror(pod: Pod) -> bool:
    """Tell whether it stands for a static pod of a node."""
    return any(owner.kind == "Node" and owner.api_version == "v1" for owner in pod.owners)


def is_provisionable(pod: Pod) -> bool:
    """Tell whether a scheduler gave it up and a new node may help."""
    return (
        pod.unschedulable
        and not pod.node_name
        and not pod.nominated_node_name
        and not is_daemonset(pod)
        and not is_mirror(pod)
    )


def is_reschedulable(pod: Pod) -> bool:
    """Tell whether it would come back elsewhere if its node went."""
    comes_back = is_active(pod) or (
        is_terminating(pod)
        and any(o.kind == "StatefulSet" and o.api_version == "apps/v1" for o in pod.owners)
    )
    return comes_back and not is_daemonset(pod) and not is_mirror(pod)


def is_currently_reschedulable(pod: Pod, pdbs: Iterable[PodDisruptionBudget], now: datetime) -> bool:
    """Tell whether it is reschedulable and nothing forbids moving it now."""
    return is_reschedulable(pod) and not has_do_not_disrupt(pod, now) and not is_fully_blocked(pod, pdbs, now)


def will_need_a_place(
    pod: Pod, pdbs: Iterable[PodDisruptionBudget], now: datetime, *, deadline: datetime | None
) -> bool:
    """Tell whether a pod of a node that goes away must be planned for now.

    One without an owner never comes back. One that nothing may move is planned for shortly before the
    node's termination deadline ends it, so that its successor finds room.
    """
    if not pod.owners or not is_reschedulable(pod):
        return False
    if deadline is not None and deadline - now <= _LEAD:
        return True
    return is_currently_reschedulable(pod, pdbs, now)


def is_fully_blocked(pod: Pod, pdbs: Iterable[PodDisruptionBudget], now: datetime) -> bool:
    """Tell whether budgets will never let it be evicted: a fully blocking one, or more than one (§2)."""
    if not is_evictable(pod, now):
        return False
    matching = [pdb for pdb in pdbs if pdb.covers(pod.namespace, pod.labels)]
    if len(matching) > 1:
        return True
    return any(pdb.fully_blocking and not (pdb.always_allow_unhealthy and not pod.ready) for pdb in matching)


def is_evictable(pod: Pod, now: datetime) -> bool:
    """Tell whether drain would evict it."""
    return (
        is_active(pod)
        and not any(toleration.covers(DISRUPTED) for toleration in pod.tolerations)
        and not is_mirror(pod)
        and not has_do_not_disrupt(pod, now)
    )


def is_disruptable(pod: Pod, now: datetime) -> bool:
    """Tell whether it stands in the way of disrupting its node: never when it is not active."""
    return not is_active(pod) or not has_do_not_disrupt(pod, now)


def has_do_not_disrupt(pod: Pod, now: datetime) -> bool:
    """Tell whether its do-not-disrupt annotation is active: `true`, or a duration since it started (§2)."""
    text = pod.annotations.get(labels.DO_NOT_DISRUPT)
    if text is None or text == "true":
        return text is not None
    span = do_not_disrupt_span(text)
    if span is None:
        return False
    return pod.start_time is None or now - pod.start_time < span


def do_not_disrupt_span(text: str) -> timedelta | None:
    """Return the positive duration that an annotation spells in Go's way, None when malformed."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    return timedelta(seconds=seconds) if seconds > 0 else None

"""Changes to a cluster on file: manifests applied, workloads scaled, nodes drained.

Called by `charpente simulate`. Pure: a `ClusterFile` in, another one out. What the API server, its
controllers and admission would add is added in the plainest way: defaults that matter to decisions, pods of
a scaled workload, pods of a drained node that come back without a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from controller.kube import Kind, WireObject, kinds
from controller.scheduling import LabelSelector, Pod, is_reschedulable, is_terminal
from controller.whatif.clusterfile import ClusterFile
from controller.whatif.taking import RECORDED, Objects, slimmed
from framework.api import UserError
from framework.api.conditions import READY

__all__ = ["Apply", "Change", "Drain", "Impossible", "Scale", "changed"]

_WORKLOADS: Final = (kinds.DEPLOYMENT, kinds.STATEFULSET)
_KINDS: Final = {(kind.group, kind.kind): kind for kind in RECORDED}
_SHOWN: Final = 10
_UNSCHEDULABLE: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


class Impossible(UserError):
    """A change that cannot be made to this cluster."""


@attrs.frozen(kw_only=True)
class Apply:
    """A manifest, applied: created, or put in the place of the object of its name."""

    manifest: WireObject


@attrs.frozen(kw_only=True)
class Scale:
    """A Deployment, or else a StatefulSet, with another number of pods."""

    namespace: str
    name: str
    replicas: int


@attrs.frozen(kw_only=True)
class Drain:
    """A node that is gone; what ran on it looks for another place."""

    node: str


Change = Apply | Scale | Drain


def changed(cluster: ClusterFile, changes: Iterable[Change]) -> ClusterFile:
    """Return the cluster after the changes, made in their order. Raises Impossible, naming the object."""
    objects = cluster.objects
    for change in changes:
        match change:
            case Apply():
                objects = _applied(objects, change.manifest)
            case Scale():
                objects = _scaled(objects, _workload(objects, change), change.replicas)
            case Drain():
                objects = _drained(objects, change.node)
    return attrs.evolve(cluster, objects=objects)


# Apply


def _applied(objects: Objects, manifest: WireObject) -> Objects:
    kind = _kind_of(manifest)
    meta = manifest.get("metadata")
    if not isinstance(meta, dict) or not meta.get("name"):
        raise Impossible(f"a {kind} has no metadata.name; name it")
    named = {**meta, "namespace": meta.get("namespace", "default")} if kind.namespaced else dict(meta)
    place = (named.get("namespace"), named["name"])
    others = tuple(each for each in objects.get(kind.resource, ()) if _place(each) != place)
    old = next((each for each in objects.get(kind.resource, ()) if _place(each) == place), None)
    new = slimmed({**manifest, "metadata": _metadata(kind, named, old), **_status(kind, manifest, old)})
    result = {**objects, kind.resource: (*others, new)}
    if kind in _WORKLOADS:
        return _scaled(result, new, new.get("spec", {}).get("replicas", 1))
    return result


def _kind_of(manifest: WireObject) -> Kind:
    group, _, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    kind = _KINDS.get((group, str(manifest.get("kind", ""))))
    if kind is None:
        known = ", ".join(sorted(each.kind for each in RECORDED))
        raise Impossible(
            f"{manifest.get('apiVersion')} {manifest.get('kind')} is nothing decisions look at; "
            f"apply one of: {known}"
        )
    return kind


def _metadata(kind: Kind, named: Mapping[str, Any], old: WireObject | None) -> dict[str, Any]:
    """Return what the API server would have put: identity, and a version newer than the old one."""
    if old is None:
        made = {"uid": f"whatif-{kind.plural}-{named.get('namespace', '')}-{named['name']}", "generation": 1}
        return {**made, "resourceVersion": "1", **named}
    before = old["metadata"]
    kept = {key: before[key] for key in ("uid", "creationTimestamp", "generation") if key in before}
    annotations = {**before.get("annotations", {}), **named.get("annotations", {})}
    return {**named, **kept, "annotations": annotations, "resourceVersion": _next(before)}


def _next(meta: Mapping[str, Any]) -> str:
    """Return a version of the object newer than this one, so that the mirror takes it."""
    return str(int(meta["resourceVersion"]) + 1) if meta["resourceVersion"].isdigit() else "1"


def _status(kind: Kind, manifest: WireObject, old: WireObject | None) -> dict[str, Any]:
    """Return the status to go on with: the old one; a new pool is taken as ready, a new pod as pending."""
    if old is not None and "status" in old:
        return {"status": old["status"]}
    if kind is kinds.NODEPOOL:
        return {"status": {"conditions": [{"type": READY, "status": "True", "observedGeneration": 1}]}}
    if kind is kinds.POD and not manifest.get("spec", {}).get("nodeName"):
        return {"status": {"phase": "Pending", "conditions": [_UNSCHEDULABLE]}}
    return {}


# Scale


def _workload(objects: Objects, scale: Scale) -> WireObject:
    place = (scale.namespace, scale.name)
    known: list[str] = []
    for kind in _WORKLOADS:
        for each in objects.get(kind.resource, ()):
            if _place(each) == place:
                return {"kind": kind.kind, **each}
            known.append("/".join(filter(None, _place(each))))
    raise Impossible(
        f"there is no Deployment or StatefulSet {scale.namespace}/{scale.name}; there are: {_some(known)}"
    )


def _scaled(objects: Objects, workload: WireObject, replicas: object) -> Objects:
    if not isinstance(replicas, int) or replicas < 0:
        name = workload["metadata"]["name"]
        raise Impossible(f"{name} cannot have {replicas!r} pods; give a whole number of 0 or more")
    pods = objects.get(kinds.POD.resource, ())
    own = _pods_of(workload, pods)
    if len(own) > replicas:
        kept = {each["metadata"]["uid"] for each in sorted(own, key=_stays_longest)[:replicas]}
        gone = {each["metadata"]["uid"] for each in own} - kept
        return _with_pods(objects, [each for each in pods if each["metadata"]["uid"] not in gone])
    return _with_pods(objects, [*pods, *(_new_pod(workload, number) for number in range(len(own), replicas))])


def _pods_of(workload: WireObject, pods: Sequence[WireObject]) -> list[WireObject]:
    selector = LabelSelector.from_wire(workload["spec"].get("selector")) or LabelSelector()
    return [
        each
        for each in pods
        if each["metadata"].get("namespace") == workload["metadata"]["namespace"]
        and selector.matches(each["metadata"].get("labels", {}))
        and not is_terminal(Pod.from_wire(each))
    ]


def _stays_longest(pod: WireObject) -> tuple[bool, str, str]:
    """Order as a ReplicaSet keeps pods: those with a node before those without, old ones before new ones."""
    meta = pod["metadata"]
    return (not pod["spec"].get("nodeName"), meta.get("creationTimestamp") or "", meta["name"])


def _new_pod(workload: WireObject, number: int) -> WireObject:
    template, meta = workload["spec"]["template"], workload["metadata"]
    name = f"{meta['name']}-whatif-{number}"
    owner = {"apiVersion": "apps/v1", "kind": workload["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "uid": f"whatif-pods-{meta['namespace']}-{name}",
            "resourceVersion": "1",
            "labels": template.get("metadata", {}).get("labels", {}),
            "annotations": template.get("metadata", {}).get("annotations", {}),
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": template["spec"],
        "status": {"phase": "Pending", "conditions": [_UNSCHEDULABLE]},
    }


# Drain


def _drained(objects: Objects, name: str) -> Objects:
    node = _node(objects, name)
    provider_id = node.get("spec", {}).get("providerID")
    claims = [
        each
        for each in objects.get(kinds.NODECLAIM.resource, ())
        if not provider_id or each.get("status", {}).get("providerID") != provider_id
    ]
    pods = [_after_drain(each, name) for each in objects.get(kinds.POD.resource, ())]
    rest = [each for each in objects[kinds.NODE.resource] if each is not node]
    result = {**objects, kinds.NODE.resource: tuple(rest), kinds.NODECLAIM.resource: tuple(claims)}
    return _with_pods(result, [each for each in pods if each is not None])


def _after_drain(pod: WireObject, node: str) -> WireObject | None:
    """Return the pod as it comes back, None when it goes with its node."""
    if pod["spec"].get("nodeName") != node:
        return pod
    if not is_reschedulable(Pod.from_wire(pod)):
        return None
    return {
        "metadata": {**pod["metadata"], "resourceVersion": _next(pod["metadata"])},
        "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"},
        "status": {"phase": "Pending", "conditions": [_UNSCHEDULABLE]},
    }


# Objects


def _node(objects: Objects, name: str) -> WireObject:
    nodes = objects.get(kinds.NODE.resource, ())
    for each in nodes:
        if each["metadata"]["name"] == name:
            return each
    raise Impossible(
        f"there is no Node {name}; there are: {_some([each['metadata']['name'] for each in nodes])}"
    )


def _some(names: Sequence[str]) -> str:
    shown = sorted(names)[:_SHOWN]
    rest = len(names) - len(shown)
    return (", ".join(shown) + (f" and {rest} more" if rest else "")) or "none"


def _place(obj: WireObject) -> tuple[str | None, str]:
    meta = obj["metadata"]
    return (meta.get("namespace"), meta["name"])


def _with_pods(objects: Objects, pods: Iterable[WireObject]) -> Objects:
    return {**objects, kinds.POD.resource: tuple(pods)}

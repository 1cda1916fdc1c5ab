"""Takes a cluster as it is: lists what decisions look at, and keeps of each object only what they read.

Called by `charpente snapshot` and by `simulate` on a live cluster. Reads only; what a container runs, its
environment and its images are left out, so that no secret ends up in a file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from controller.cluster import Mirror
from controller.kube import Client, Kind, NotFound, WireObject, kinds

__all__ = ["RECORDED", "Objects", "advance", "mirror_of", "slimmed", "take"]

RECORDED: Final = (*Mirror().kinds, kinds.DEPLOYMENT, kinds.STATEFULSET)
"""Every kind in a snapshot: those of the mirror, and those that can be scaled."""
_BY_RESOURCE: Final = {kind.resource: kind for kind in Mirror().kinds}
_CONTAINER: Final = frozenset({"name", "resources", "ports", "restartPolicy"})
_CONTAINER_STATUS: Final = frozenset({"name", "ready", "resources", "allocatedResources"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

Objects = Mapping[str, tuple[WireObject, ...]]
"""By resource, such as `pods` or `nodepools.karpenter.sh`."""


async def take(client: Client) -> Objects:
    """Return every object that decisions look at, by resource; kinds that are not installed are empty.

    Raises KubeError when a kind cannot be read.
    """
    found = await asyncio.gather(*(_listed(client, kind) for kind in RECORDED))
    return {kind.resource: objects for kind, objects in zip(RECORDED, found, strict=True)}


async def _listed(client: Client, kind: Kind) -> tuple[WireObject, ...]:
    try:
        objects = await client.list(kind)
    except NotFound:
        return ()
    slim = [slimmed(obj) for obj in objects]
    return tuple(
        sorted(slim, key=lambda obj: (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))
    )


def mirror_of(objects: Objects, *, overlays: bool) -> Mirror:
    """Return the mirror that a controller would have of these objects."""
    mirror = Mirror(overlays=overlays)
    for resource, each in objects.items():
        kind = _BY_RESOURCE.get(resource)
        if kind is not None:
            for obj in each:
                mirror.apply(kind, obj)
    return mirror


def advance(mirror: Mirror, before: Objects, after: Objects) -> None:
    """Bring a mirror of `before` to `after`; what is the same object in both is not read again."""
    for resource, objects in after.items():
        kind = _BY_RESOURCE.get(resource)
        old = before.get(resource, ())
        if kind is None or objects is old:
            continue
        known = {id(each) for each in old}
        left = {each["metadata"]["uid"] for each in objects}
        for each in old:
            if each["metadata"]["uid"] not in left:
                mirror.store(kind).remove(each)
        for each in objects:
            if id(each) not in known:
                mirror.apply(kind, each)


def slimmed(obj: WireObject) -> WireObject:
    """Return what decisions read of an object."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    if _LAST_APPLIED in meta.get("annotations", ()):
        meta["annotations"] = {k: v for k, v in meta["annotations"].items() if k != _LAST_APPLIED}
    slim = {**obj, "metadata": meta}
    spec, status = obj.get("spec"), obj.get("status")
    if isinstance(spec, dict):
        slim["spec"] = _slim_spec(spec)
    if isinstance(status, dict):
        slim["status"] = {
            key: [_only(each, _CONTAINER_STATUS) for each in value]
            if key.endswith("ontainerStatuses")
            else value
            for key, value in status.items()
            if key != "images"
        }
    return slim


def _slim_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce the containers of a pod's spec, or of the pod template in it."""
    slim = dict(spec)
    for field in ("containers", "initContainers"):
        if field in slim:
            slim[field] = [_only(each, _CONTAINER) for each in slim[field]]
    slim.pop("ephemeralContainers", None)
    template = slim.get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        slim["template"] = {**template, "spec": _slim_spec(template["spec"])}
    return slim


def _only(value: Mapping[str, Any], wanted: frozenset[str]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key in wanted}

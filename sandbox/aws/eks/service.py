"""EKS put together: operation name to handler, and tags by ARN."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sandbox.aws.calls import Call
from sandbox.aws.eks import access, addons, clusters, nodegroups
from sandbox.aws.eks.clusters import Cluster, Document, Request
from sandbox.aws.errors import AwsError, NotModelled
from sandbox.aws.world import World

__all__ = ["answer"]


def answer(world: World, call: Call) -> Document:
    """Answer an operation. Raises AwsError with EKS's codes, NotModelled for operations not carried."""
    handler = HANDLERS.get(call.action)
    if handler is None:
        raise NotModelled(f"eks {call.action}")
    return handler(Request(world=world, region=call.region, parameters=call.parameters()))


def _tagged(cluster: Cluster) -> Iterator[tuple[str, Document]]:
    yield cluster.document["arn"], cluster.document
    for arn_key, documents in (
        ("nodegroupArn", cluster.nodegroups),
        ("accessEntryArn", cluster.access_entries),
        ("addonArn", cluster.addons),
        ("associationArn", cluster.pod_identities),
    ):
        for document in documents.values():
            yield document[arn_key], document


def _tags(request: Request) -> dict[str, str]:
    """Return the tags of the resource a call names, to be read or changed."""
    wanted = request.scalar("resourceArn")
    for (region, _), cluster in request.world.clusters.items():
        for arn, document in _tagged(cluster):
            if region == request.region and arn == wanted:
                tags: dict[str, str] = document.setdefault("tags", {})
                return tags
    raise AwsError("NotFoundException", f"No resource found for ARN: {wanted}", 404)


def tag_resource(request: Request) -> Document:
    """Add tags."""
    _tags(request).update(request.get("tags") or {})
    return {}


def untag_resource(request: Request) -> Document:
    """Remove tags by key."""
    tags = _tags(request)
    for key in request.get("tagKeys") or ():
        tags.pop(key, None)
    return {}


def list_tags_for_resource(request: Request) -> Document:
    """Return tags."""
    return {"tags": dict(_tags(request))}


HANDLERS: Mapping[str, Callable[[Request], Document]] = {
    **clusters.HANDLERS,
    **nodegroups.HANDLERS,
    **access.HANDLERS,
    **addons.HANDLERS,
    "ListTagsForResource": list_tags_for_resource,
    "TagResource": tag_resource,
    "UntagResource": untag_resource,
}

"""The `nodeclaim.tagging` reconciler: names instances once their node is known (spec aws/launch §11).

Run by `charpente run` for each NodeClaim. Owns the three late tags and the annotations that say they
are there; one CreateTags a second at most.
"""

from __future__ import annotations

from typing import Final

from controller.clock import Clock
from controller.cloud.aws.errors import AwsNotFound
from controller.cloud.aws.parts import Parts
from controller.cloud.aws.providerid import instance_id
from controller.cluster import Mirror
from controller.kube import Client, Key, NotFound, Requeue, kinds
from framework.api import NodeClaim, labels

__all__ = ["TaggingReconciler"]

_PACE_S: Final = 1.0
_NAME: Final = "Name"


class TaggingReconciler:
    """Tags one claim's instance."""

    name = "nodeclaim.tagging"

    def __init__(self, parts: Parts, client: Client, mirror: Mirror, clock: Clock) -> None:
        """Start ready to tag."""
        self._parts = parts
        self._client = client
        self._mirror = mirror
        self._clock = clock
        self._next = 0.0

    async def reconcile(self, key: Key) -> Requeue:
        """Tag the instance unless it is tagged already. Raises: AwsError, KubeError."""
        claim = self._mirror.claims.get(key.name)
        if claim is None or not self._is_due(claim):
            return Requeue()
        identifier = instance_id(claim.status.provider_id or "")
        record = None if identifier is None else await self._parts.instances.get(identifier, fresh=True)
        if record is None:
            return Requeue()
        wanted = {
            _NAME: claim.status.node_name or "",
            labels.NODECLAIM_TAG: claim.metadata.name,
            labels.EKS_CLUSTER_NAME_TAG: self._parts.settings.cluster_name,
        }
        missing = {key: value for key, value in wanted.items() if key not in record.tags}
        if missing:
            await self._wait_for_turn()
            try:
                await self._parts.aws.ec2.tag(record.id, missing)
            except AwsNotFound:
                return Requeue()
        await self._annotate(claim)
        return Requeue()

    def _is_due(self, claim: NodeClaim) -> bool:
        notes = claim.metadata.annotations
        done = notes.get(labels.TAGGED) == "true" and labels.CLUSTER_NAME_TAGGED in notes
        return (
            not done
            and claim.metadata.deletion_timestamp is None
            and bool(claim.status.node_name and claim.status.provider_id)
            and self._mirror.is_ours(claim)
        )

    async def _wait_for_turn(self) -> None:
        now = self._clock.monotonic()
        turn = max(self._next, now)
        self._next = turn + _PACE_S
        await self._clock.sleep(turn - now)

    async def _annotate(self, claim: NodeClaim) -> None:
        notes = {labels.TAGGED: "true", labels.CLUSTER_NAME_TAGGED: "true"}
        try:
            answer = await self._client.patch(
                kinds.NODECLAIM, claim.metadata.name, {"metadata": {"annotations": notes}}
            )
        except NotFound:
            return
        self._mirror.apply(kinds.NODECLAIM, answer)

"""Objects that cannot be read: says so on the object itself (issue 4; core/api §10).

The API server lets them pass when its CRD is older or looser than this program. The mirror goes on with their
last readable state, and everything else goes on being served; their owner gets an event and, on our kinds,
the condition `ValidationSucceeded` False. The condition goes when the object can be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import structlog

from controller.clock import Clock
from controller.cluster import Malformed, Mirror
from controller.kube import (
    DONE,
    SINGLETON,
    Client,
    Event,
    EventType,
    Invalid,
    Key,
    Kind,
    NotFound,
    ObjectRef,
    Recorder,
    Requeue,
    WireObject,
    kinds,
)
from framework.api import ConditionStatus
from framework.api.conditions import VALIDATION_SUCCEEDED, get

__all__ = ["MalformedObjects"]

_log: Final = structlog.get_logger("controller")
_REASON: Final = "Malformed"
_OURS: Final = (
    kinds.NODEPOOL,
    kinds.NODECLAIM,
    kinds.EC2NODECLASS,
    kinds.NODEOVERLAY,
    kinds.SCHEDULINGCONFIG,
    kinds.CAPACITYBUFFER,
)
"""The kinds whose conditions are ours to write."""


class MalformedObjects:
    """Tells the owners of malformed objects, one controller for every kind."""

    name = "object.malformed"

    def __init__(self, mirror: Mirror, client: Client, recorder: Recorder, clock: Clock) -> None:
        """Keep the arguments."""
        self._mirror = mirror
        self._client = client
        self._recorder = recorder
        self._clock = clock

    def connect(self, add: Callable[[Key], None]) -> None:
        """Take the way to ask for a look, for whenever the malformed objects are others."""
        self._mirror.on_malformed(lambda: add(SINGLETON))

    async def reconcile(self, key: Key) -> Requeue:  # noqa: ARG002 - a singleton
        """Tell of what cannot be read, and take back what was told of objects that were mended."""
        malformed = self._mirror.malformed
        for each in malformed:
            await self._tell(each)
        known = {(each.kind, each.key) for each in malformed}
        for kind, obj in self._marked():
            meta = obj.metadata
            if (kind, Key(name=meta.name, namespace=meta.namespace or None)) not in known:
                await self._write(kind, meta.name, meta.namespace or None, None)
        return DONE

    async def _tell(self, found: Malformed) -> None:
        kind, key = found.kind, found.key
        message = f"cannot be read, its last readable state counts: {found.problem}"
        self._recorder.publish(
            Event(
                regarding=ObjectRef(kind=kind, name=key.name, namespace=key.namespace, uid=found.uid),
                type=EventType.WARNING,
                reason=_REASON,
                message=message,
                dedupe_values=(found.uid, message),
            )
        )
        if kind in _OURS:
            await self._write(kind, key.name, key.namespace, message)

    def _marked(self) -> Iterable[tuple[Kind, Any]]:
        """Yield the readable objects that still carry our condition."""
        for kind in _OURS:
            if kind in self._mirror.kinds:
                for obj in tuple(self._mirror.store(kind).objects.values()):
                    found = get(obj.status.conditions, VALIDATION_SUCCEEDED)
                    if found is not None and found.reason == _REASON:
                        yield kind, obj

    async def _write(self, kind: Kind, name: str, namespace: str | None, message: str | None) -> None:
        """Set the condition, or take it away without a message; the rest of the status is left as it is."""
        try:
            raw = await self._client.get(kind, name, namespace)
            conditions = self._with(raw, message)
            if conditions is None:
                return
            body = {
                "metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]},
                "status": {"conditions": conditions},
            }
            stored = await self._client.patch(kind, name, body, namespace=namespace, subresource="status")
        except NotFound:
            return
        except Invalid as exc:
            _log.info("condition of a malformed object is refused; its event stands", error=str(exc))
            return
        self._mirror.apply(kind, stored)

    def _with(self, raw: WireObject, message: str | None) -> list[WireObject] | None:
        """Return the object's conditions with ours changed, None when it is as it should be."""
        status = raw.get("status")
        listed = status.get("conditions") if isinstance(status, dict) else None
        present = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        old = next((each for each in present if each.get("type") == VALIDATION_SUCCEEDED), None)
        others = [each for each in present if each is not old]
        if message is None:
            return others if old is not None and old.get("reason") == _REASON else None
        if old is not None and (old.get("reason"), old.get("message")) == (_REASON, message):
            return None
        since = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        if old is not None and old.get("status") == ConditionStatus.FALSE:
            since = old.get("lastTransitionTime") or since
        ours = {
            "type": VALIDATION_SUCCEEDED,
            "status": ConditionStatus.FALSE,
            "reason": _REASON,
            "message": message,
            "observedGeneration": raw["metadata"].get("generation", 0),
            "lastTransitionTime": since,
        }
        return [*others, ours]

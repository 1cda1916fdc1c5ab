"""The eviction queue: asks the API server to evict pods, as disruption budgets allow (lifecycle §8.1).

Filled by node termination, one key per pod. Owns the back-off per pod and the pace of all; a budget that
says no is an answer, seen as an event on the node.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import attrs
import structlog

from controller.cluster import Node
from controller.kube import (
    DONE,
    Client,
    Conflict,
    Event,
    EventType,
    Key,
    KubeError,
    NotFound,
    ObjectRef,
    Recorder,
    Requeue,
    SeveralBudgets,
    TokenBucket,
    TooManyRequests,
    kinds,
)
from controller.observability import Metrics
from controller.observability.logs import ref
from controller.scheduling import Pod

__all__ = ["EvictionQueue"]

_log: Final = structlog.get_logger("controller")
_FIRST_WAIT: Final = timedelta(milliseconds=100)
_LONGEST_WAIT: Final = timedelta(seconds=10)


@attrs.frozen(kw_only=True)
class _Request:
    pod: Pod
    node: Node
    reason: str
    refusals: int = 0


class EvictionQueue:
    """Evicts the pods it is given until they are gone or another drain no longer asks."""

    name = "eviction-queue"

    def __init__(self, client: Client, recorder: Recorder, metrics: Metrics, pace: TokenBucket) -> None:
        """Keep the arguments; `pace` limits evictions per second."""
        self._client = client
        self._recorder = recorder
        self._metrics = metrics
        self._pace = pace
        self._requests: dict[Key, _Request] = {}
        self._wake: Callable[[Key], None] = lambda _: None

    def connect(self, wake: Callable[[Key], None]) -> None:
        """Take the way to the loop that runs this queue."""
        self._wake = wake

    def add(self, pod: Pod, node: Node, reason: str) -> None:
        """Ask for a pod's eviction; asking again for the same pod changes nothing."""
        key = Key(name=pod.name, namespace=pod.namespace)
        known = self._requests.get(key)
        if known is None or known.pod.uid != pod.uid:
            self._requests[key] = _Request(pod=pod, node=node, reason=reason)
            self._wake(key)

    async def reconcile(self, key: Key) -> Requeue:
        """Try to evict one pod."""
        request = self._requests.get(key)
        if request is None:
            return DONE
        await self._pace.take()
        pod = request.pod
        try:
            await self._client.evict(pod.namespace, pod.name, pod.uid)
        except (NotFound, Conflict) as exc:
            self._count("404" if isinstance(exc, NotFound) else "409")
            self._requests.pop(key, None)
            return DONE
        except (TooManyRequests, SeveralBudgets) as exc:
            self._count("429" if isinstance(exc, TooManyRequests) else "500")
            return self._refused(key, request, exc)
        except KubeError as exc:
            self._count("500")
            _log.error("eviction failed", Pod=ref(pod.name, pod.namespace), error=str(exc))
            return self._later(key, request)
        self._requests.pop(key, None)
        self._count("200")
        self._metrics.pods.drained.labels(reason=request.reason).inc()
        self._recorder.publish(
            Event(
                regarding=ObjectRef(kind=kinds.POD, name=pod.name, namespace=pod.namespace, uid=pod.uid),
                reason="Evicted",
                message=f"Evicted pod: {request.reason}",
                dedupe_values=(pod.key,),
            )
        )
        return DONE

    def forget(self, node_name: str) -> None:
        """Drop what is still asked for on a node that is gone."""
        self._requests = {key: each for key, each in self._requests.items() if each.node.name != node_name}

    def _refused(self, key: Key, request: _Request, exc: KubeError) -> Requeue:
        self._recorder.publish(
            Event(
                regarding=ObjectRef.of(kinds.NODE, request.node.metadata),
                type=EventType.WARNING,
                reason="FailedDraining",
                message=f"Failed to drain node, evicting pod {request.pod.key} violates a PDB: {exc.message}",
                dedupe_values=(request.node.name, request.pod.key),
            )
        )
        return self._later(key, request)

    def _later(self, key: Key, request: _Request) -> Requeue:
        self._requests[key] = attrs.evolve(request, refusals=request.refusals + 1)
        factor: int = 2 ** min(request.refusals, 20)
        return Requeue(min(_FIRST_WAIT * factor, _LONGEST_WAIT))

    def _count(self, code: str) -> None:
        self._metrics.pods.evictions.labels(code=code).inc()

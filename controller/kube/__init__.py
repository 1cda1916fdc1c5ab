"""Talking to the API server: kinds, client, watches, events, leases, and the loop of a controller."""

from __future__ import annotations

from controller.kube.client import Client, ListPage, PatchType, WireObject
from controller.kube.connection import Connection, NoCluster, connect, pod_namespace
from controller.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    SeveralBudgets,
    TooManyRequests,
    Unavailable,
)
from controller.kube.events import Event, EventType, ObjectRef, Recorder
from controller.kube.kinds import Kind
from controller.kube.lease import LeaderElector, LeaseSettings
from controller.kube.ratelimit import TokenBucket
from controller.kube.reconcile import (
    DONE,
    NOW,
    SINGLETON,
    Backoff,
    Change,
    Changes,
    Controller,
    ControllerSpec,
    Reconciler,
    Requeue,
    Watch,
    own_key,
)
from controller.kube.reflector import Reflector, Sink
from controller.kube.workqueue import Key, WorkQueue

__all__ = [
    "DONE",
    "NOW",
    "SINGLETON",
    "AlreadyExists",
    "Backoff",
    "Change",
    "Changes",
    "Client",
    "Conflict",
    "Connection",
    "Controller",
    "ControllerSpec",
    "Event",
    "EventType",
    "Forbidden",
    "Gone",
    "Invalid",
    "Key",
    "Kind",
    "KubeError",
    "LeaderElector",
    "LeaseSettings",
    "ListPage",
    "NoCluster",
    "NotFound",
    "ObjectRef",
    "PatchType",
    "Reconciler",
    "Recorder",
    "Reflector",
    "Requeue",
    "SeveralBudgets",
    "Sink",
    "TokenBucket",
    "TooManyRequests",
    "Unavailable",
    "Watch",
    "WireObject",
    "WorkQueue",
    "connect",
    "own_key",
    "pod_namespace",
]

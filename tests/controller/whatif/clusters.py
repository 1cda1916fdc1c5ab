"""A small cluster on file: one pool, one node with web pods, a Deployment that owns them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from controller.kube import Kind, WireObject, kinds
from controller.scheduling import Objective, Options
from controller.whatif import ClusterFile
from framework.api import labels
from tests.controller.fakes.cloud import an_instance_type
from tests.controller.fakes.objects import READY, a_claim, a_node, a_node_class, a_pod, a_pool

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PROVIDER_ID = "aws:///eu-west-2a/i-00000001"


def stored(kind: Kind, obj: WireObject, **meta: Any) -> WireObject:
    """Return the object as the API server would give it."""
    name = obj["metadata"]["name"]
    made = {"uid": f"{kind.plural}-{name}", "resourceVersion": "5", "generation": 1}
    return {**obj, "metadata": {**made, **obj["metadata"], **meta}}


def web_pod(number: int, *, node: str | None = "node-1", cpu: str = "500m") -> WireObject:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "rs", "controller": True}
    meta = {"labels": {"app": "web"}, "namespace": "shop", "ownerReferences": [owner]}
    return stored(kinds.POD, a_pod(f"web-{number}", node=node, cpu=cpu, metadata=meta))


def deployment(replicas: int = 2) -> WireObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "128Mi"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


def a_cluster(*pods: WireObject, **others: tuple[WireObject, ...]) -> ClusterFile:
    """Return the cluster; further objects by kind constant's name, such as `PDB=(…)`."""
    machine = {
        labels.INSTANCE_TYPE: "m5.large",
        labels.ZONE: "eu-west-2a",
        labels.CAPACITY_TYPE: "on-demand",
        labels.REGISTERED: "true",
        labels.INITIALIZED: "true",
        labels.NODEPOOL: "default",
        labels.EC2NODECLASS: "default",
        labels.HOSTNAME: "node-1",
    }
    true = [{**READY, "type": each} for each in ("Launched", "Registered", "Initialized", "Consolidatable")]
    resources = {"cpu": "1900m", "memory": "7Gi", "pods": "29"}
    claim = a_claim(
        metadata={"labels": machine},
        status={"providerID": PROVIDER_ID, "nodeName": "node-1", "conditions": true},
    )
    node = a_node(
        metadata={"labels": machine},
        spec={"taints": []},
        status={"capacity": resources, "allocatable": resources},
    )
    objects = {
        kinds.NODEPOOL: (stored(kinds.NODEPOOL, a_pool()),),
        kinds.EC2NODECLASS: (stored(kinds.EC2NODECLASS, a_node_class()),),
        kinds.NODECLAIM: (stored(kinds.NODECLAIM, claim),),
        kinds.NODE: (stored(kinds.NODE, node),),
        kinds.DEPLOYMENT: (stored(kinds.DEPLOYMENT, deployment()),),
        kinds.POD: pods or (web_pod(0), web_pod(1)),
        **{getattr(kinds, name): each for name, each in others.items()},
    }
    return ClusterFile(
        taken=NOW,
        objects={kind.resource: each for kind, each in objects.items()},
        instance_types={
            "default": (an_instance_type(), an_instance_type("m5.xlarge", cpu=4000, price=0.2)),
        },
        options=Options(objective=Objective.FIRST_FIT),
    )

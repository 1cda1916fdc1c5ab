"""What the engine plans, the real kube-scheduler binds: random workloads on a real control plane."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from controller.scheduling import InstanceType, Plan, PlannedClaim, queue_order, solve
from controller.scheduling.verify import verify
from framework.api import labels
from sandbox.kubernetes import Api, ControlPlane, Options
from tests.controller.scheduling.random_workloads import (
    STORAGE_CLASSES,
    TYPES,
    Wire,
    Workload,
    a_workload,
    node_wire,
    problem_of,
    volume_wire,
)

pytestmark = pytest.mark.sandbox
WORKLOADS = 200
AT_ONCE = 8
POLL_S = 0.5
PATIENCE_S = 10
"""So long without any progress means that nothing more will happen."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    # Nobody renews the leases of these nodes; they stay ready as long as the test may take.
    plane = ControlPlane(
        tmp_path_factory.mktemp("scheduler"), Options(node_grace_s=3600, follows_preferences=True)
    )
    plane.start()
    try:
        yield Api(plane.admin)
    finally:
        plane.stop()


def test_kube_scheduler_binds_every_pod_that_the_engine_placed(api: Api) -> None:
    workloads = [a_workload(number) for number in range(WORKLOADS)]
    problem = problem_of(workloads)
    plan = solve(problem)
    assert verify(problem, plan) == ()
    cluster = _Cluster(api)

    cluster.furnish(workloads, [_launched(number, claim) for number, claim in enumerate(plan.claims)])
    planned = _planned_nodes(plan)
    wires = {f"{w.name}/{raw['metadata']['name']}": raw for w in workloads for raw in w.pending}
    order = [pod.key for pod in queue_order(problem.pods) if pod.key in planned]
    cluster.run([_aimed(wires[key], planned[key]) for key in order])

    pending = cluster.wait_for_binding()
    bound = {key: node for key, node in cluster.bound().items() if key in planned}
    as_planned = sum(node == planned[key] for key, node in bound.items())
    print(
        f"\nkube-scheduler bound {len(bound)} of {len(planned)} pods that the engine placed, "
        f"of {len(workloads)} workloads on {len(plan.claims)} new nodes; {as_planned} where it had planned"
    )
    assert pending == {}
    assert len(bound) == len(planned)


def _planned_nodes(plan: Plan) -> dict[str, str]:
    """The node of each placed pod, by `namespace/name`."""
    known = {placement.pod_key: placement.node for placement in plan.placements}
    return known | {key: f"new-{n:04d}" for n, claim in enumerate(plan.claims) for key in claim.pod_keys}


def _aimed(pod: Wire, node: str) -> Wire:
    """Tell the scheduler where the plan has room for the pod, or it would spend room meant for others.

    Every rule still holds: a preference only orders the nodes that pass all of them. New nodes stay
    tainted until the node controller has seen them; the pods need not wait for that.
    """
    spec = pod["spec"]
    expression = {"key": labels.HOSTNAME, "operator": "In", "values": [node]}
    term = {"weight": 100, "preference": {"matchExpressions": [expression]}}
    affinity = spec.get("affinity", {})
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    node_affinity = {**affinity.get("nodeAffinity", {}), **preferred}
    not_ready = {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}
    changed = {
        "affinity": {**affinity, "nodeAffinity": node_affinity},
        "tolerations": [*spec["tolerations"], not_ready],
    }
    return {**pod, "spec": {**spec, **changed}}


def _launched(number: int, claim: PlannedClaim) -> Wire:
    """Return the Node of a claim: any machine that it allows, not just the cheapest."""
    rng = random.Random(number)  # noqa: S311 - a choice, not a secret
    allowed = claim.requirements
    choices: list[tuple[InstanceType, str, str]] = [
        (instance_type, offering.zone, offering.capacity_type)
        for instance_type in TYPES
        if instance_type.name in claim.instance_types
        for offering in instance_type.offerings
        if allowed[labels.CAPACITY_TYPE].has(offering.capacity_type)
        and (labels.ZONE not in allowed or allowed[labels.ZONE].has(offering.zone))
    ]
    instance_type, zone, capacity_type = rng.choice(choices)
    given = {**claim.labels, labels.ZONE: zone, labels.CAPACITY_TYPE: capacity_type}
    return node_wire(f"new-{number:04d}", instance_type, given, claim.taints)


class _Cluster:
    """The control plane with what the test puts there."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._threads = ThreadPoolExecutor(AT_ONCE)
        self._made: set[str] = set()
        """Names of the volumes made for waiting claims."""

    def furnish(self, workloads: list[Workload], new_nodes: list[Wire]) -> None:
        """Create everything but the pods to place, and wait until it is fit for use."""
        self._create("/api/v1/namespaces", ({"metadata": {"name": w.name}} for w in workloads))
        self._create("/apis/storage.k8s.io/v1/storageclasses", STORAGE_CLASSES)
        self._create("/api/v1/persistentvolumes", (v for w in workloads for v in w.volumes))
        self._create_in("persistentvolumeclaims", (c for w in workloads for c in w.claims))
        self._create("/api/v1/nodes", [*(n for w in workloads for n in w.nodes), *new_nodes])
        self._until(lambda: not self._unbound_claims(), "every claim of a volume is bound")
        self.run([pod for w in workloads for pod in w.running])

    def run(self, pods: Iterable[Wire]) -> None:
        """Create pods, those of one namespace in the order given."""
        by_namespace: dict[str, list[Wire]] = {}
        for pod in pods:
            by_namespace.setdefault(pod["metadata"]["namespace"], []).append(pod)
        list(self._threads.map(lambda some: [self._create_pod(pod) for pod in some], by_namespace.values()))

    def wait_for_binding(self) -> dict[str, str]:
        """Wait until no pod is pending or nothing changes any more; return why the others are not bound."""
        progress, deadline = (0, 0), 0.0
        while pending := self._pending():
            seen = (self._make_volumes(), len(pending))
            if seen != progress:
                progress, deadline = seen, time.monotonic() + PATIENCE_S
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_S)
        return pending

    def bound(self) -> dict[str, str]:
        pods, _ = self._api.list("/api/v1/pods", fieldSelector="spec.nodeName!=")
        return {_key(pod): pod["spec"]["nodeName"] for pod in pods}

    def _pending(self) -> dict[str, str]:
        pods, _ = self._api.list("/api/v1/pods", fieldSelector="spec.nodeName=")
        return {
            _key(pod): "; ".join(c.get("message", "") for c in pod["status"].get("conditions", ()))
            for pod in pods
        }

    def _make_volumes(self) -> int:
        """Do the provisioner's work where the scheduler wants first consumers; return the volumes so far."""
        claims, _ = self._api.list("/api/v1/persistentvolumeclaims")
        waiting = [
            claim
            for claim in claims
            if SELECTED_NODE in claim["metadata"].get("annotations", {}) and "volumeName" not in claim["spec"]
        ]
        for claim in waiting:
            metadata, storage_class = claim["metadata"], claim["spec"]["storageClassName"]
            node = self._api.get(f"/api/v1/nodes/{metadata['annotations'][SELECTED_NODE]}")
            zone = node["metadata"]["labels"][labels.ZONE]
            volume = volume_wire(metadata["namespace"], metadata["name"], storage_class, zone)
            if volume["metadata"]["name"] not in self._made:
                self._api.create("/api/v1/persistentvolumes", volume)
                self._made.add(volume["metadata"]["name"])
        return len(self._made)

    def _unbound_claims(self) -> list[str]:
        claims, _ = self._api.list("/api/v1/persistentvolumeclaims")
        return [_key(c) for c in claims if "volumeName" in c["spec"] and c["status"]["phase"] != "Bound"]

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, f"not within a minute: {what}"
            time.sleep(POLL_S)

    def _create(self, path: str, objects: Iterable[Wire]) -> None:
        list(self._threads.map(lambda each: self._api.create(path, each), objects))

    def _create_in(self, plural: str, objects: Iterable[Wire]) -> None:
        def create(each: Wire) -> Wire:
            return self._api.create(f"/api/v1/namespaces/{each['metadata']['namespace']}/{plural}", each)

        list(self._threads.map(create, objects))

    def _create_pod(self, pod: Wire) -> None:
        metadata = {key: pod["metadata"][key] for key in ("name", "labels")}
        self._api.create(
            f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", {**pod, "metadata": metadata}
        )


def _key(raw: Wire) -> str:
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"

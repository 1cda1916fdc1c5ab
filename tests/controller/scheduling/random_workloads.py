"""Random workloads as manifests, each with a NodePool, a namespace and nodes of its own.

What the engine is asked about and what the API server gets are the same objects.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import attrs

from controller.scheduling import (
    InstanceType,
    PersistentVolume,
    Pod,
    Problem,
    Snapshot,
    StateNode,
    StorageClass,
    Taint,
    VolumeClaim,
    VolumeIndex,
)
from framework.api import NodePool, labels, parse_resources
from tests.controller.scheduling.builders import NOW, ZONES, a_pool, a_type

Wire = dict[str, Any]

TYPES = (
    a_type("m.large", 2, 8, 0.1),
    a_type("m.xlarge", 4, 16, 0.2),
    a_type("m.2xlarge", 8, 32, 0.4),
    a_type("r.large", 2, 16, 0.13, zones=("z-a", "z-b"), spot=0.05),
    a_type("g.xlarge", 4, 16, 0.16, zones=("z-b", "z-c"), more={labels.ARCH: ["arm64"]}),
)
PROVISIONER = "disks.example.com"
"""Makes volumes for claims that wait for their first consumer."""
STORAGE_CLASSES: tuple[Wire, ...] = (
    {"metadata": {"name": "anywhere"}},
    {
        "metadata": {"name": "two-zones"},
        "allowedTopologies": [
            {"matchLabelExpressions": [{"key": labels.ZONE, "values": [zone]}]} for zone in ZONES[:2]
        ],
    },
)
for _class in STORAGE_CLASSES:
    _class |= {"provisioner": PROVISIONER, "volumeBindingMode": "WaitForFirstConsumer"}
OWNER = "example.com/workload"
APPS = ("web", "db", "job")
_DEDICATED = {"key": "dedicated", "value": "yes", "effect": "NoSchedule"}


@attrs.frozen(kw_only=True)
class Workload:
    """Everything that belongs to one workload, as manifests but for its pools."""

    name: str
    """Of the namespace; the pools' names start with it."""
    pools: tuple[NodePool, ...]
    nodes: tuple[Wire, ...]
    running: tuple[Wire, ...]
    pending: tuple[Wire, ...]
    claims: tuple[Wire, ...]
    volumes: tuple[Wire, ...]


def a_workload(number: int) -> Workload:
    """Return the workload with this number, always the same."""
    return _Drawing(number).workload()


def problem_of(workloads: list[Workload]) -> Problem:
    """Ask the engine about all of them at once: they are pods of one cluster."""
    pools = [pool for w in workloads for pool in w.pools]
    pods = tuple(Pod.from_wire(raw) for w in workloads for raw in w.pending)
    classes = [StorageClass.from_wire(raw) for raw in STORAGE_CLASSES]
    claims = [VolumeClaim.from_wire(_bound(raw)) for w in workloads for raw in w.claims]
    volumes = [PersistentVolume.from_wire(raw) for w in workloads for raw in w.volumes]
    return Problem(
        snapshot=Snapshot(
            now=NOW,
            pools=tuple(pools),
            pods=pods,
            nodes=tuple(_state_node(raw, w) for w in workloads for raw in w.nodes),
            namespaces={w.name: {"kubernetes.io/metadata.name": w.name} for w in workloads},
            volumes=VolumeIndex(
                claims={claim.key: claim for claim in claims},
                volumes={volume.name: volume for volume in volumes},
                classes={c.name: c for c in classes},
            ),
        ),
        pods=pods,
        instance_types={pool.name: TYPES for pool in pools},
    )


def _bound(claim: Wire) -> Wire:
    """The claim as it is once Kubernetes has bound it to the volume it names."""
    if "volumeName" not in claim["spec"]:
        return claim
    metadata = {**claim["metadata"], "annotations": {labels.PV_BIND_COMPLETED: "yes"}}
    return {**claim, "metadata": metadata}


def _state_node(raw: Wire, workload: Workload) -> StateNode:
    name = raw["metadata"]["name"]
    amounts = parse_resources(raw["status"]["allocatable"])
    return StateNode(
        name=name,
        node_name=name,
        pool=raw["metadata"]["labels"][labels.NODEPOOL],
        labels=raw["metadata"]["labels"],
        taints=tuple(Taint.from_wire(taint) for taint in raw["spec"]["taints"]),
        capacity=amounts,
        allocatable=amounts,
        pods=tuple(Pod.from_wire(pod) for pod in workload.running if pod["spec"]["nodeName"] == name),
        registered=True,
        initialized=True,
    )


def node_wire(
    name: str, instance_type: InstanceType, given: dict[str, str], taints: tuple[Taint, ...]
) -> Wire:
    """Return a ready Node of the type; `given` are the labels that the type leaves open."""
    fixed = {
        key: next(iter(requirement.values))
        for key, requirement in instance_type.requirements.items()
        if len(requirement.values) == 1
    }
    amounts = {key: str(amount) for key, amount in instance_type.allocatable.items()}
    amounts["cpu"] = f"{instance_type.allocatable['cpu']}m"
    return {
        "metadata": {"name": name, "labels": {**fixed, **given, labels.HOSTNAME: name}},
        "spec": {"taints": [taint.to_wire() for taint in taints]},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


class _Drawing:
    """Draws one workload."""

    def __init__(self, number: int) -> None:
        self._rng = random.Random(number)  # noqa: S311 - a workload, not a secret
        self._name = f"w{number:03d}"
        self._claims: list[Wire] = []
        self._volumes: list[Wire] = []

    def workload(self) -> Workload:
        rng = self._rng
        taint = {"key": OWNER, "value": self._name, "effect": "NoSchedule"}
        pools = [a_pool(self._name, labels={OWNER: self._name}, taints=[taint])]
        if rng.random() < 0.3:
            more = [taint, _DEDICATED]
            pools.append(a_pool(f"{self._name}-dedicated", labels={OWNER: self._name}, taints=more, weight=7))
        nodes = [self._node(place, rng.choice(pools)) for place in range(rng.choice((0, 0, 1, 2)))]
        running = [self._running(place, node) for node in nodes for place in range(rng.randint(0, 2))]
        pending = [
            pod for place in range(rng.randint(1, 3)) for pod in self._deployment(place, rng.randint(1, 4))
        ]
        return Workload(
            name=self._name,
            pools=tuple(pools),
            nodes=tuple(nodes),
            running=tuple(running),
            pending=tuple(pending),
            claims=tuple(self._claims),
            volumes=tuple(self._volumes),
        )

    def _node(self, place: int, pool: NodePool) -> Wire:
        instance_type = self._rng.choice(TYPES[:3])
        given = {
            OWNER: self._name,
            labels.NODEPOOL: pool.name,
            labels.ZONE: self._rng.choice(ZONES),
            labels.CAPACITY_TYPE: "on-demand",
        }
        taints = tuple(Taint.from_spec(taint) for taint in pool.spec.template.spec.taints)
        return node_wire(f"{self._name}-old-{place}", instance_type, given, taints)

    def _running(self, place: int, node: Wire) -> Wire:
        app = self._rng.choice(APPS)
        spec = {"nodeName": node["metadata"]["name"]}
        if self._rng.random() < 0.3:
            spec |= self._away(app)
        return self._pod(f"{node['metadata']['name']}-{place}", app, ("300m", "500Mi"), spec)

    def _deployment(self, place: int, replicas: int) -> list[Wire]:
        rng = self._rng
        app = rng.choice(APPS)
        requests = (rng.choice(("100m", "700m", "1500m", "3")), rng.choice(("128Mi", "2Gi", "6Gi", "11Gi")))
        spec: Wire = {}
        rules = (self._spread, self._away, self._near, self._node_affinity, self._ports, self._dedicated)
        for rule in rng.sample(rules, rng.choice((0, 1, 1, 2, 2, 3))):
            for field, value in rule(app).items():
                spec[field] = {**spec[field], **value} if field == "affinity" and field in spec else value
        name = f"{app}-{place}"
        volumes = rng.random() < 0.2
        pods = []
        for number in range(replicas):
            own = dict(spec)
            if volumes:
                own["volumes"] = [self._volume(f"{name}-{number}")]
            pods.append(self._pod(f"{name}-{number}", app, requests, own, number=place * 10 + number))
        return pods

    def _pod(self, name: str, app: str, requests: tuple[str, str], spec: Wire, *, number: int = 0) -> Wire:
        cpu, memory = requests
        spec = dict(spec)
        ports = spec.pop("ports", [])
        tolerations = [{"key": OWNER, "operator": "Equal", "value": self._name}, *spec.pop("tolerations", [])]
        selector = {OWNER: self._name, **spec.pop("nodeSelector", {})}
        container = {
            "name": "c",
            "image": "app",
            "resources": {"requests": {"cpu": cpu, "memory": memory}},
            "ports": ports,
        }
        return {
            "metadata": {
                "namespace": self._name,
                "name": name,
                "uid": f"{self._name}/{name}",
                "labels": {"app": app, "tier": self._rng.choice(("front", "back"))},
                "creationTimestamp": (NOW + timedelta(seconds=number)).isoformat(),
            },
            "spec": {
                "containers": [container],
                "nodeSelector": selector,
                "tolerations": tolerations,
                "terminationGracePeriodSeconds": 0,
                **spec,
            },
        }

    # Rules, each as a part of a pod's spec

    def _spread(self, app: str) -> Wire:
        rng = self._rng
        constraints = []
        for key in rng.sample((labels.ZONE, labels.HOSTNAME), rng.choice((1, 1, 2))):
            constraint = {
                "maxSkew": rng.choice((1, 1, 2)),
                "topologyKey": key,
                "whenUnsatisfiable": rng.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": self._selector(app),
            }
            if (
                key == labels.ZONE
                and rng.random() < 0.3
                and constraint["whenUnsatisfiable"] == "DoNotSchedule"
            ):
                constraint["minDomains"] = rng.choice((2, 3))
            if rng.random() < 0.3:
                constraint["nodeTaintsPolicy"] = "Honor"
            if rng.random() < 0.2:
                constraint["nodeAffinityPolicy"] = "Ignore"
            if rng.random() < 0.2:
                constraint["matchLabelKeys"] = ["tier"]
            constraints.append(constraint)
        return {"topologySpreadConstraints": constraints}

    def _away(self, app: str) -> Wire:
        return {"affinity": {"podAntiAffinity": self._pod_terms(app)}}

    def _near(self, app: str) -> Wire:
        return {"affinity": {"podAffinity": self._pod_terms(app)}}

    def _pod_terms(self, app: str) -> Wire:
        other = self._rng.choice((app, app, self._rng.choice(APPS)))
        key = self._rng.choice((labels.HOSTNAME, labels.ZONE))
        term = {"labelSelector": self._selector(other), "topologyKey": key}
        if self._rng.random() < 0.25:
            preferred = [{"weight": self._rng.randint(1, 100), "podAffinityTerm": term}]
            return {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}

    def _selector(self, app: str) -> Wire:
        if self._rng.random() < 0.2:
            return {"matchExpressions": [{"key": "app", "operator": "In", "values": [app, APPS[0]]}]}
        return {"matchLabels": {"app": app}}

    def _node_affinity(self, app: str) -> Wire:
        rng = self._rng
        if rng.random() < 0.4:
            return {"nodeSelector": {labels.ZONE: rng.choice(ZONES)}}
        terms = [
            {
                "matchExpressions": [
                    rng.choice(
                        (
                            {"key": labels.ZONE, "operator": "In", "values": sorted(rng.sample(ZONES, 2))},
                            {"key": labels.ARCH, "operator": "In", "values": ["arm64"]},
                            {"key": labels.INSTANCE_FAMILY, "operator": "NotIn", "values": ["m"]},
                            {"key": labels.INSTANCE_CPU, "operator": "Gt", "values": ["2"]},
                            {"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["spot"]},
                        )
                    )
                ]
            }
            for _ in range(rng.choice((1, 1, 2)))
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return {"affinity": {"nodeAffinity": required}}

    def _ports(self, app: str) -> Wire:
        port = {
            "containerPort": 80,
            "hostPort": self._rng.choice((80, 81)),
            "protocol": self._rng.choice(("TCP", "UDP")),
        }
        if self._rng.random() < 0.4:
            port["hostIP"] = self._rng.choice(("10.0.0.1", "10.0.0.2"))
        return {"ports": [port]}

    def _dedicated(self, app: str) -> Wire:
        return {"tolerations": [_DEDICATED if self._rng.random() < 0.5 else {"operator": "Exists"}]}

    def _volume(self, pod: str) -> Wire:
        rng = self._rng
        name = f"{pod}-data"
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": rng.choice(STORAGE_CLASSES)["metadata"]["name"],
        }
        if rng.random() < 0.6:
            spec["volumeName"] = f"{self._name}-{name}"
            self._volumes.append(volume_wire(self._name, name, spec["storageClassName"], rng.choice(ZONES)))
        self._claims.append({"metadata": {"namespace": self._name, "name": name}, "spec": spec})
        return {"name": "data", "persistentVolumeClaim": {"claimName": name}}


def volume_wire(namespace: str, claim: str, storage_class: str, zone: str) -> Wire:
    """Return the volume of a claim, which can be used in one zone."""
    expression = {"key": labels.ZONE, "operator": "In", "values": [zone]}
    return {
        "metadata": {"name": f"{namespace}-{claim}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": storage_class,
            "claimRef": {"namespace": namespace, "name": claim},
            "csi": {"driver": PROVISIONER, "volumeHandle": f"{namespace}-{claim}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
    }
